"""Measurements: the common result of all file formats, in columns.

A format yields these blocks, and the store resolves their names to keys. Blocks about the same prompts share one
`Prompts` object, which is resolved once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tracker.errors import SelectionError
from tracker.run_fields import RunFields

Texts = Sequence[str | None]

PROMPTS_PER_BLOCK = 10_000
"""Maximal number of prompts per block of a streamed file."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prompts:
    """Prompts as named in a file, with the content that it holds.

    Attributes:
        keys: ``n`` names; with the task (if any), they identify the prompts of a namespace.
        tasks: ``n`` task names; None if the file names no tasks, so that a key is searched in all of them.
        namespace: origin of the names: '' for tables, else the harness.
        text: ``n`` questions without few-shot examples; None if the file does not hold them.
        choices: ``n`` lists of options, or None for prompts without.
        answer: ``n`` reference answers.
        split: ``n`` names such as test or validation.
        details: ``n`` mappings of further fields.
        disambiguated_by: field of the details that distinguishes prompts of the same name, in one task ``key``,
            ``key#1``, ``key#2``, …; None if there is none.
        benchmark: benchmark in the file; read options override it.
        lines: ``(n,)`` int64 line of the file, or row counted from 1, for messages.
    """

    keys: Sequence[str]
    tasks: Sequence[str] | None = None
    namespace: str = ""
    text: Texts | None = None
    choices: Sequence[Sequence[str] | None] | None = None
    answer: Texts | None = None
    split: Texts | None = None
    details: Sequence[Mapping[str, Any] | None] | None = None
    disambiguated_by: str | None = None
    benchmark: str | None = None
    lines: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, kw_only=True)
class RunDescription(RunFields):
    """A model evaluated once on a benchmark, as a file describes it.

    Attributes:
        model: its name.
        benchmark: benchmark in the file; read options override it.
        model_facts: facts of the model: organization, parameters, ...
    """

    model: str
    benchmark: str | None = None
    model_facts: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, kw_only=True)
class MetricDescription:
    """A metric.

    Attributes:
        name: such as ``accuracy``.
        higher_is_better: None if unknown.
        lower, upper: smallest and largest possible score; None if unbounded or unknown.
    """

    name: str
    higher_is_better: bool | None = None
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """Scores of one run for one metric.

    Attributes:
        values: ``(n,)`` float64, aligned with ``prompts``; NaN = missing, stored as no row.
        trials: ``(n,)`` int64, or one number for all.
        places: place of the values in the file ("column 'gpt-4'"), for messages.
        logged: ``(n,)`` float64, the harness's own values, where read options count failed or empty answers
            differently; None where they are equal.
        weights: ``(n,)`` float64 by metric: the weights of the rows in a reported aggregate, such as numbers of words.
        groups: ``n`` values of fields of the prompts, by field, for which the harness reports separate scores.
    """

    run: RunDescription
    metric: MetricDescription
    prompts: Prompts
    values: NDArray[np.float64]
    trials: NDArray[np.int64] | int = 0
    places: str = ""
    logged: NDArray[np.float64] | None = None
    weights: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    groups: Mapping[str, Texts] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """Answers of one run.

    Attributes:
        text: ``n`` extracted answers; None if nothing could be extracted.
        probability: ``(n,)`` the model's probability of that answer, NaN if unknown.
        status: ``n`` of ok, error, empty; None means ok for a text, else empty.
        extraction: name of the method that extracted the answers.
        scored_as: metric for comparing the answers with the stored reference answers (equal = 1, else 0; nothing
            extracted = 0); None to store them unscored.
        predicted: ``(n,)`` whether the file holds an answer for the prompt (an empty one included); None means for all.
            Prompts without an answer get no score.
    """

    run: RunDescription
    prompts: Prompts
    text: Texts
    probability: NDArray[np.float64] | None = None
    status: Sequence[str] | None = None
    extraction: str = ""
    trials: NDArray[np.int64] | int = 0
    scored_as: MetricDescription | None = None
    predicted: NDArray[np.bool_] | None = None
    places: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskScores:
    """Scores of one run for whole tasks.

    Attributes:
        tasks: ``n`` task names.
        values: ``(n,)`` float64; NaN = missing, stored as no row.
        stderr: ``(n,)`` standard errors, NaN if unknown.
        n_prompts: ``n`` numbers of prompts.
    """

    run: RunDescription
    metric: MetricDescription
    tasks: Sequence[str]
    values: NDArray[np.float64]
    stderr: NDArray[np.float64] | None = None
    n_prompts: Sequence[int | None] | None = None


Measurement = Prompts | Scores | Answers | TaskScores


@dataclass(frozen=True)
class StoreFile:
    """A SQLite file that holds a store instead of measurements.

    Attributes:
        path: the file.
    """

    path: Path


Entity = Literal["model", "task", "prompt"]


class KnownNames(Protocol):
    """Names in a store."""

    def kind(self, name: str) -> Entity | None:
        """Return what a name stands for; None if it is unknown, or stands for several."""


CHOICES: Mapping[str, tuple[str | None, ...]] = {
    "condition": (None, "full", "answer_only"),
    "orient": (None, "prompts", "models", "tasks"),
    "values": ("scores", "predictions"),
    "probability_kind": (None, "letters", "likelihoods"),
    "errored": (None, "missing", "wrong"),
    "empty": (None, "wrong", "missing"),
}
"""Allowed values of fields of `ReadOptions`."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """User options for reading a file; each format uses those that apply to it.

    Attributes:
        benchmark: name of the benchmark; overrides the file.
        model: name of the model; overrides files with a single model.
        metric: name of the metric if the file has none.
        condition: ``full`` or ``answer_only`` if the file has none.
        orient: ``prompts`` if the rows of a table are prompts and its columns models; ``models`` if the rows are models
            and the columns prompts; ``tasks`` if the rows are tasks and the columns models; None to detect it.
        values: whether a wide table holds ``scores`` or ``predictions``.
        probability_kind: ``letters`` or ``likelihoods``, the basis of a column gold_probability.
        higher_is_better, lower, upper: properties of the metric; override the known ones.
        splits: splits to read of a file with several splits; empty for the format's default.
        errored: how answers count that failed for technical reasons: ``missing`` (default) or ``wrong``.
        empty: how empty answers count: ``wrong`` (default) or ``missing``.
        columns: column of each role of a table (model, task, prompt, score, …), for columns with unknown names.
        task_columns: columns of a leaderboard that are tasks, by names or patterns such as ``MMLU*``; empty to detect
            them.
        ignore_columns: columns of a table that are not read, by names or patterns.
        known_names: names in the store, by which rows and columns are recognized.

    Raises:
        SelectionError: an option has an unknown value.
    """

    benchmark: str | None = None
    model: str | None = None
    metric: str | None = None
    condition: str | None = None
    orient: str | None = None
    values: str = "scores"
    probability_kind: str | None = None
    higher_is_better: bool | None = None
    lower: float | None = None
    upper: float | None = None
    splits: tuple[str, ...] = ()
    errored: str | None = None
    empty: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)
    task_columns: tuple[str, ...] = ()
    ignore_columns: tuple[str, ...] = ()
    known_names: KnownNames | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Reject unknown values, which formats would read as the default."""
        for name, words in CHOICES.items():
            chosen = getattr(self, name)
            if chosen not in words:
                choices = ", ".join(str(word) for word in words)
                raise SelectionError(f"{name} is {chosen!r}; choose from: {choices}.")
        for name in ("splits", "task_columns", "ignore_columns"):
            if isinstance(names := getattr(self, name), str):
                raise SelectionError(f"{name} is {names!r}; pass a list of names.")

    @property
    def condition_of_runs(self) -> str:
        """Return the condition of runs without one in the file."""
        return self.condition or "full"

    def as_json(self) -> dict[str, Any]:
        """Return the options, without those that were added after the first version and have their defaults.

        Files are identified by these options, so that files imported by earlier versions are recognized.
        """
        later: dict[str, Any] = {
            "splits": (),
            "errored": None,
            "empty": None,
            "columns": {},
            "task_columns": (),
            "ignore_columns": (),
        }
        values = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "known_names"}
        # The default was ``prompts``; an explicit choice is another way to read the same file.
        values["orient"] = {None: "prompts", "prompts": "explicit prompts"}.get(self.orient, self.orient)
        return {name: value for name, value in values.items() if name not in later or value != later[name]}


KNOWN_METRICS = {
    name: MetricDescription(name=name, higher_is_better=True, lower=0.0, upper=1.0)
    for name in (
        "accuracy",
        "acc",
        "acc_norm",
        "exact_match",
        "math_verify",
        "judge_correct",
        "f1",
        "rouge1",
        "rouge2",
        "rougeL",
        "pass@1",
        "gold_probability_letters",
        "gold_probability_likelihoods",
    )
} | {
    "label_probability": MetricDescription(name="label_probability", lower=0.0, upper=1.0),
    "judge_score": MetricDescription(name="judge_score", higher_is_better=True, lower=0.0, upper=10.0)
} | {
    name: MetricDescription(name=name, higher_is_better=False)
    for name in (
        "perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "ter", "wer", "cer", "brier_score", "ppl",
        "ece", "mae", "mse", "rmse", "nll", "loss", "error_rate",
    )
}  # fmt: skip


def metric_description(name: str, options: ReadOptions | None = None) -> MetricDescription:
    """Return the description of a metric; read options override known properties.

    The direction is known in any letter case, bounds are not: ``F1`` may be a percentage.
    """
    plain = "pass@1" if re.fullmatch(r"pass@\d+", name) else name.split(",")[0]
    standard = KNOWN_METRICS.get(plain.lower(), MetricDescription(name=name))
    known = KNOWN_METRICS.get(plain, MetricDescription(name=name, higher_is_better=standard.higher_is_better))
    explicit = options or ReadOptions()
    return MetricDescription(
        name=name,
        higher_is_better=known.higher_is_better if explicit.higher_is_better is None else explicit.higher_is_better,
        lower=known.lower if explicit.lower is None else explicit.lower,
        upper=known.upper if explicit.upper is None else explicit.upper,
    )


@dataclass(frozen=True)
class ReportedDifference:
    """A score reported by a harness that differs from the one computed from its rows.

    Attributes:
        run: the run; None for all runs of the file.
        text: both values, for people.
    """

    run: RunDescription | None
    text: str


@dataclass(frozen=True, kw_only=True)
class ParsedFile:
    """A parsed and valid file, not stored yet.

    Attributes:
        path: the file, as named by the user or found in a folder.
        files: the file and its companion files; all are stored, or none.
        format: name of the format.
        harness: program and version that wrote it, if known.
        reading: what the rows and columns of a table are.
        digest: SHA-256 of the files' bytes.
        identity: SHA-256 of digest, format and read options; storing the same identity again changes nothing.
        measurements: its blocks in storage order; those of a large file are read from a temporary file each time.
        warnings: messages for the user ("3 columns were not scores: ...").
        differences: reported scores that differ from those computed from the rows.
        damage: why only a part of the file could be read; '' if all of it was.
        store: the store that the file holds instead of measurements.
    """

    path: Path
    files: tuple[Path, ...]
    format: str
    harness: str | None = None
    reading: str | None = None
    digest: str
    identity: str
    measurements: Sequence[Measurement]
    warnings: Sequence[str] = ()
    differences: Sequence[ReportedDifference] = ()
    damage: str = ""
    store: StoreFile | None = None

    def close(self) -> None:
        """Release the measurements and their temporary file."""
        if callable(close := getattr(self.measurements, "close", None)):
            close()
