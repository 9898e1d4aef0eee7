"""Options of 500 prompts scored with five few-shot examples, beside lm-evaluation-harness with the same model on a CPU.

The peer runs with the fastest of several batch sizes on its first prompts. Only `HFLM.loglikelihood` counts: the
trials, building requests and loading the model are not timed, and the peer writes nothing. Its batch size `auto` takes
64 on a CPU after five passes, so 64 is tried without them. With labels of one token it reads a prompt once for all of
them. Suffrage runs `OptionScorer` as users do and chooses its batches itself. For letters it sums the probabilities of
all spellings, where the peer takes one: the differences of that line are due to this. The model is a Llama with random
weights. Its small vocabulary favours the peer, which computes a distribution over the vocabulary at every position. The
last line has a Gemma 3 of the same size, of which two layers in three attend to 256 tokens: fewer than the examples.

Memory is the peak of a separate process, packages included, and what scoring adds to the peak before.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks._costs import in_own_process, peak
from benchmarks._peers import peer
from tests.tracker.language_model_files import corpus, write_language_model
from tracker.evaluating.prompt_templates.rendered_prompt import FewShotExample, RenderedPrompt

N_PROMPTS = int(os.environ.get("SUFFRAGE_BENCHMARK_PROMPTS", "500"))
N_EXAMPLES, N_OPTIONS, N_WORDS, N_TRIED = 5, 4, 60, min(16, N_PROMPTS)
SIZE, CONTEXT, WINDOW = 448, 1024, 256
PEER_BATCHES = (1, 8, 16, 64)
Method = Literal["loglikelihood", "letters"]
Scored = tuple[float, float, list[list[float]]]


def measurements() -> Iterator[dict[str, Any]]:
    """One line per method and kind of examples."""
    peer("lm_eval")
    with tempfile.TemporaryDirectory() as name:
        folder = write_language_model(Path(name), "llama", size=SIZE, context=CONTEXT)
        yield _measured(folder, "loglikelihood", fixed=True)
        yield _measured(folder, "loglikelihood", fixed=False)
        yield _measured(folder, "letters", fixed=True)
        _write_windowed_model(folder)
        yield _measured(folder, "loglikelihood", fixed=True, architecture=f", Gemma 3 with a window of {WINDOW}")


def _measured(folder: Path, method: Method, fixed: bool, architecture: str = "") -> dict[str, Any]:
    tried = {
        size: in_own_process(partial(_time_peer, folder, method, fixed, N_TRIED, size))[0][0] for size in PEER_BATCHES
    }
    best = min(tried, key=lambda size: tried[size])
    runs = [in_own_process(partial(_time_tracker, folder, method, fixed, N_PROMPTS))]
    (peer_s, peer_added, peer_results), peer_peak = in_own_process(
        partial(_time_peer, folder, method, fixed, N_PROMPTS, best)
    )
    runs.append(in_own_process(partial(_time_tracker, folder, method, fixed, N_PROMPTS)))
    ours_s = [results[0] for results, _ in runs]
    (_, ours_added, tracker_results), ours_peak = max(runs, key=lambda run: run[1])
    tracker_logprobs, his = np.array(tracker_results), np.array(peer_results)
    return {
        "name": f"{N_PROMPTS} prompts, {N_OPTIONS} options by {method}, {N_EXAMPLES} "
        f"{'fixed examples' if fixed else 'different examples for each'}{architecture}, CPU, "
        "beside lm-evaluation-harness",
        "tokens_per_request": round(_n_tokens(folder, method, fixed)),
        "ours_s": round(min(ours_s), 2),
        "ours_worst_s": round(max(ours_s), 2),
        "peer_s": round(peer_s, 2),
        "peer_batch_size": best,
        "peer_tried_s": {str(size): round(spent, 2) for size, spent in tried.items()},
        "ratio": round(peer_s / min(ours_s), 1),
        "ours_peak_mb": round(ours_peak),
        "peer_peak_mb": round(peer_peak),
        "memory_ratio": round(ours_peak / peer_peak, 2),
        "ours_added_mb": round(ours_added),
        "peer_added_mb": round(peer_added),
        "largest_difference": float(np.abs(tracker_logprobs - his).max()),
        "equal_choices": float((tracker_logprobs.argmax(axis=1) == his.argmax(axis=1)).mean()),
    }


def _write_windowed_model(folder: Path) -> None:
    """Replace the model of a folder by one with windows in two of its three layers; the tokenizer stays."""
    import torch
    from transformers import AutoConfig, Gemma3ForCausalLM, Gemma3TextConfig

    llama = AutoConfig.from_pretrained(folder).to_dict()
    names = (
        "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "max_position_embeddings", "bos_token_id", "eos_token_id", "pad_token_id",
    )  # fmt: skip
    torch.manual_seed(0)
    config = Gemma3TextConfig(
        **{name: llama[name] for name in names}, head_dim=SIZE // llama["num_attention_heads"], sliding_window=WINDOW,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"],
    )  # fmt: skip
    Gemma3ForCausalLM(config).save_pretrained(folder)


def prompts(method: Method, fixed: bool, n_prompts: int) -> list[RenderedPrompt]:
    """SIMULATED prompts of about 60 words with their options, from a seed; the first are the same for any number."""
    chance = random.Random(0)
    words = sorted({word for line in corpus(400) for word in line.split() if word.isalpha() and word.islower()})
    pool = [_written(chance, words) for _ in range(100)]
    built = []
    for i in range(n_prompts):
        text, options = _written(chance, words)
        chosen = pool[:N_EXAMPLES] if fixed else chance.sample(pool, N_EXAMPLES)
        places = [chance.randrange(N_OPTIONS) for _ in range(N_EXAMPLES)] if not fixed else range(N_EXAMPLES)
        examples = tuple(
            FewShotExample(question=rendered, answer=_sayable(method, offered)[place % N_OPTIONS])
            for (rendered, offered), place in zip(chosen, places, strict=True)
        )
        texts = _sayable(method, options)
        built.append(RenderedPrompt(prompt_id=i + 1, examples=examples, question=text, options=texts, correct_option=0))
    return built


def _written(chance: random.Random, words: list[str]) -> tuple[str, tuple[str, ...]]:
    options = tuple(" ".join(chance.choices(words, k=chance.randint(2, 6))) for _ in range(N_OPTIONS))
    option_lines = "\n".join(f"{'ABCD'[i]}. {option}" for i, option in enumerate(options))
    n_words = max(10, N_WORDS - sum(len(option.split()) for option in options) + chance.randint(-15, 15))
    return f"Question: {' '.join(chance.choices(words, k=n_words))}?\n{option_lines}\nAnswer:", options


def _sayable(method: Method, options: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("ABCD"[:N_OPTIONS]) if method == "letters" else options


def _n_tokens(folder: Path, method: Method, fixed: bool) -> float:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    return float(np.mean([len(tokenizer.encode(built.text())) for built in prompts(method, fixed, 50)]))


def _time_tracker(folder: Path, method: Method, fixed: bool, n_prompts: int) -> Scored:
    from tracker.evaluating.local.loading import load_language_model
    from tracker.evaluating.local.option_scorer import OptionScorer

    rendered = prompts(method, fixed, n_prompts)
    scorer = OptionScorer(load_language_model(str(folder)), method=method)
    before, start = peak(), time.perf_counter()
    responses = [response for batch in scorer.respond(rendered, lambda _: False) for response in batch]
    spent = time.perf_counter() - start
    results = {response.prompt_id: response.logprobs for response in responses}
    return spent, peak() - before, [np.asarray(results[built.prompt_id]).tolist() for built in rendered]


def _time_peer(folder: Path, method: Method, fixed: bool, n_prompts: int, batch_size: int) -> Scored:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=(built.text(), built.join + option), idx=place)
        for built in prompts(method, fixed, n_prompts)
        for place, option in enumerate(built.options)
    ]
    model = HFLM(pretrained=str(folder), device="cpu", dtype="float32", batch_size=batch_size)
    before, start = peak(), time.perf_counter()
    results = model.loglikelihood(requests, disable_tqdm=True)
    spent = time.perf_counter() - start
    return spent, peak() - before, np.array([logprob for logprob, _ in results]).reshape(-1, N_OPTIONS).tolist()


if __name__ == "__main__":
    for measurement in measurements():
        print(json.dumps(measurement), flush=True)
