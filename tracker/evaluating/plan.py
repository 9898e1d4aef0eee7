"""The plan of an evaluation: model, prompts and options."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, fields
from typing import Any

from tracker.errors import SelectionError
from tracker.evaluating.option_values import CONDITIONS
from tracker.evaluating.plan_settings import (
    KEYWORDS,
    GenerationSettings,
    LoadingSettings,
    PromptSettings,
    ServerSettings,
    ValidatedSettings,
)

OPTIONS = {"conditions": "condition", "metrics": "metric", "template_arguments": "template_argument", **KEYWORDS}
"""Options of the command line that differ from the field they set, by field."""


@dataclass(frozen=True, kw_only=True)
class Plan(ValidatedSettings):
    """An evaluation to run.

    Attributes:
        benchmark: name of a stored benchmark with its prompts.
        model: a folder, a name on the model hub, or the model's name on the server.
        name: stored name of the model; None for the folder's name, or ``model`` itself.
        engine: ``transformers`` or ``vllm`` in this process, ``server``, or ``auto`` for the server if it has an
            address, else transformers.
        conditions: ``full``, ``answer_only`` (the question is withheld), or both; each is a run.
        variant: name of the prompt variant; None for the default.
        prompts, generation, loading, server: options by subject.
        errored: how prompts without an answer are scored in the end: ``missing`` or ``wrong``; None leaves the run
            incomplete, so that they are evaluated again.
        again: create a new run even if the same evaluation is already stored.
    """

    benchmark: str
    model: str
    name: str | None = None
    engine: str = "auto"
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
        if self.engine == "server" and self.server.api_base is None:
            raise SelectionError("--engine server needs the address of the server: --api-base URL.")
        if self.engine in ("transformers", "vllm") and self.server.api_base is not None:
            raise SelectionError(
                f"--engine {self.engine} loads the model in this process; --api-base uses a server. Leave out one."
            )
        if self.loading.device_count is not None and self.engine != "vllm":
            raise SelectionError("--device-count needs --engine vllm.")
        if self.generation.judge and not (self.generation.judge_api_base or self.server.api_base):
            raise SelectionError("A judge needs a server: --judge-api-base URL.")
        if (self.prompts.chat_arguments() or self.prompts.system_prompt) and not self.is_chat:
            raise SelectionError(
                "--system-prompt and --template-argument need turns of a conversation. Add --chat, or --api chat for a "
                "server."
            )
        if not self.conditions:
            raise SelectionError(f"Name a condition: {', '.join(CONDITIONS)}.")
        for condition in self.conditions:
            if condition not in CONDITIONS:
                raise SelectionError(f"condition is {condition!r}; it must be one of: {', '.join(CONDITIONS)}.")

    @property
    def is_chat(self) -> bool:
        """Return whether prompts are certain to be sent as turns of a conversation."""
        return self.prompts.chat or (self.server.api_base is not None and self.server.api == "chat")

    def command(self) -> str:
        """Return the equivalent command line."""
        words = ["suffrage", "evaluate", self.benchmark, "--model", self.model]
        for part in (self, self.prompts, self.generation, self.loading, self.server):
            for item in fields(part):
                value = getattr(part, item.name)
                if item.name in ("benchmark", "model", "again") or isinstance(value, ValidatedSettings):
                    continue
                if value != item.default:
                    words += _format_option(item.name, value)
        return shlex.join(words)

    @classmethod
    def from_options(cls, benchmark: str, model: str, **options: Any) -> Plan:
        """Create a plan from keyword options; a list with one value may be the value itself.

        Raises:
            SelectionError: an option is unknown or has an invalid value.
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
            raise SelectionError(f"evaluate has no option {unknown[0]!r}. Options: {', '.join(sorted(known))}.")
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
    """Convert a NumPy number to a Python number, which settings can store."""
    return value.item() if hasattr(value, "item") else value


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def option_name(name: str) -> str:
    """Return the command-line option that sets a field."""
    return f"--{OPTIONS.get(name, name).replace('_', '-')}"


def _format_option(name: str, value: Any) -> list[str]:
    option = option_name(name)
    if value is True:
        return [option]
    if name in ("stop", "template_arguments"):
        return [word for text in value for word in (option, text)]
    if name == "conditions":
        return [option, ",".join(value).replace("_", "-")]
    return [option, ",".join(value) if isinstance(value, tuple) else str(value)]
