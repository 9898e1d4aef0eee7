"""What the store keeps of a prompt of lm-evaluation-harness, so that the same texts can be sent and scored again.

A prompt's text, options and reference answer are stored as for every prompt. The texts that the harness sends are a
further field, `PROMPT`; a few-shot example has the field `EXAMPLE`, to which prompts refer by its identifier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

PROMPT, EXAMPLE = "lm_eval", "lm_eval_example"
"""Further fields of prompts."""
EXAMPLE_SPLIT = "few-shot"
"""Split of examples that a task file lists itself."""


@dataclass(frozen=True, kw_only=True)
class TaskScoring:
    """How a task generates and scores; equal for all prompts of a run, except for metrics and filters.

    Attributes:
        output_type: ``multiple_choice``, ``loglikelihood`` or ``generate_until``.
        metrics: options of each metric.
        filters: steps of each pipeline that extracts an answer from a response; name ``none`` without steps.
        until: stop strings.
        max_gen_toks: maximum number of output tokens.
        sums_probability: whether ``acc`` is the probability of all correct options together.
    """

    output_type: str
    metrics: Mapping[str, Mapping[str, Any]]
    filters: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    until: Sequence[str] = ()
    max_gen_toks: int = 0
    sums_probability: bool = False

    def metric_names(self) -> tuple[str, ...]:
        """Return the names of the scores, with the filter as in the harness's results."""
        names = ["loglikelihood" if name == "perplexity" else name for name in self.metrics]
        suffixes = ["" if name == "none" else f",{name}" for name in self.filters or ("none",)]
        return tuple(f"{name}{suffix}" for suffix in suffixes for name in names)


@dataclass(frozen=True, kw_only=True)
class LmEvalExample:
    """A few-shot example.

    Attributes:
        id: identifier in its task.
        question: its text.
        answer: its answer, with the beginning of the response if the task has one.
        join: text between the two.
    """

    id: str
    question: str
    answer: str
    join: str

    def as_field(self) -> dict[str, Any]:
        """Return the further field of the example."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class LmEvalPrompt:
    """A prompt as the harness sends it.

    Attributes:
        scoring: how it is scored.
        description: beginning of the text.
        examples: identifiers of its few-shot examples, in order.
        separator: text after each example.
        question: text before the continuations; '' if they have separate texts.
        contexts: text before each continuation, if they differ.
        join: text between the question and each continuation.
        continuations: texts whose likelihoods are compared; the target of a ``loglikelihood`` task; empty if the
            response is generated.
        lengths: characters of each option, which normalise its likelihood.
        correct: indices of the correct options.
        references: reference answers of a generated response.
    """

    scoring: TaskScoring
    description: str = ""
    examples: Sequence[str] = ()
    separator: str = ""
    question: str = ""
    contexts: Sequence[str] = ()
    join: str = ""
    continuations: Sequence[str] = ()
    lengths: Sequence[int] = ()
    correct: Sequence[int] = ()
    references: Sequence[str] = ()

    def as_field(self) -> dict[str, Any]:
        """Return the further field of the prompt, without empty parts."""
        parts = {name: value for name, value in asdict(self).items() if value}
        parts["scoring"] = {name: value for name, value in parts["scoring"].items() if value}
        return parts

    @classmethod
    def from_field(cls, parts: Mapping[str, Any]) -> LmEvalPrompt:
        """Read the further field of a prompt."""
        return cls(**{**parts, "scoring": TaskScoring(**parts["scoring"])})
