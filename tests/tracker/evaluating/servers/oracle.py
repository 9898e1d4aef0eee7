"""A model that knows the right answer to each prompt, or a wrong one, and reads everything else out of the request."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tracker

N_PROMPTS = 6
"""Prompts that are evaluated of each benchmark."""
SPLITS = {"test": 1, "dev": 50, "train": 60}
"""The first number of each split."""
N_OF_SPLIT = {"test": N_PROMPTS, "dev": 7, "train": 10}
MARK = re.compile(r"(?:Number|of) (\d+)\b")
THINGS = ("rain", "fish", "wood", "iron")
WORDS = {True: "Storm damages several coastal towns", False: "Parliament elects another speaker"}


def solution(n: int) -> str:
    """An answer as GSM8K has them: thousands separators, and the number after its mark."""
    return f"Half of {2 * n} is {n}.\nTogether <<{n}+1000={n + 1000}>>{n + 1000:,}.\n#### {n + 1000:,}"


def boxed(n: int) -> str:
    """An answer as MATH has them."""
    return rf"Half of {2 * n} is {n}, thus $x=\boxed{{{n + 1000}}}$."


def options(n: int) -> list[str]:
    """Four options that name their prompt."""
    return [f"{thing} of {n}" for thing in THINGS]


def summary(n: int, right: bool = True) -> str:
    return f"{WORDS[right]} {'once' if right else 'again'}{n}."


@dataclass
class Oracle:
    """Answers prompts rightly or wrongly.

    Attributes:
        benchmark: decides what is known.
        is_right: whether the answer to a prompt is right, by its number.
        reasons: whether two of three responses contain reasoning, which argues for the opposite.
        form: how an answer is written: `answer`, `number` alone, or a `sentence` around a label.
    """

    benchmark: str
    is_right: Callable[[int], bool]
    reasons: bool = True
    form: str = "answer"

    def known(self, n: int, right: bool) -> str:
        """The text of an answer to prompt n."""
        if self.benchmark in ("gsm8k", "math"):
            number = n if right else n + 1
            if self.form == "number":
                return f"It is {number + 1000}"
            return solution(number) if self.benchmark == "gsm8k" else boxed(number)
        if self.benchmark == "cnn_dailymail":
            return summary(n, right)
        if self.benchmark == "anli":
            return ("True", "Neither", "False")[(n + (not right)) % 3]
        return options(n)[(n + (not right)) % 4]

    def answer(self, text: str, right: bool) -> str:
        """The answer as the request asks for it: the label of an option that it lists, else a text."""
        n = number_of(text)
        known = self.known(n, right)
        labels = re.findall(rf"^\(?(\w+)[.)] {re.escape(known)}$", text, re.M)
        if labels and self.form == "sentence":
            return f"It is not cold. The answer is {labels[-1]}."
        return labels[-1] if labels else known

    def write(self, text: str, body: dict[str, Any]) -> dict[str, Any]:
        """A response, or the verdict of a judge."""
        text = content(body)
        if "Verdict:" in text:
            return {"content": self.grade(text)}
        is_right = self.is_right(number_of(text))
        answer, distractor = self.answer(text, is_right), self.answer(text, not is_right)
        kind = number_of(text) // 2 % 3 if self.reasons else 0
        if kind == 1:
            return {"content": f"<think>{distractor}</think>\n{answer}"}
        if kind == 2 and "messages" in body:
            return {"content": answer, "reasoning_content": distractor}
        return {"content": f"{distractor}</think>{answer}" if kind == 2 else answer}

    def grade(self, text: str) -> str:
        """The verdict on an answer that equals the reference answer, or does not."""
        reference = text.split("Reference answer:\n")[1].split("\n\nAnswer to grade:\n")
        is_right = reference[1].startswith(reference[0])
        verdict = ("CORRECT" if is_right else "INCORRECT") if "CORRECT" in text else 10 if is_right else 1
        return f"<think>Verdict: INCORRECT</think>I compared both.\nVerdict: {verdict}"

    def first(self, text: str) -> dict[str, float]:
        """Log-probabilities of first tokens: nearly all on the label of the answer."""
        text = read(text)
        if MARK.search(text) is None:
            return {" A": math.log(0.5), " B": math.log(0.4)}  # the probe
        return {f" {self.answer(text, self.is_right(number_of(text)))}": math.log(0.97), " The": math.log(0.02)}

    def echoed(self, text: str) -> Callable[[str, str], float]:
        """Log-probability of each token of a text: high if it ends with the answer."""
        ends = MARK.search(text) is not None and text.endswith(self.answer(text, self.is_right(number_of(text))))
        return lambda before, token: -0.01 if ends else -5.0


def read(text: str) -> str:
    """The text of a prompt, or of the turns of a conversation."""
    if not text.startswith("[{"):
        return text
    return "\n".join(turn["content"] for turn in json.loads(text))


def content(body: dict[str, Any]) -> str:
    """The text of a request."""
    return body["prompt"] if "prompt" in body else "\n".join(turn["content"] for turn in body["messages"])


def number_of(text: str) -> int:
    """The number of the prompt that a text ends with."""
    return int(MARK.findall(text)[-1])


def write_benchmarks(store: tracker.Store, folder: Path) -> None:
    """Import all benchmarks in the form in which they are published."""
    rows: dict[str, Callable[[int], dict[str, Any]]] = {
        "gsm8k": lambda n: {"question": f"Number {n}?", "answer": solution(n)},
        "math": lambda n: {"question": f"Number {n}?", "answer": boxed(n)},
        "quiz": lambda n: {"question": f"Number {n}?", "choices": options(n), "answer": "ABCD"[n % 4]},
        "cnn_dailymail": lambda n: {"article": f"Number {n} is news.", "highlights": summary(n), "id": str(n)},
        "anli": lambda n: {
            "uid": str(n), "context": f"It is Number {n}.", "hypothesis": "It holds.", "label": "enc"[n % 3],
        },
        "hellaswag": lambda n: {
            "ind": n, "activity_label": "Walking", "ctx": f"Number {n} walks.", "endings": options(n), "label": n % 4,
        },
        "commonsense_qa": lambda n: {
            "id": str(n), "answerKey": "ABCD"[n % 4], "question": {
                "question_concept": "thing", "stem": f"Number {n}?",
                "choices": [{"label": "ABCD"[i], "text": option} for i, option in enumerate(options(n))],
            },
        },
    }  # fmt: skip
    for benchmark, row in rows.items():
        place = folder / benchmark / "R3"
        place.mkdir(parents=True)
        for split, first in SPLITS.items():
            lines = (json.dumps(row(n)) for n in range(first, first + N_OF_SPLIT[split]))
            (place / f"{split}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        store.prompts_from(benchmark, folder / benchmark)
    for split, first in SPLITS.items():
        (folder / "mmlu" / split).mkdir(parents=True)
        rows_of_file = ([f"Number {n}?", *options(n), "ABCD"[n % 4]] for n in range(first, first + N_OF_SPLIT[split]))
        path = folder / "mmlu" / split / f"world_facts_{split}.csv"
        path.write_text("\n".join(map(",".join, rows_of_file)), encoding="utf-8")
    store.prompts_from("mmlu", folder / "mmlu")
