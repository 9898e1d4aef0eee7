"""From stored prompts to what a model is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tracker.errors import NotFoundError, SelectionError
from tracker.evaluating.choices import ANSWER_ONLY_SHOTS, METHODS
from tracker.evaluating.prompt_templates.few_shot import Shots, rows_of_split, splits_of
from tracker.evaluating.prompt_templates.fields import Fields
from tracker.evaluating.prompt_templates.prompt_content import content_key, digest_of, drawn_rows
from tracker.evaluating.prompt_templates.reference_answers import NO_GOLD, gold_place, named_answers, written_answers
from tracker.evaluating.prompt_templates.rendered_prompt import Question, Shot
from tracker.evaluating.prompt_templates.template import Template
from tracker.queries.prompts import Prompts

PREFERRED_SPLIT = "test"
NO_TEXT = "no text"
NO_OPTIONS = "no options"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a model is asked, and which prompts it is not.

    Attributes:
        questions: in the order of the rows.
        left_out: number of the chosen prompts that cannot be asked, by reason.
        few_shot: worked examples before each question.
        digest: SHA-256 of everything that is asked, whatever its order and the keys of the prompts; equal in every
            store that holds the same prompts.
    """

    questions: tuple[Question, ...]
    left_out: Mapping[str, int]
    few_shot: int
    digest: str


def chosen_rows(
    prompts: Prompts,
    *,
    split: str | None = None,
    few_shot_split: str | None = None,
    tasks: Sequence[str] = (),
    limit: int | None = None,
    seed: int = 0,
) -> NDArray[np.intp]:
    """Which prompts are asked.

    Without a split: the split ``test`` where these tasks have one and shots do not come from it, else every prompt of
    theirs that is not in the split of the shots.

    Args:
        prompts: all there are.
        split: only these.
        few_shot_split: where shots come from.
        tasks: only these; all by default.
        limit: at most so many, drawn by the seed; those of a smaller limit are among those of a larger one.
        seed: any whole number.

    Returns:
        Rows of ``prompts``, ascending.

    Raises:
        NotFoundError: a split or task is not there.
        SelectionError: no prompt is chosen.
    """
    for name in few_shot_split, split:
        if name is not None:
            rows_of_split(prompts, name)
    for task in tasks:
        if task not in prompts.tasks:
            raise NotFoundError("task", task, sorted(set(prompts.tasks)))
    if limit is not None and limit < 1:
        raise SelectionError(f"A limit of {limit} leaves nothing to ask; give at least 1.")
    splits = {row: prompts.splits[row] for row, task in enumerate(prompts.tasks) if not tasks or task in tasks}
    if split is None and few_shot_split != PREFERRED_SPLIT and PREFERRED_SPLIT in splits.values():
        split = PREFERRED_SPLIT
    rows = [
        row
        for row, one in splits.items()
        if (one == split if split is not None else few_shot_split is None or one != few_shot_split)
    ]
    if not rows:
        raise SelectionError(_why_none(prompts, split, few_shot_split))
    if limit is not None and limit < len(rows):
        rows = drawn_rows(prompts, rows, limit, seed)
    return np.array(rows, dtype=np.intp)


def questions(
    prompts: Prompts,
    rows: NDArray[np.intp] | Sequence[int],
    template: Template,
    *,
    method: str | None = None,
    answer_only: bool = False,
    few_shot: int = 0,
    few_shot_split: str | None = None,
    shots: str = "fixed",
    answer_only_shots: str = "none",
    seed: int = 0,
) -> Asked:
    """What a model is asked about some prompts.

    A prompt without text, without gold answer, without options where the template needs them, or whose gold answer is
    not one of its options, is left out. Withheld, a question and all further fields are replaced by the template's
    ``blank``; options keep their order, the header stays.

    Args:
        prompts: all there are; shots are chosen among them.
        rows: which are asked, rows of ``prompts``.
        template: how they are put.
        method: how answers are found, one of `METHODS`; the template's own by default.
        answer_only: whether the question is withheld.
        few_shot: worked examples before each question.
        few_shot_split: where they come from.
        shots: which they are; see `Shots`.
        answer_only_shots: where the question is withheld: no worked examples, ones whose question is withheld too, or
            full ones.
        seed: of the draws.

    Raises:
        SelectionError: method and template do not fit, no prompt can be asked, or there are too few shots.
        NotFoundError: there is no such split.
        BadInputError: a prompt has not what the template asks for.
    """
    method = template.method if method is None else method
    _check(template, method, answer_only, few_shot, answer_only_shots)
    n_shots = 0 if answer_only and answer_only_shots == "none" else few_shot
    asking = _Asking(prompts, template, method)
    left_out: Counter[str] = Counter()
    asked = []
    for row in map(int, rows):
        problem = asking.problem(row)
        if problem is None:
            asked.append(row)
        else:
            left_out[problem] += 1
    if not asked:
        raise SelectionError(_why_none_can_be_asked(template, left_out, splits_of(prompts.splits)))
    shown: dict[int, list[int]] = {row: [] for row in asked}
    if n_shots:
        usable = [row for row in rows_of_split(prompts, few_shot_split) if asking.problem(row) is None]
        keys = {row: content_key(prompts.texts[row], prompts.choices[row]) for row in {*asked, *usable}}
        chosen = Shots(prompts, usable, keys, split=few_shot_split or "", n=n_shots, kind=shots, seed=seed)
        shown = {row: chosen.of(row) for row in asked}
    blank_shots = answer_only and answer_only_shots == "blank"
    made = tuple(asking.question(row, shown[row], blank=answer_only, blank_shots=blank_shots) for row in asked)
    digest = digest_of(
        sorted(asking.digest(question, prompts.tasks[row]) for row, question in zip(asked, made, strict=True))
    )
    return Asked(questions=made, left_out=MappingProxyType(dict(left_out)), few_shot=n_shots, digest=digest)


class _Asking:
    """The same template put to many prompts; worked examples are rendered once."""

    def __init__(self, prompts: Prompts, template: Template, method: str) -> None:
        self.prompts, self.template, self.method = prompts, template, method
        self._shots: dict[tuple[int, bool], Shot] = {}
        self._digests: dict[Shot, str] = {}

    def problem(self, row: int) -> str | None:
        """Why a prompt cannot be asked."""
        text, choices, gold = self.prompts.texts[row], self.prompts.choices[row], self.prompts.answers[row]
        if text is None or not text.strip():
            return NO_TEXT
        if not self.template.has_options:
            return None if gold is not None and gold.strip() else NO_GOLD
        if not choices:
            return NO_OPTIONS
        place = gold_place(gold, choices)
        return place if isinstance(place, str) else None

    def question(self, row: int, shown: Sequence[int], *, blank: bool, blank_shots: bool) -> Question:
        fields, gold = self._fields(row, blank), self._gold(row)
        compares = self.method != "generation"
        return Question(
            prompt_id=int(self.prompts.prompt_ids[row]),
            header=self.template.header(fields),
            shots=tuple(self._shot(other, blank_shots) for other in shown),
            separator=self.template.separator,
            question=self.template.question(fields),
            join=self.template.join,
            options=tuple(self.template.option(fields, i) for i in range(len(fields.choices))) if compares else (),
            gold=gold if compares else None,
            references=() if compares else self._references(row, gold),
        )

    def digest(self, question: Question, task: str) -> str:
        """Of one question, without the key of its prompt."""
        for shot in question.shots:
            if shot not in self._digests:
                self._digests[shot] = digest_of(shot.question, shot.answer)
        said = (question.header, question.separator, question.question, question.join)
        shots = [self._digests[shot] for shot in question.shots]
        return digest_of(task, *said, shots, list(question.options), question.gold, list(question.references))

    def _shot(self, row: int, blank: bool) -> Shot:
        if (row, blank) not in self._shots:
            fields, gold = self._fields(row, blank), self._gold(row)
            said = (
                self.template.written(fields, self._answer(row)) if gold is None else self.template.option(fields, gold)
            )
            self._shots[row, blank] = Shot(question=self.template.question(fields), answer=said)
        return self._shots[row, blank]

    def _fields(self, row: int, blank: bool) -> Fields:
        prompts = self.prompts
        shown = Fields(
            name=f"{prompts.names[row]!r}" + (f" of task {prompts.tasks[row]!r}" if prompts.tasks[row] else ""),
            task=prompts.tasks[row],
            question=prompts.texts[row] or "",
            choices=tuple(prompts.choices[row] or ()),
            details=prompts.details[row],
        )
        return shown.blanked(self.template.blank) if blank else shown

    def _answer(self, row: int) -> str:
        """The gold answer in words; of a prompt with options, the text of the right one."""
        gold, choices = self.prompts.answers[row] or "", self.prompts.choices[row] or ()
        place = gold_place(gold, choices)
        return choices[place] if isinstance(place, int) else gold

    def _gold(self, row: int) -> int | None:
        """Place of the right option; None where the template knows no options."""
        if not self.template.has_options:
            return None
        place = gold_place(self.prompts.answers[row], self.prompts.choices[row] or ())
        return place if isinstance(place, int) else None

    def _references(self, row: int, gold: int | None) -> tuple[str, ...]:
        if gold is None:
            return written_answers(self._answer(row), self.prompts.details[row])
        choices = self.prompts.choices[row] or ()
        return named_answers(self.template.labels, gold, choices, texts_only=self.template.answer == "text")


def _check(template: Template, method: str, answer_only: bool, few_shot: int, answer_only_shots: str) -> None:
    if method not in METHODS:
        raise SelectionError(f"No method {method!r}. Known: {', '.join(METHODS)}.")
    if answer_only_shots not in ANSWER_ONLY_SHOTS:
        raise SelectionError(f"No answer-only shots {answer_only_shots!r}. Known: {', '.join(ANSWER_ONLY_SHOTS)}.")
    if few_shot < 0:
        raise SelectionError(f"{few_shot} worked examples cannot be shown; give 0 or more.")
    if template.answer == "written" and method != "generation":
        raise SelectionError(
            f"Template {template.name} has the model write its answer, and method {method} compares options. "
            f"Take --method generation, or a template with options, such as multiple_choice."
        )
    if template.answer == "text" and method == "letters":
        raise SelectionError(
            f"Template {template.name} is answered by the text of an option, and method letters compares labels. "
            f"Take --method loglikelihood, or a template that is answered by a label, such as multiple_choice."
        )
    if answer_only and not template.has_options:
        raise SelectionError(
            f"Template {template.name} shows no options: with the question withheld nothing is left to choose from. "
            f"Answer-only runs need a template and prompts with options, such as multiple_choice."
        )


def _why_none(prompts: Prompts, split: str | None, few_shot_split: str | None) -> str:
    if not prompts.tasks:
        return "The benchmark has no prompts. Take them in first: suffrage prompts import BENCHMARK SOURCE."
    if split is not None:
        return f"No prompt of the chosen tasks is in split {split!r}. Splits: {', '.join(splits_of(prompts.splits))}."
    return f"Every prompt of the chosen tasks is in split {few_shot_split!r}, which the worked examples come from."


def _why_none_can_be_asked(template: Template, left_out: Mapping[str, int], splits: Sequence[str]) -> str:
    told = "; ".join(f"{reason}: {n:,}" for reason, n in sorted(left_out.items())) or "none was chosen"
    hint = "Take in texts, options and gold answers first: suffrage prompts import BENCHMARK SOURCE."
    if set(left_out) == {NO_OPTIONS}:
        hint = "Template written asks prompts without options: --template written."
    if set(left_out) == {NO_GOLD} and len(splits) > 1:
        hint = f"The answers of a split may be unpublished: ask another, --split NAME. Splits: {', '.join(splits)}."
    return f"No prompt can be asked with template {template.name} ({told}). {hint}"
