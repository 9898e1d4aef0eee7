"""Reading an Inspect log, beside Inspect's readers.

Suffrage reads what it stores of a log: prompts, scores and answers, checked, in blocks. `read_eval_log` reads the
transcripts too. `read_eval_log_sample_summaries` reads the same part of the file as Suffrage.
"""

from __future__ import annotations

import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks._peers import peer
from tracker.ingest.formats import inspect_ai
from tracker.ingest.measurement import ReadOptions, Scores

N_SAMPLES = 20_000
N_TURNS = 2
SAMPLES_AT_ONCE = 200
REPEATS = 3


def measurements() -> Iterator[dict[str, Any]]:
    """Ours beside each reader of the peer; the size of the log is that of the whole file."""
    log = peer("inspect_ai.log")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.eval"
        _write(log, path)
        own_seconds, n = _timed(lambda: _n_scores(path), REPEATS)
        assert n == N_SAMPLES
        for name, read, repeats in (
            ("read_eval_log", lambda: len(log.read_eval_log(str(path)).samples), 1),
            ("read_eval_log_sample_summaries", lambda: len(log.read_eval_log_sample_summaries(str(path))), REPEATS),
        ):
            peer_seconds, n = _timed(read, repeats)
            assert n == N_SAMPLES
            yield {
                "name": f"Inspect log of {N_SAMPLES} samples, beside {name}",
                "megabytes": round(path.stat().st_size / 1e6, 1),
                "ours_s": round(own_seconds, 3),
                "peer": f"inspect_ai.log.{name}",
                "peer_s": round(peer_seconds, 3),
                "ratio": round(peer_seconds / own_seconds, 1),
            }


def _timed(read: Callable[[], int], repeats: int) -> tuple[float, int]:
    seconds = []
    for _ in range(repeats):
        gc.collect()
        begun = time.perf_counter()
        n = read()
        seconds.append(time.perf_counter() - begun)
    return median(seconds), n


def _n_scores(path: Path) -> int:
    blocks = inspect_ai.read(path, ReadOptions())
    return sum(len(block.values) for block in blocks if isinstance(block, Scores))


def _write(log: ModuleType, path: Path) -> None:
    """SIMULATED multiple-choice answers: short conversations, an event for each call of the model, one score."""
    model, event = peer("inspect_ai.model"), peer("inspect_ai.event")
    score = peer("inspect_ai.scorer").Score
    random = np.random.default_rng(0)
    words = np.array([f"word{n}" for n in range(5000)])

    def text(n_words: int) -> str:
        return " ".join(words[random.integers(len(words), size=n_words)])

    def sample(number: int) -> Any:
        question, target = text(60), "ABCD"[number % 4]
        messages, events = [model.ChatMessageUser(content=question)], []
        for _ in range(N_TURNS):
            output = model.ModelOutput.from_content("org/model", text(80))
            events.append(
                event.ModelEvent(model="org/model", input=list(messages), tools=[], tool_choice="none",
                                 config=model.GenerateConfig(), output=output)
            )  # fmt: skip
            messages += [output.choices[0].message, model.ChatMessageUser(content=text(10))]
        answer = "ABCD"[int(random.integers(4))]
        scored = score(value="C" if answer == target else "I", answer=answer, explanation=text(40))
        events.append(event.ScoreEvent(score=scored, target=target))
        return log.EvalSample(
            id=number, epoch=1, input=question, choices=[text(5) for _ in range(4)], target=target, messages=messages,
            output=output, events=events, scores={"choice": scored}, metadata={"subject": f"subject {number % 57}"},
        )  # fmt: skip

    spec = log.EvalSpec(
        created="2026-01-01T00:00:00+00:00", task="questions", model="org/model", config=log.EvalConfig(),
        dataset=log.EvalDataset(name="questions", samples=N_SAMPLES),
    )  # fmt: skip
    n_right = 0

    async def write() -> None:
        # As an evaluation does, some samples at a time: given all at once, the writer takes their number squared.
        nonlocal n_right
        recorder = peer("inspect_ai.log._recorders.eval").EvalRecorder(str(path.parent))
        condensed = peer("inspect_ai.log._condense").condense_sample
        await recorder.log_init(spec, str(path), clean=True)
        await recorder.log_start(spec, log.EvalPlan())
        for number in range(N_SAMPLES):
            record = sample(number)
            n_right += record.scores["choice"].value == "C"
            await recorder.log_sample(spec, condensed(record))
            if number % SAMPLES_AT_ONCE == 0:
                await recorder.flush(spec)
        accuracy = log.EvalMetric(name="accuracy", value=n_right / N_SAMPLES)
        scored = log.EvalScore(name="choice", scorer="choice", metrics={"accuracy": accuracy})
        results = log.EvalResults(total_samples=N_SAMPLES, completed_samples=N_SAMPLES, scores=[scored])
        await recorder.log_finish(spec, "success", log.EvalStats(), results, None)

    asyncio.run(write())


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
