"""A prompt as a model reads it: its text, its options and its reference answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Message = dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class FewShotExample:
    """A worked example.

    Attributes:
        question: as rendered, up to where the answer begins.
        answer: as rendered, without what stands between the two.
    """

    question: str
    answer: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderedPrompt:
    """A prompt as a model reads it.

    The text is header, examples and question, with ``separator`` between examples and before the question; ``join``
    stands between a question and its answer, in the examples and before each option.

    Attributes:
        prompt_id: key of the prompt.
        header: what comes first, once; '' where the template has none.
        examples: worked examples, in order.
        separator: between examples, and between the last shot and the question.
        question: as rendered, up to where the answer begins.
        join: what stands between a question and its answer, such as a space.
        options: what may follow, as the model is to say it: the labels, or the texts of the options; none where the
            model writes its answer.
        correct_option: place of the right option; None where there are no options.
        references: the gold answers, any of which is right; for written answers.
    """

    prompt_id: int
    header: str = ""
    examples: tuple[FewShotExample, ...] = ()
    separator: str = "\n\n"
    question: str
    join: str = " "
    options: tuple[str, ...] = ()
    correct_option: int | None = None
    references: tuple[str, ...] = ()

    def head(self, n_examples: int | None = None) -> str:
        """Header and the last ``n_examples`` of the examples (all by default), with the separators after them."""
        examples = self._last_examples(n_examples)
        return self.header + "".join(
            f"{example.question}{self.join}{example.answer}{self.separator}" for example in examples
        )

    def text(self, n_examples: int | None = None) -> str:
        """All that the model reads before it answers."""
        return self.head(n_examples) + self.question

    def messages(self, n_examples: int | None = None) -> list[Message]:
        """The same as turns of a conversation: each shot is a question of the user and an answer of the model."""
        turns: list[Message] = []
        for example in self._last_examples(n_examples):
            turns += [{"role": "user", "content": example.question}, {"role": "assistant", "content": example.answer}]
        turns.append({"role": "user", "content": self.question})
        if self.header.strip():
            turns[0] = {"role": "user", "content": self.header + turns[0]["content"]}
        return turns

    def _last_examples(self, n_examples: int | None) -> Sequence[FewShotExample]:
        return self.examples if n_examples is None else self.examples[len(self.examples) - n_examples :]
