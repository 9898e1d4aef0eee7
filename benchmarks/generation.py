"""Responses to prompts with five few-shot examples, generated with and without shared prefixes on a CPU.

Every row is one run of both: the same model, prompts and greedy or sampled responses, which must be equal. Without
means that each row of a batch computes its whole prompt, as before. The peer lm-evaluation-harness generates the same
greedy responses by `HFLM.generate_until`, with the fastest of several batch sizes on its first prompts. The model is a
Llama with random weights.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks._costs import in_own_process
from benchmarks._peers import peer
from benchmarks.evaluation import CONTEXT, N_EXAMPLES, SIZE, prompts
from tests.tracker.language_model_files import write_language_model
from tracker.evaluating.responses import Sampling

N_PROMPTS, N_TOKENS, N_TRIALS, N_TRIED = 24, 8, 4, 8
PEER_BATCHES = (1, 8, 16)
Generated = tuple[float, dict[str, str | None]]


def measurements() -> Iterator[dict[str, Any]]:
    """One line per peer: without shared prefixes, without shared prompts of trials, lm-evaluation-harness."""
    peer("lm_eval")
    with tempfile.TemporaryDirectory() as name:
        folder = write_language_model(Path(name), "llama", size=SIZE, context=CONTEXT)
        yield _compare(folder, Sampling(max_tokens=N_TOKENS), fixed=True)
        yield _compare(folder, Sampling(max_tokens=N_TOKENS, temperature=0.7, n_trials=N_TRIALS), fixed=False)
        yield _compare_with_peer(folder)


def _compare(folder: Path, sampling: Sampling, *, fixed: bool) -> dict[str, Any]:
    n_prompts = N_PROMPTS // sampling.n_trials
    runs: dict[bool, list[Generated]] = {True: [], False: []}
    for shared in (True, False, True, False):
        work = partial(_time_tracker, folder, sampling, fixed, n_prompts, shared)
        runs[shared].append(in_own_process(work)[0])
    fastest, whole = (min(runs[shared], key=lambda run: run[0]) for shared in (True, False))
    subject = f"{N_EXAMPLES} fixed examples" if fixed else f"{sampling.n_trials} trials of each, different examples"
    return {
        "name": f"{n_prompts} prompts, {subject}, {N_TOKENS} tokens, CPU, beside the same without shared prefixes",
        "ours_s": round(fastest[0], 2),
        "peer_s": round(whole[0], 2),
        "ratio": round(whole[0] / fastest[0], 1),
        "equal_responses": _share_of_equal(fastest[1], whole[1]),
    }


def _compare_with_peer(folder: Path) -> dict[str, Any]:
    sampling = Sampling(max_tokens=N_TOKENS)
    tried = {size: in_own_process(partial(_time_peer, folder, N_TRIED, size))[0][0] for size in PEER_BATCHES}
    best = min(tried, key=lambda size: tried[size])
    tracker_s, tracker_texts = in_own_process(partial(_time_tracker, folder, sampling, True, N_PROMPTS, True))[0]
    peer_s, peer_texts = in_own_process(partial(_time_peer, folder, N_PROMPTS, best))[0]
    return {
        "name": f"{N_PROMPTS} prompts, {N_EXAMPLES} fixed examples, {N_TOKENS} tokens, CPU, beside "
        "lm-evaluation-harness",
        "ours_s": round(tracker_s, 2),
        "peer_s": round(peer_s, 2),
        "ratio": round(peer_s / tracker_s, 1),
        "peer_batch_size": best,
        "peer_tried_s": {str(size): round(spent, 2) for size, spent in tried.items()},
        "equal_responses": _share_of_equal(tracker_texts, peer_texts),
    }


def _share_of_equal(first: dict[str, str | None], second: dict[str, str | None]) -> float:
    return sum(first[key] == second[key] for key in first) / len(first)


def _time_tracker(folder: Path, sampling: Sampling, fixed: bool, n_prompts: int, shared: bool) -> Generated:
    from tracker.evaluating.local import generation
    from tracker.evaluating.local.decoding.batch_test import find_batching as find
    from tracker.evaluating.local.loading import load_language_model

    rendered = prompts("letters", fixed, n_prompts)
    generator = generation.TextGenerator(load_language_model(str(folder)), sampling)

    def find_batching(*args: Any, **options: Any) -> Any:
        batching = find(*args, **options)
        return batching if shared else replace(batching, reuses=False)

    with patch.object(generation, "find_batching", find_batching):
        start = time.perf_counter()
        responses = [response for batch in generator.respond(rendered, lambda _: False) for response in batch]
        spent = time.perf_counter() - start
    return spent, {f"{response.prompt_id} {response.trial}": response.text for response in responses}


def _time_peer(folder: Path, n_prompts: int, batch_size: int) -> Generated:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    rendered = prompts("letters", True, n_prompts)
    options = {"until": [], "max_gen_toks": N_TOKENS, "do_sample": False}
    requests = [
        Instance(request_type="generate_until", doc={}, arguments=(prompt.text(), options), idx=0)
        for prompt in rendered
    ]
    model = HFLM(pretrained=str(folder), device="cpu", dtype="float32", batch_size=batch_size)
    start = time.perf_counter()
    texts = model.generate_until(requests, disable_tqdm=True)
    spent = time.perf_counter() - start
    return spent, {f"{prompt.prompt_id} 0": text for prompt, text in zip(rendered, texts, strict=True)}


if __name__ == "__main__":
    for measurement in measurements():
        print(json.dumps(measurement), flush=True)
