"""A rendered prompt: text, options and reference answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracker.ingest.datasets.lm_eval.stored_prompt import LmEvalPrompt

Message = dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class FewShotExample:
    """A few-shot example.

    Attributes:
        question: rendered question, up to where the answer begins.
        answer: rendered answer, without the text that joins the two.
        join: text between the two; None for that of the prompt.
    """

    question: str
    answer: str
    join: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderedPrompt:
    """A rendered prompt.

    The text is header, examples and question, with ``separator`` between examples and before the question. ``join``
    connects a question to its answer, in the examples and before each option.

    Attributes:
        prompt_id: key of the prompt.
        system: first turn of a conversation; '' for none. Texts do not have it.
        header: beginning of the text; '' if the template has none.
        examples: few-shot examples, in order.
        separator: text between examples, and between the last example and the question.
        question: rendered question, up to where the answer begins.
        contexts: question of each option, if they differ; ``question`` is then empty.
        join: text between a question and its answer, such as a space.
        options: possible continuations: labels, or texts of the options; empty if the model generates its answer.
        labels: labels of the shown options, one of which a generated answer names; empty if it is free text.
        correct_option: index of the correct option; None without options or labels.
        references: reference answers, any of which is correct; for generated answers.
        lm_eval: the prompt as imported from lm-evaluation-harness, by whose rules it is scored; None for others.
    """

    prompt_id: int
    system: str = ""
    header: str = ""
    examples: tuple[FewShotExample, ...] = ()
    separator: str = "\n\n"
    question: str
    contexts: tuple[str, ...] = ()
    join: str = " "
    options: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    correct_option: int | None = None
    references: tuple[str, ...] = ()
    lm_eval: LmEvalPrompt | None = None

    def head(self, n_examples: int | None = None) -> str:
        """Return the header and the last ``n_examples`` examples (all by default), with the separators after them."""
        examples = self._last_examples(n_examples)
        joins = [self.join if example.join is None else example.join for example in examples]
        return self.header + "".join(
            f"{example.question}{join}{example.answer}{self.separator}"
            for example, join in zip(examples, joins, strict=True)
        )

    def text(self, n_examples: int | None = None) -> str:
        """Return the complete text that the model reads before it responds."""
        return self.head(n_examples) + self.question

    def messages(self, n_examples: int | None = None) -> list[Message]:
        """Return the text as turns of a conversation: each example is a user's question and an assistant's answer."""
        turns: list[Message] = []
        for example in self._last_examples(n_examples):
            turns += [{"role": "user", "content": example.question}, {"role": "assistant", "content": example.answer}]
        turns.append({"role": "user", "content": self.question})
        if self.header.strip():
            turns[0] = {"role": "user", "content": self.header + turns[0]["content"]}
        return [{"role": "system", "content": self.system}, *turns] if self.system else turns

    def _last_examples(self, n_examples: int | None) -> Sequence[FewShotExample]:
        return self.examples if n_examples is None else self.examples[len(self.examples) - n_examples :]
