"""Direction of a metric by the arrows in headings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.measurement import MetricDescription, ReadOptions
from tracker.ingest.tables.names.column_headings import DOWN, heading_direction
from tracker.ingest.tables.names.vocabulary import SPEECH_SIDES
from tracker.name_lists import join_names

MAX_NAMES = 3


def apply_direction(
    path: Path,
    columns: Mapping[str, NDArray[np.float64]],
    metric: MetricDescription,
    options: ReadOptions,
    *,
    are_rows: bool = False,
    beside: Sequence[str] = (),
) -> MetricDescription:
    """Return the metric with the direction that the headings state; a direction in the options overrides them.

    Headings state it by arrows, or by a metric of which smaller values are better, such as WER.

    Args:
        path: the file, for messages.
        columns: scores by heading, or by the name of the row.
        metric: the metric without arrows.
        options: how to read the file.
        are_rows: whether the tasks are rows.
        beside: headings of averages of the scores and of side columns, which state the direction of columns that do
            not.

    Raises:
        BadInputError: the arrows differ, contradict the metric or the signs of the scores.
    """
    up = [name for name in columns if heading_direction(name) is True]
    down = [name for name in columns if heading_direction(name) is False]
    if options.higher_is_better is not None:
        return metric
    if not (up or down):
        stated = {heading_direction(name) for name in (metric.name, *beside)}
        stated |= {False for name in beside if SPEECH_SIDES.match(name)}
        is_lower = metric.higher_is_better is None and False in stated and True not in stated
        return replace(metric, higher_is_better=False) if is_lower else metric
    if down and len(down) < len(columns):
        rest = [name for name in columns if name not in down]
        raise BadInputError(
            path,
            f"smaller is better in {_join(down)}, larger in {_join(rest)}. One metric has one direction.",
            advice="Write the rows of each direction to a file, and import each under its own --metric."
            if are_rows
            else "Import each direction under its own metric:\n"
            f"  {_command(path, '--task-columns', down, 'loss')}\n"
            f"  {_command(path, '--ignore-columns', down, 'score')}",
        )
    if down:
        numbers = np.concatenate([values[~np.isnan(values)] for values in columns.values()])
        if len(numbers) and numbers.max() <= 0 and numbers.min() < 0:
            raise BadInputError(
                path,
                f"smaller is better in {_join(down)}, but all scores are negative, as if their sign were reversed.",
                advice="Add --higher-is-better if the sign is reversed, or --lower-is-better if it is not.",
            )
    if metric.higher_is_better is not None and metric.higher_is_better != bool(up):
        raise BadInputError(
            path,
            f"the direction of {_join(down or up)} contradicts that of the metric {metric.name!r}.",
            advice="Choose another --metric, or state the direction with --lower-is-better or --higher-is-better.",
        )
    return replace(metric, higher_is_better=bool(up))


def _join(names: Sequence[str]) -> str:
    return join_names(map(repr, names), MAX_NAMES)


def _command(path: Path, option: str, down: Sequence[str], metric: str) -> str:
    marks = dict.fromkeys(mark for name in down for mark in DOWN if mark in name)
    patterns = [f"*{mark}*" for mark in marks] if all(any(mark in name for mark in marks) for name in down) else down
    columns = " ".join(f"{option} {shlex.quote(pattern)}" for pattern in patterns)
    return f"suffrage ingest {shlex.quote(str(path))} {columns} --metric {metric}"
