"""Options of an evaluation by subject: prompts, generation, loading and servers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tracker.errors import SelectionError
from tracker.evaluating.option_values import (
    ANSWER_ONLY_EXAMPLES,
    APIS,
    ENGINES,
    ERRORED_VALUES,
    EXAMPLE_CHOICES,
    LABELS,
    METHODS,
    TOO_LONG_ACTIONS,
)
from tracker.evaluating.scoring.rules import PRESETS, ScoringRules, choose_rules

CHOICES = {
    "method": (None, *METHODS),
    "example_choice": EXAMPLE_CHOICES,
    "answer_only_examples": ANSWER_ONLY_EXAMPLES,
    "labels": (None, *LABELS),
    "too_long": TOO_LONG_ACTIONS,
    "errored": (None, *ERRORED_VALUES),
    "api": APIS,
    "engine": ENGINES,
    "preset": (None, *PRESETS),
}
"""Allowed values of fields with a fixed set of choices."""
MIN_WHOLE_NUMBERS = {
    "few_shot": 0,
    "limit": 1,
    "max_tokens": 1,
    "trials": 1,
    "batch_size": 1,
    "device_count": 1,
    "concurrency": 1,
    "tries": 1,
}
"""Integer fields and their minimum."""
NOT_NEGATIVE = ("temperature", "price_read", "price_written")
ABOVE_ZERO = ("top_p", "requests_per_minute", "tokens_per_minute", "timeout")
KEYWORDS = {"example_choice": "shots", "answer_only_examples": "answer_only_shots"}
"""Keywords of `Plan.from_options` that differ from the field they set, by field."""
RESERVED_FIELDS = ("model", "messages", "prompt", "n", "stream", "echo", "logprobs", "top_logprobs")
"""Fields of a request that ``extra_body`` cannot set."""
EXAMPLE_BODY = '{"reasoning_effort": "low"}'
BUDGET = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]{3}|[$€£¥])?\s*")
NO_STOP = "none"
"""The only stop string of a plan without stop strings."""


class ValidatedSettings:
    """Checks the values of its fields."""

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            value = getattr(self, name, allowed[0])
            if value not in allowed:
                known = ", ".join(str(choice) for choice in allowed if choice is not None)
                raise SelectionError(f"{KEYWORDS.get(name, name)} is {value!r}; it must be one of: {known}.")
        for name, lowest in MIN_WHOLE_NUMBERS.items():
            self._check(name, (f"an integer of at least {lowest}"), int, lambda n, lowest=lowest: n >= lowest)  # type: ignore[misc]
        for name in NOT_NEGATIVE:
            self._check(name, "a number of at least 0", (int, float), lambda n: n >= 0)
        for name in ABOVE_ZERO:
            self._check(name, "a number above 0", (int, float), lambda n: n > 0)
        self._check("top_p", "at most 1", (int, float), lambda n: n <= 1)

    def _check(self, name: str, requirement: str, kind: Any, accepts: Callable[[Any], bool]) -> None:
        value = getattr(self, name, None)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind) or not accepts(value)):
            raise SelectionError(f"{name} is {value!r}; it must be {requirement}.")


@dataclass(frozen=True, kw_only=True)
class PromptSettings(ValidatedSettings):
    """Which prompts are evaluated, and how they are rendered.

    Attributes:
        template: name of a built-in template, or path of a file; None to choose by the prompts.
        labels: labels of the options: ``letters``, ``digits``, ``words`` (their texts); None to use the template's.
        method: one of `tracker.evaluating.option_values.METHODS`; None to use the template's.
        chat: whether prompts are sent as turns of a conversation, by the model's chat template.
        system_prompt: first turn of a conversation; '' for none.
        template_arguments: arguments of the chat template, such as ``enable_thinking=false``.
        few_shot: number of few-shot examples per prompt.
        few_shot_split: split of the few-shot examples.
        example_choice: ``fixed``, the same for all prompts of a task, or ``per-prompt``, drawn with ``seed``.
        answer_only_examples: few-shot examples if the question is withheld: left out (``none``), with their question
            withheld (``blank``), or complete (``full``).
        split: split of the evaluated prompts; None for the test split, if there is one.
        tasks: evaluate only these tasks.
        limit: maximum number of prompts, drawn with ``seed``.
        seed: seed of every draw.
        too_long: how to treat prompts that do not fit even without examples: reject the plan (``refuse``), give them no
            score (``skip``), or truncate their beginning (``cut``).
    """

    template: str | None = None
    labels: str | None = None
    method: str | None = None
    chat: bool = False
    system_prompt: str = ""
    template_arguments: tuple[str, ...] = ()
    few_shot: int = 0
    few_shot_split: str | None = None
    example_choice: str = "fixed"
    answer_only_examples: str = "none"
    split: str | None = None
    tasks: tuple[str, ...] = ()
    limit: int | None = None
    seed: int = 0
    too_long: str = "refuse"

    def chat_arguments(self) -> dict[str, Any]:
        """Return the arguments of the chat template by name; a value that is JSON is parsed.

        Raises:
            SelectionError: an argument has no name or no value.
        """
        arguments: dict[str, Any] = {}
        for text in self.template_arguments:
            name, mark, value = text.partition("=")
            if not (mark and name.strip()):
                raise SelectionError(f"--template-argument is {text!r}; write NAME=VALUE, as in enable_thinking=false.")
            try:
                arguments[name.strip()] = json.loads(value)
            except ValueError:
                arguments[name.strip()] = value
        return arguments


@dataclass(frozen=True, kw_only=True)
class GenerationSettings(ValidatedSettings):
    """How responses are generated and scored, if options are not compared.

    Attributes:
        metrics: names, such as ``exact_match`` and ``rougeL``.
        preset: name of the scoring rules of a published benchmark; the next three replace parts of them.
        extract: regular expression that extracts the answer from the response; None for the whole response.
        extract_reference: the same for the reference answer; None for that of the response, ``none`` for the whole.
        ignore: differences that the comparison ignores: ``case``, ``punctuation``.
        max_tokens: maximum number of output tokens; None to use the template's.
        temperature, top_p: sampling parameters; a temperature of 0 is greedy decoding.
        stop: stop strings; by default the template's, and none in a conversation. ``none`` alone removes them.
        trials: responses per prompt.
        judge: name of the model on the server that grades generated responses; None without one.
        judge_template: its rubric: ``correct``, ``score``, or a Jinja file.
        judge_api_base: address of its server; None for the server of the model.
    """

    metrics: tuple[str, ...] = ("exact_match",)
    preset: str | None = None
    extract: str | None = None
    extract_reference: str | None = None
    ignore: tuple[str, ...] = ()
    max_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    trials: int = 1
    judge: str | None = None
    judge_template: str = "correct"
    judge_api_base: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if NO_STOP in self.stop and len(self.stop) > 1:
            raise SelectionError("--stop none removes all stop strings; leave out the other --stop.")

    def rules(self) -> ScoringRules:
        """Return the rules by which generated answers are scored."""
        explicit = ScoringRules(
            metrics=self.metrics,
            extract=self.extract,
            extract_reference=self.extract_reference,
            ignore=self.ignore,
        )
        return choose_rules(self.preset, explicit)


@dataclass(frozen=True, kw_only=True)
class LoadingSettings(ValidatedSettings):
    """How a local model is loaded and run.

    Attributes:
        revision: on the hub.
        base_model: base model of an adapter; None for that in the adapter's settings.
        device: such as ``cuda``; ``auto`` for the fastest available device, ``all`` for all CUDA devices.
        dtype: such as ``bfloat16``; ``auto`` for the model's own on an accelerator, float32 elsewhere.
        device_count: number of CUDA devices over which vLLM splits the model; None for one.
        batch_size: prompts computed together; None for a suitable number.
        trust_remote_code: whether Python code among the model's files may run.
    """

    revision: str = ""
    base_model: str | None = None
    device: str = "auto"
    dtype: str = "auto"
    device_count: int | None = None
    batch_size: int | None = None
    trust_remote_code: bool = False


@dataclass(frozen=True, kw_only=True)
class ServerSettings(ValidatedSettings):
    """How a server is queried.

    Attributes:
        api_base: address up to and including ``/v1``; None for a local model.
        api: ``completions``, ``chat``, or ``auto`` to detect it.
        key_env: environment variable with the API key.
        concurrency: number of concurrent requests.
        requests_per_minute, tokens_per_minute: rate limits; None for no limit.
        timeout: seconds to wait for a response.
        tries: maximum number of attempts per request.
        extra_body: JSON object of further fields of each request; they replace those of the same name.
        budget: the most that all requests may cost, with or without a currency (``5.00 EUR``); needs both prices.
        price_read, price_written: per million input and output tokens, in the currency of your bill; None if unknown.
    """

    api_base: str | None = None
    api: Literal["auto", "completions", "chat"] = "auto"
    key_env: str = "OPENAI_API_KEY"
    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float = 60.0
    tries: int = 6
    extra_body: str | None = None
    budget: str | None = None
    price_read: float | None = None
    price_written: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.api_base is not None and not self.api_base.strip():
            raise SelectionError(
                "The server address is empty. Use an address such as http://localhost:8000/v1. If it comes from a "
                "variable, check that the variable is set."
            )
        self.extra_fields()
        self.read_budget()

    def read_budget(self) -> tuple[float, str] | None:
        """Return amount and currency of the budget; None without one.

        Raises:
            SelectionError: it is no amount, or a price is missing.
        """
        if self.budget is None:
            return None
        match = BUDGET.fullmatch(str(self.budget))
        if match is None:
            raise SelectionError(f"budget is {self.budget!r}; it must be an amount, such as '5.00 EUR'.")
        if self.price_read is None or self.price_written is None:
            raise SelectionError("A budget needs the prices of tokens: --price-read and --price-written.")
        return float(match[1]), (match[2] or "").upper()

    def extra_fields(self) -> dict[str, Any]:
        """Return the further fields of each request.

        Raises:
            SelectionError: they are not a JSON object, or replace fields that an evaluation sets itself.
        """
        if self.extra_body is None:
            return {}
        try:
            extra = json.loads(self.extra_body)
        except ValueError as error:
            raise SelectionError(f"--extra-body is not JSON ({error}). An example: '{EXAMPLE_BODY}'.") from None
        if not isinstance(extra, dict):
            raise SelectionError(f"--extra-body is not a JSON object. An example: '{EXAMPLE_BODY}'.")
        if reserved := sorted(set(extra) & set(RESERVED_FIELDS)):
            raise SelectionError(f"--extra-body cannot set {', '.join(reserved)}, which the evaluation itself sets.")
        return extra
