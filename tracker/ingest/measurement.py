"""What every file format is translated into: columns of measurements, never rows of objects.

A format yields these blocks; the store resolves the names in them to keys. Blocks that concern the
same prompts share one `Prompts` object, which is then resolved once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import SelectionError
from tracker.run_fields import RunFields

if TYPE_CHECKING:
    from tracker.ingest.archives.archive_file import StoreArchive

Texts = Sequence[str | None]

PROMPTS_PER_BLOCK = 10_000
"""Of a file that is read as a stream: how many prompts, at most, a block is about."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prompts:
    """Prompts as one file calls them, with as much of their content as it holds.

    Attributes:
        keys: ``n`` names; together with the task (where given) they tell the prompts of a namespace apart.
        tasks: ``n`` task names; None where the file names no tasks, so that a key is looked up in all of them.
        namespace: who calls them so: '' for tables, else the harness.
        text: ``n`` questions, without few-shot examples; None where the file does not hold them.
        choices: ``n`` lists of options, or None for prompts without.
        answer: ``n`` gold answers.
        split: ``n`` names such as test or validation.
        details: ``n`` mappings of further fields.
        disambiguated_by: the field of the details that distinguishes prompts of the same name, in one task
            ``key``, ``key#1``, ``key#2``, …; None where nothing does.
        benchmark: what the file says they belong to; the user's word goes before it.
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
    """One model answering one benchmark once, as a file describes it.

    Attributes:
        model: its name.
        benchmark: what the file says it answered; the user's word goes before it.
        model_facts: what the file says of the model: organization, parameters, ...
    """

    model: str
    benchmark: str | None = None
    model_facts: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, kw_only=True)
class MetricDescription:
    """How answers are scored.

    Attributes:
        name: such as ``accuracy``.
        higher_is_better: None where the file does not say.
        lower, upper: smallest and largest possible score; None where unbounded or unknown.
    """

    name: str
    higher_is_better: bool | None = None
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """Scores of one run under one metric.

    Attributes:
        values: ``(n,)`` float64, aligned with ``prompts``; NaN = not measured, stored as no row.
        trials: ``(n,)`` int64, or one number for all.
        places: where in the file the values stand ("column 'gpt-4'"), for messages.
    """

    run: RunDescription
    metric: MetricDescription
    prompts: Prompts
    values: NDArray[np.float64]
    trials: NDArray[np.int64] | int = 0
    places: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """What a model said.

    Attributes:
        text: ``n`` answers as extracted; None where nothing could be extracted.
        probability: ``(n,)`` the model's own probability of that answer, NaN where unknown.
        status: ``n`` of ok, error, empty; None means ok where there is a text, empty where not.
        extraction: how the answer was read off.
        scored_as: the metric under which the store scores the answers against the gold answers it
            holds (equal = 1, else 0, nothing extracted = 0); None where they are only kept.
        predicted: ``(n,)`` whether the file holds an answer for the prompt at all (an empty one included);
            None means for all of them. Prompts without are not measured: no answer, no score.
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
        values: ``(n,)`` float64; NaN = not measured, stored as no row.
        stderr: ``(n,)`` standard errors, NaN where unknown.
        n_prompts: ``n`` numbers of prompts behind them.
    """

    run: RunDescription
    metric: MetricDescription
    tasks: Sequence[str]
    values: NDArray[np.float64]
    stderr: NDArray[np.float64] | None = None
    n_prompts: Sequence[int | None] | None = None


Measurement = Prompts | Scores | Answers | TaskScores


CHOICES: Mapping[str, tuple[str | None, ...]] = {
    "condition": (None, "full", "answer_only"),
    "orient": ("prompts", "models"),
    "values": ("scores", "predictions"),
    "probability_kind": (None, "letters", "likelihoods"),
    "errored": (None, "missing", "wrong"),
    "empty": (None, "wrong", "missing"),
}
"""What those fields of `ReadOptions` may say that are chosen among words."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What the user says about a file; formats take what concerns them.

    Attributes:
        benchmark: name of the benchmark, over what the file says.
        model: name of the model, over what the file says; only for files of one model.
        metric: name of the metric, where the file does not say.
        condition: ``full`` or ``answer_only``, where the file does not say.
        orient: whether the columns of a wide table are ``models`` with prompts in the rows (``prompts``), or
            the rows are models (``models``).
        values: whether a wide table holds ``scores`` or ``predictions``.
        probability_kind: ``letters`` or ``likelihoods``: what a column gold_probability was computed from.
        higher_is_better, lower, upper: facts about the metric, over what is known of it.
        splits: of a file that holds several splits of the prompts, those to take; none means what the format says.
        errored: what an answer that failed for technical reasons counts as: ``missing`` or ``wrong``; None is missing.
        empty: what an answer that was given and holds nothing counts as: ``wrong`` or ``missing``; None is wrong.

    Raises:
        SelectionError: a word that is none of those to choose among.
    """

    benchmark: str | None = None
    model: str | None = None
    metric: str | None = None
    condition: str | None = None
    orient: str = "prompts"
    values: str = "scores"
    probability_kind: str | None = None
    higher_is_better: bool | None = None
    lower: float | None = None
    upper: float | None = None
    splits: tuple[str, ...] = ()
    errored: str | None = None
    empty: str | None = None

    def __post_init__(self) -> None:
        """Refuse a word that is none of the choices; formats would take it for the usual one."""
        for name, words in CHOICES.items():
            chosen = getattr(self, name)
            if chosen not in words:
                choices = ", ".join(str(word) for word in words)
                raise SelectionError(f"{name} is {chosen!r}; it must be one of: {choices}.")
        splits: Any = self.splits
        if isinstance(splits, str):
            raise SelectionError(f"splits is {splits!r}; give a list of names.")

    @property
    def condition_of_runs(self) -> str:
        """The condition of the runs of a file that does not say it."""
        return self.condition or "full"

    def as_json(self) -> dict[str, Any]:
        """The choices, without those that were made later than the first version and are at their defaults.

        A file is known by them, so that what an earlier version took in is known to this one.
        """
        later = {"splits": (), "errored": None, "empty": None}
        return {name: value for name, value in asdict(self).items() if name not in later or value != later[name]}


KNOWN_METRICS = {
    name: MetricDescription(name=name, higher_is_better=True, lower=0.0, upper=1.0)
    for name in (
        "accuracy",
        "acc",
        "acc_norm",
        "exact_match",
        "f1",
        "rouge1",
        "rouge2",
        "rougeL",
        "pass@1",
        "gold_probability_letters",
        "gold_probability_likelihoods",
    )
}


def metric_description(name: str, options: ReadOptions | None = None) -> MetricDescription:
    """What is known of a metric, with the user's word before ours."""
    known = KNOWN_METRICS.get(name.split(",")[0], MetricDescription(name=name))
    explicit = options or ReadOptions()
    return MetricDescription(
        name=name,
        higher_is_better=known.higher_is_better if explicit.higher_is_better is None else explicit.higher_is_better,
        lower=known.lower if explicit.lower is None else explicit.lower,
        upper=known.upper if explicit.upper is None else explicit.upper,
    )


@dataclass(frozen=True, kw_only=True)
class ParsedFile:
    """A file as read, and found to be sound; nothing of it is stored yet.

    Attributes:
        path: the file the user named, or that was found in the folder they named.
        files: every file that belongs to it; what is stored is stored of all of them, or of none.
        format: name of the format.
        harness: program and version that wrote it, where known.
        digest: SHA-256 of the files' bytes.
        identity: SHA-256 of digest, format and the options it was read with: the same again changes nothing.
        measurements: its blocks, in the order in which they must be stored; those of a large file are read back from
            a temporary file each time.
        warnings: what the reader should be explicit ("3 columns were not scores: ...").
        damage: why the file could be read in part only; '' where all of it was.
        archive: the store that the file holds instead of measurements.
    """

    path: Path
    files: tuple[Path, ...]
    format: str
    harness: str | None = None
    digest: str
    identity: str
    measurements: Sequence[Measurement]
    warnings: Sequence[str] = ()
    damage: str = ""
    archive: StoreArchive | None = None

    def close(self) -> None:
        """Give up the measurements, and the temporary file that may hold them."""
        if callable(close := getattr(self.measurements, "close", None)):
            close()
        if self.archive is not None:
            self.archive.close()
