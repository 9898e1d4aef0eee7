"""Judgments of Arena-Hard: model_judgment/<judge>/<model>.jsonl, two games of each prompt against the fixed baseline.

The score of a prompt is the model's share of wins in both games; strong verdicts (A>>B) count three times, draws
one half.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import ERRORED, PromptContent, RunBuilders, describe_policy
from tracker.ingest.files.file_summary import first_keys
from tracker.ingest.files.json_files import iterate_json_lines
from tracker.ingest.files.json_values import first_bytes, mapping, text
from tracker.ingest.files.mismatch import first_missing_key
from tracker.ingest.files.question_file import find_questions, read_questions
from tracker.ingest.measurement import Measurement, MetricDescription, ReadOptions, RunDescription

SPECIFICITY = 30
RECOGNIZED_BY = ".jsonl that begins with a model, a judge and its games"
NAMESPACE = "arena_hard"
FIELDS = ("model", "judge", "games")
BASELINE = "gpt-4-0314"
"""Baseline of version 0.1, whose judgments do not name it."""
STRONG = 3
"""Weight of a strong verdict."""
SHARES = {"A>B": 1.0, "B<A": 1.0, "A=B": 0.5, "B=A": 0.5, "A<B": 0.0, "B>A": 0.0}
"""Share of the win of side A."""
WIN_RATE = MetricDescription(name="win_rate", higher_is_better=True, lower=0.0, upper=1.0)


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file does not hold judgments of Arena-Hard."""
    data = first_bytes(path)
    if isinstance(data, str):
        return data
    is_object = data.lstrip().startswith(b"{")
    return first_missing_key(first_keys(data), FIELDS) if is_object else "it does not start with a JSON object"


def companion_files(path: Path) -> Sequence[Path]:
    """Return the file of the questions."""
    return find_questions(path)


def harness_name(path: Path) -> str | None:
    """Return the program; its judgments do not contain the version."""
    return "arena-hard-auto"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield a score for each prompt.

    Raises:
        BadInputError: a line is no judgment, or has an unknown verdict.
    """
    builders, questions = RunBuilders(NAMESPACE, path.name), read_questions(path)
    battles: dict[str, list[float]] = defaultdict(list)
    n_failed = 0
    try:
        for line, data in iterate_json_lines(path):
            row = mapping(data)
            key = text(row.get("uid")) or text(row.get("question_id"))
            model = options.model or text(row.get("model"))
            if key is None or model is None or not isinstance(row.get("games"), list):
                raise BadInputError(path, f"line {line}: is no judgment with uid, model and games.")
            wins = _wins(path, line, row["games"])
            builder = builders.builder(_run(path, model, row, options))
            task = text(row.get("category")) or ""
            at = builder.row(task, key, 0, PromptContent(text=questions.get(key)), line)
            n_failed += not wins
            battles[model] += wins
            missing = 0.0 if options.errored == "wrong" else math.nan
            try:
                builder.score(at, WIN_RATE, math.fsum(wins) / len(wins) if wins else missing)
            except ValueError as error:
                raise BadInputError(path, f"line {line}, prompt {key!r}: {error}.") from error
            yield from builders.full_blocks()
    except BadInputError:
        yield from builders.blocks()
        raise
    yield from builders.blocks()
    for model, wins in battles.items():
        if wins:
            share = math.fsum(wins) / len(wins)
            yield f"{model}: Arena-Hard's own score is {share:.1%}, in which prompts with strong verdicts weigh more"
    if n_failed:
        noun = "prompt has no verdict|prompts have no verdict"
        yield describe_policy(n_failed, ERRORED, options.errored or "missing", noun)


def _wins(path: Path, line: int, games: Sequence[Any]) -> list[float]:
    """Return the model's share of each win; empty if a game has no verdict.

    The baseline is side A of the first game, and side B of the second.
    """
    wins: list[float] = []
    for place, game in enumerate(games):
        verdict = mapping(game).get("score")
        if verdict is None:
            return []
        plain = verdict.replace(">>", ">").replace("<<", "<") if isinstance(verdict, str) else ""
        if plain not in SHARES:
            raise BadInputError(path, f"line {line}: unknown verdict {str(verdict)[:40]!r}; expected A>B, A>>B, A=B, …")
        share = SHARES[plain] if place % 2 else 1 - SHARES[plain]
        wins += [share] * (STRONG if plain != verdict else 1)
    return wins


def _run(path: Path, model: str, row: Mapping[str, Any], options: ReadOptions) -> RunDescription:
    version = next(
        (part for part in reversed(path.absolute().parts[:-1]) if part.startswith("arena-hard")), "arena-hard"
    )
    baseline = text(row.get("baseline")) or (BASELINE if "question_id" in row else None)
    settings = {"judge": text(row.get("judge")), "baseline": baseline}
    return RunDescription(
        model=model,
        benchmark=options.benchmark or version,
        settings={name: value for name, value in settings.items() if value},
    )
