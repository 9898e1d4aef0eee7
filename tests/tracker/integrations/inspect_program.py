"""Evaluations by Inspect AI with a mock model and the hook, in a process of their own.

    python inspect_program.py FOLDER

Writes FOLDER/cases.json: for each case its logs, their statuses, and the warnings of the hook.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.hooks import Hooks
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import choice, includes, match
from inspect_ai.solver import generate, multiple_choice

from tracker.integrations.inspect import StoreLogs

assert issubclass(StoreLogs, Hooks)
NAME = "mockllm/model"
WARNINGS: list[str] = []


class Warned(logging.Handler):
    """Keeps the warnings of the hook."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            WARNINGS.append(record.getMessage())


def respond(messages: Any, *_: object) -> ModelOutput:
    """Sums are right but for 2+1; every choice is B; a request to fail fails."""
    text = messages[-1].text
    if "fail" in text:
        raise RuntimeError("the model failed")
    number = re.search(r"(\d+)\+1", text)
    answer = "ANSWER: B" if number is None else str(int(number[1]) + 1 + (number[1] == "2"))
    output = ModelOutput.from_content(NAME, answer)
    output.usage = ModelUsage(input_tokens=3, output_tokens=1, total_tokens=4)
    return output


@task
def sums() -> Task:
    samples = [Sample(id=i, input=f"What is {i}+1?", target=str(i + 1)) for i in range(5)]
    return Task(dataset=samples, solver=generate(), scorer=[match(), includes()], epochs=2)


@task
def choices() -> Task:
    samples = [Sample(id=f"c{i}", input=f"Which one, {i}?", choices=["x", "y"], target="AB"[i % 2]) for i in range(4)]
    return Task(dataset=samples, solver=multiple_choice(), scorer=choice())


@task
def failing() -> Task:
    samples = [Sample(id=1, input="What is 1+1?", target="2"), Sample(id=2, input="fail", target="2")]
    return Task(dataset=samples, solver=generate(), scorer=match())


def run(tasks: list[Task], logs: str, **options: Any) -> dict[str, Any]:
    """Logs, statuses and warnings of an evaluation."""
    WARNINGS.clear()
    model = get_model(NAME, custom_outputs=respond, memoize=False)
    logs_written = eval(tasks, model=model, log_dir=logs, display="none", **options)
    return {
        "logs": [log.location for log in logs_written],
        "statuses": [log.status for log in logs_written],
        "warnings": list(WARNINGS),
    }


def main(folder: Path) -> None:
    os.chdir(folder)
    logging.getLogger("tracker.integrations.storing").addHandler(Warned())
    cases: dict[str, Any] = {"disabled": run([sums()], "logs/disabled")}
    store = "SUFFRAGE_DATABASE_URL"
    os.environ[store] = f"sqlite:///{folder}/together.db"
    cases["together"] = run([sums(), choices()], "logs/together", max_tasks=2)
    os.environ[store] = f"sqlite:///{folder}/setting.db"
    os.environ["SUFFRAGE_BENCHMARK"] = "mine"
    cases["setting"] = run([sums()], "logs/setting", log_format="json")
    del os.environ["SUFFRAGE_BENCHMARK"]
    os.environ[store] = f"sqlite:///{folder}/remote.db"
    cases["remote"] = run([choices()], "memory://logs")
    os.environ[store] = f"sqlite:///{folder}/failing.db"
    cases["failing"] = run([failing()], "logs/failing")
    Path("foreign.db").write_text("no store")
    os.environ[store] = f"sqlite:///{folder}/foreign.db"
    cases["foreign"] = run([choices()], "logs/foreign")
    Path("cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
