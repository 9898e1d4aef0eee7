"""What a model is asked about one prompt, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Message = dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shot:
    """A worked example.

    Attributes:
        question: as rendered, up to where the answer begins.
        answer: as rendered, without what stands between the two.
    """

    question: str
    answer: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What a model is asked about one prompt.

    The text is header, shots and question, with ``separator`` between shots and before the question; ``join`` stands
    between a question and its answer, in the shots and before each option.

    Attributes:
        prompt_id: key of the prompt.
        header: what comes first, once; '' where the template has none.
        shots: worked examples, in order.
        separator: between shots, and between the last shot and the question.
        question: as rendered, up to where the answer begins.
        join: what stands between a question and its answer, such as a space.
        options: what may follow, as the model is to say it: the labels, or the texts of the options; none where the
            model writes its answer.
        gold: place of the right option; None where there are no options.
        references: the gold answers, any of which is right; for written answers.
    """

    prompt_id: int
    header: str = ""
    shots: tuple[Shot, ...] = ()
    separator: str = "\n\n"
    question: str
    join: str = " "
    options: tuple[str, ...] = ()
    gold: int | None = None
    references: tuple[str, ...] = ()

    def head(self, n_shots: int | None = None) -> str:
        """Header and the last ``n_shots`` of the shots (all by default), with the separators after them."""
        shown = self._shown(n_shots)
        return self.header + "".join(f"{shot.question}{self.join}{shot.answer}{self.separator}" for shot in shown)

    def text(self, n_shots: int | None = None) -> str:
        """All that the model reads before it answers."""
        return self.head(n_shots) + self.question

    def messages(self, n_shots: int | None = None) -> list[Message]:
        """The same as turns of a conversation: each shot is a question of the user and an answer of the model."""
        turns: list[Message] = []
        for shot in self._shown(n_shots):
            turns += [{"role": "user", "content": shot.question}, {"role": "assistant", "content": shot.answer}]
        turns.append({"role": "user", "content": self.question})
        if self.header.strip():
            turns[0] = {"role": "user", "content": self.header + turns[0]["content"]}
        return turns

    def _shown(self, n_shots: int | None) -> Sequence[Shot]:
        return self.shots if n_shots is None else self.shots[len(self.shots) - n_shots :]
