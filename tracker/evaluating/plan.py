"""What is to be asked of whom, and how: an evaluation before it begins."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from tracker.errors import SelectionError
from tracker.evaluating.option_values import (
    ANSWER_ONLY_EXAMPLES,
    APIS,
    CONDITIONS,
    ERRORED_VALUES,
    EXAMPLE_CHOICES,
    LABELS,
    METHODS,
    TOO_LONG_ACTIONS,
)

CHOICES = {
    "method": (None, *METHODS),
    "example_choice": EXAMPLE_CHOICES,
    "answer_only_examples": ANSWER_ONLY_EXAMPLES,
    "labels": (None, *LABELS),
    "too_long": TOO_LONG_ACTIONS,
    "errored": (None, *ERRORED_VALUES),
    "api": APIS,
}
"""What fields may say that are chosen among words."""
MIN_WHOLE_NUMBERS = {
    "few_shot": 0,
    "limit": 1,
    "max_tokens": 1,
    "trials": 1,
    "batch_size": 1,
    "concurrency": 1,
    "tries": 1,
}
"""Fields that are whole numbers, and the least they may be."""
NOT_NEGATIVE = ("temperature", "price_read", "price_written")
ABOVE_ZERO = ("top_p", "requests_per_minute", "tokens_per_minute", "timeout")
KEYWORDS = {"example_choice": "shots", "answer_only_examples": "answer_only_shots"}
"""Keywords of `Plan.from_options` that differ from the field they set, by field."""
OPTIONS = {"conditions": "condition", "metrics": "metric", **KEYWORDS}
"""Options of the command line that differ from the field they set, by field."""


class _ValidatedSettings:
    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            value = getattr(self, name, allowed[0])
            if value not in allowed:
                known = ", ".join(str(choice) for choice in allowed if choice is not None)
                raise SelectionError(f"{KEYWORDS.get(name, name)} is {value!r}; it must be one of: {known}.")
        for name, lowest in MIN_WHOLE_NUMBERS.items():
            self._check(name, f"a whole number from {lowest}", int, lambda n, lowest=lowest: n >= lowest)  # type: ignore[misc]
        for name in NOT_NEGATIVE:
            self._check(name, "a number from 0", (int, float), lambda n: n >= 0)
        for name in ABOVE_ZERO:
            self._check(name, "a number above 0", (int, float), lambda n: n > 0)
        self._check("top_p", "at most 1", (int, float), lambda n: n <= 1)

    def _check(self, name: str, requirement: str, kind: Any, accepts: Callable[[Any], bool]) -> None:
        value = getattr(self, name, None)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind) or not accepts(value)):
            raise SelectionError(f"{name} is {value!r}; it must be {requirement}.")


@dataclass(frozen=True, kw_only=True)
class PromptSettings(_ValidatedSettings):
    """Which prompts, and in which words.

    Attributes:
        template: name of one that is built in, or the path of a file; None for the one that suits the prompts.
        labels: what options are called: ``letters``, ``digits``, ``words`` (their texts); None as the template says.
        method: one of `tracker.evaluating.option_values.METHODS`; None as the template's answer suggests.
        chat: whether prompts are put as turns of a conversation, by the chat template of the model.
        few_shot: worked examples before each prompt.
        few_shot_split: the split they come from.
        example_choice: ``fixed``, the same for all prompts of a task, or ``per-prompt``, drawn by ``seed``.
        answer_only_examples: where the question is withheld, examples are left out (``none``), or withhold theirs
            (``blank``), or do not (``full``).
        split: of the prompts that are asked; None for those of the test split, where there is one.
        tasks: only these.
        limit: only so many prompts, drawn by ``seed``.
        seed: of every draw.
        too_long: what becomes of prompts that do not fit without examples either: nothing is begun (``refuse``), they
            get no score (``skip``), or their beginning is cut off (``cut``).
    """

    template: str | None = None
    labels: str | None = None
    method: str | None = None
    chat: bool = False
    few_shot: int = 0
    few_shot_split: str | None = None
    example_choice: str = "fixed"
    answer_only_examples: str = "none"
    split: str | None = None
    tasks: tuple[str, ...] = ()
    limit: int | None = None
    seed: int = 0
    too_long: str = "refuse"


@dataclass(frozen=True, kw_only=True)
class GenerationSettings(_ValidatedSettings):
    """How answers are written and judged, where options are not compared.

    Attributes:
        metrics: names, such as ``exact_match`` and ``rougeL``.
        extract: a regular expression that finds the answer in what was written; None for all of it.
        ignore: what does not count in comparing: ``case``, ``punctuation``.
        max_tokens: at most so many; None as the template says.
        temperature, top_p: 0 takes the likeliest token each time.
        stop: strings before which an answer ends, beside the template's.
        trials: answers to each prompt.
    """

    metrics: tuple[str, ...] = ("exact_match",)
    extract: str | None = None
    ignore: tuple[str, ...] = ()
    max_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    trials: int = 1


@dataclass(frozen=True, kw_only=True)
class LoadingSettings(_ValidatedSettings):
    """How a model in this process is loaded and run.

    Attributes:
        revision: on the hub.
        device: such as ``cuda``; ``auto`` for the fastest there is.
        dtype: such as ``bfloat16``; ``auto`` for the model's own on an accelerator, float32 elsewhere.
        batch_size: prompts that are computed together; None for as many as are fast.
        trust_remote_code: whether Python code among the model's files may run.
    """

    revision: str = ""
    device: str = "auto"
    dtype: str = "auto"
    batch_size: int | None = None
    trust_remote_code: bool = False


@dataclass(frozen=True, kw_only=True)
class ServerSettings(_ValidatedSettings):
    """How a server is asked.

    Attributes:
        api_base: address up to and with ``/v1``; None for a model in this process.
        api: ``completions``, ``chat``, or ``auto`` to try.
        key_env: environment variable that holds the key.
        concurrency: requests at once.
        requests_per_minute, tokens_per_minute: limits; None for none.
        timeout: seconds to wait for a reply.
        tries: how often a request is made before it counts as failed.
        price_read, price_written: of a million tokens, in the currency of your bill; None where unknown.
    """

    api_base: str | None = None
    api: Literal["auto", "completions", "chat"] = "auto"
    key_env: str = "OPENAI_API_KEY"
    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float = 60.0
    tries: int = 6
    price_read: float | None = None
    price_written: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.api_base is not None and not self.api_base.strip():
            raise SelectionError(
                "The address of the server is empty; give it as http://localhost:8000/v1. If it comes from a variable, "
                "that variable is not set."
            )


@dataclass(frozen=True, kw_only=True)
class Plan(_ValidatedSettings):
    """An evaluation.

    Attributes:
        benchmark: name of one that is stored, with its prompts.
        model: a folder, a name on the model hub, or what the server calls it.
        name: what the store calls the model; None for the folder's name, or the name as said.
        conditions: ``full``, ``answer_only`` (the question is withheld), or both; each is a run.
        variant: name of the wording, where it is not the plain one.
        prompts, generation, loading, server: how.
        errored: what prompts count as that got no answer in the end: ``missing`` or ``wrong``; None leaves the run
            unfinished, so that they are asked again.
        again: make a new run where the same evaluation is stored already.
    """

    benchmark: str
    model: str
    name: str | None = None
    conditions: tuple[str, ...] = ("full",)
    variant: str = ""
    prompts: PromptSettings = field(default_factory=PromptSettings)
    generation: GenerationSettings = field(default_factory=GenerationSettings)
    loading: LoadingSettings = field(default_factory=LoadingSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    errored: str | None = None
    again: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.conditions:
            raise SelectionError(f"Name a condition: {', '.join(CONDITIONS)}.")
        for condition in self.conditions:
            if condition not in CONDITIONS:
                raise SelectionError(f"condition is {condition!r}; it must be one of: {', '.join(CONDITIONS)}.")

    def command(self) -> str:
        """The command that says the same."""
        words = ["suffrage", "evaluate", self.benchmark, "--model", self.model]
        for part in (self, self.prompts, self.generation, self.loading, self.server):
            for item in fields(part):
                value = getattr(part, item.name)
                if item.name in ("benchmark", "model", "again") or isinstance(value, _ValidatedSettings):
                    continue
                if value != item.default:
                    words += _format_option(item.name, value)
        return shlex.join(words)

    @classmethod
    def from_options(cls, benchmark: str, model: str, **options: Any) -> Plan:
        """A plan from the options of all its parts, each by its keyword; a list of one value may be the value itself.

        Raises:
            SelectionError: there is no such option, or its value is none of those it may have.
        """
        parts = {
            "prompts": PromptSettings,
            "generation": GenerationSettings,
            "loading": LoadingSettings,
            "server": ServerSettings,
        }
        plan_fields = {field.name for field in fields(cls)} - {*parts, "benchmark", "model"}
        places = {field.name: part for part, kind in parts.items() for field in fields(kind)}
        known = plan_fields | {KEYWORDS.get(name, name) for name in places}
        if unknown := sorted(set(options) - known):
            raise SelectionError(f"evaluate takes no {unknown[0]!r}. It takes: {', '.join(sorted(known))}.")
        field_of = {keyword: name for name, keyword in KEYWORDS.items()}
        tuples = {
            field.name for kind in (cls, *parts.values()) for field in fields(kind) if isinstance(field.default, tuple)
        }
        values: dict[str, dict[str, Any]] = {part: {} for part in ("plan", *parts)}
        for keyword, value in options.items():
            name = field_of.get(keyword, keyword)
            values[places.get(name, "plan")][name] = _as_tuple(value) if name in tuples else _as_python(value)
        return cls(
            benchmark=benchmark,
            model=model,
            prompts=PromptSettings(**values["prompts"]),
            generation=GenerationSettings(**values["generation"]),
            loading=LoadingSettings(**values["loading"]),
            server=ServerSettings(**values["server"]),
            **values["plan"],
        )


def _as_python(value: Any) -> Any:
    """A number of NumPy as one of Python, which settings can hold."""
    return value.item() if hasattr(value, "item") else value


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def option_name(name: str) -> str:
    """The option of the command line that sets a field."""
    return f"--{OPTIONS.get(name, name).replace('_', '-')}"


def _format_option(name: str, value: Any) -> list[str]:
    option = option_name(name)
    if value is True:
        return [option]
    if name == "stop":
        return [word for text in value for word in (option, text)]
    if name == "conditions":
        return [option, ",".join(value).replace("_", "-")]
    return [option, ",".join(value) if isinstance(value, tuple) else str(value)]
