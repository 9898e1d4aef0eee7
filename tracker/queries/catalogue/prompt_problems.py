"""Find stored prompts whose content is wrong; see `tracker.prompt_checks`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import split_keys
from tracker.prompt_checks import PromptChecks
from tracker.queries.catalogue.prompt_names import load_prompt_names
from tracker.queries.resolution import benchmark_label, find_benchmark
from tracker.queries.sql import tables


@dataclass(frozen=True, kw_only=True)
class PromptProblem:
    """A problem of one prompt.

    Attributes:
        problem: one of `tracker.prompt_checks.PROBLEMS`.
        task: name of its task.
        prompt: its name in files; its key without a name.
        answer: its reference answer.
        text: its question.
    """

    problem: str
    task: str
    prompt: str
    answer: str | None
    text: str | None


def list_prompt_problems(session: Session, benchmark: str) -> list[PromptProblem]:
    """Return the problems of a benchmark's prompts, by kind of problem.

    Raises:
        NotFoundError: the benchmark does not exist.
    """
    problems = _check(session, find_benchmark(session, benchmark).id)
    prompt = tables.prompt.c
    keys = sorted({key for keys in problems.values() for key in keys})
    rows: dict[int, sa.Row[tuple[object, ...]]] = {}
    names: dict[int, str] = {}
    for part in split_keys(keys):
        query = sa.select(prompt.id, tables.task.c.name, prompt.answer, prompt.text).join(
            tables.task, tables.task.c.id == prompt.task_id
        )
        rows |= {row.id: row for row in session.execute(query.where(prompt.id.in_(part)))}
        names |= load_prompt_names(session, tables.prompt_alias.c.prompt_id.in_(part))
    return [
        PromptProblem(
            problem=problem,
            task=rows[key].name,
            prompt=names.get(key, str(key)),
            answer=rows[key].answer,
            text=rows[key].text,
        )
        for problem, of_problem in problems.items()
        for key in of_problem
    ]


def count_prompt_problems(session: Session) -> dict[str, Mapping[str, int]]:
    """Return the number of prompts with each problem, by benchmark; benchmarks without problems are left out."""
    benchmark = tables.benchmark.c
    stored = session.execute(sa.select(benchmark.id, benchmark.name, benchmark.revision).order_by(benchmark.name)).all()
    counts = {
        benchmark_label(row.name, row.revision): {
            problem: len(keys) for problem, keys in _check(session, row.id).items() if keys
        }
        for row in stored
    }
    return {label: by_problem for label, by_problem in counts.items() if by_problem}


def _check(session: Session, benchmark_id: int) -> dict[str, list[int]]:
    """Return the keys of the prompts with each problem."""
    prompt = tables.prompt.c
    query = (
        sa.select(prompt.id, prompt.content_hash, prompt.choices, prompt.answer)
        .join(tables.task, tables.task.c.id == prompt.task_id)
        .where(tables.task.c.benchmark_id == benchmark_id)
        .where(sa.or_(prompt.answer.is_not(sa.null()), prompt.choices.is_not(sa.null())))  # others have no problems
        .order_by(prompt.id)
    )
    checks: PromptChecks[int] = PromptChecks()
    for row in session.execute(query.execution_options(yield_per=10_000)):
        checks.add(row.id, row.content_hash, row.choices, row.answer)
    return checks.found_by_problem
