"""Render stored prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tracker.errors import NotFoundError, SelectionError
from tracker.evaluating.option_values import ANSWER_ONLY_EXAMPLES, METHODS
from tracker.evaluating.prompt_templates.few_shot import ExampleSelector, list_split_rows, list_splits
from tracker.evaluating.prompt_templates.fields import TemplateFields, option_labels
from tracker.evaluating.prompt_templates.prompt_content import draw_rows, sha256_digest
from tracker.evaluating.prompt_templates.reference_answers import (
    NO_REFERENCE_ANSWER,
    find_correct_option,
    list_option_answers,
    list_written_answers,
)
from tracker.evaluating.prompt_templates.rendered_prompt import FewShotExample, RenderedPrompt
from tracker.evaluating.prompt_templates.template import Template
from tracker.ingest.datasets.lm_eval.stored_prompt import PROMPT
from tracker.queries.prompts import PromptTexts

PREFERRED_SPLIT = "test"
NO_TEXT = "no text"
NO_OPTIONS = "no options"


@dataclass(frozen=True, kw_only=True)
class RenderedPrompts:
    """The rendered prompts of an evaluation, and the number of skipped ones.

    Attributes:
        prompts: in the order of the rows.
        skipped: number of selected prompts that cannot be rendered, by reason.
        few_shot: few-shot examples per prompt.
        digest: SHA-256 of all rendered prompts, independent of their order and keys; equal in every store with the same
            prompts.
    """

    prompts: tuple[RenderedPrompt, ...]
    skipped: Mapping[str, int]
    few_shot: int
    digest: str

    def with_system_prompt(self, text: str) -> RenderedPrompts:
        """Return the prompts with a first turn of the role ``system``; '' for none."""
        if not text:
            return self
        prompts = tuple(replace(prompt, system=text) for prompt in self.prompts)
        return replace(self, prompts=prompts, digest=sha256_digest(self.digest, "system", text))


def select_rows(
    prompts: PromptTexts,
    *,
    split: str | None = None,
    few_shot_split: str | None = None,
    tasks: Sequence[str] = (),
    limit: int | None = None,
    seed: int = 0,
) -> NDArray[np.intp]:
    """Select the prompts to evaluate.

    Without a split, the prompts of the split ``test`` are selected, if these tasks have one and few-shot examples do
    not come from it. Otherwise all prompts outside the split of the examples are selected. Of prompts imported from
    lm-evaluation-harness, those that the harness evaluates are selected.

    Args:
        prompts: all stored prompts.
        split: select only this split.
        few_shot_split: split of the few-shot examples.
        tasks: select only these tasks; all by default.
        limit: maximum number, drawn with the seed; the prompts of a smaller limit are a subset of those of a larger
            one.
        seed: any integer.

    Returns:
        Rows of ``prompts``, ascending.

    Raises:
        NotFoundError: a split or task does not exist.
        SelectionError: no prompt is selected.
    """
    for name in few_shot_split, split:
        if name is not None:
            list_split_rows(prompts, name)
    for task in tasks:
        if task not in prompts.tasks:
            raise NotFoundError("task", task, sorted(set(prompts.tasks)))
    if limit is not None and limit < 1:
        raise SelectionError(f"A limit of {limit} selects no prompts. Use at least 1.")
    splits = {row: prompts.splits[row] for row, task in enumerate(prompts.tasks) if not tasks or task in tasks}
    imported = {row: name for row, name in splits.items() if PROMPT in prompts.details[row]}
    if split is None and few_shot_split is None and imported:
        splits = imported
    elif split is None and few_shot_split != PREFERRED_SPLIT and PREFERRED_SPLIT in splits.values():
        split = PREFERRED_SPLIT
    rows = [
        row
        for row, row_split in splits.items()
        if (row_split == split if split is not None else few_shot_split is None or row_split != few_shot_split)
    ]
    if not rows:
        raise SelectionError(_explain_no_rows(prompts, split, few_shot_split))
    if limit is not None and limit < len(rows):
        rows = draw_rows(prompts, rows, limit, seed)
    return np.array(rows, dtype=np.intp)


def render_prompts(
    prompts: PromptTexts,
    rows: NDArray[np.intp] | Sequence[int],
    template: Template,
    *,
    method: str | None = None,
    answer_only: bool = False,
    few_shot: int = 0,
    few_shot_split: str | None = None,
    example_choice: str = "fixed",
    answer_only_examples: str = "none",
    seed: int = 0,
) -> RenderedPrompts:
    """Render prompts with a template, with few-shot examples before each.

    A prompt is skipped if it has no text, no reference answer, no options although the template needs them, or a
    reference answer that is not one of its options. If the question is withheld, it and all further fields are replaced
    by the template's ``blank``; options keep their order, and the header stays.

    Args:
        prompts: all stored prompts; few-shot examples are selected among them.
        rows: rows of ``prompts`` to render.
        template: renders the prompts.
        method: how the model answers, one of `METHODS`; by default the template's.
        answer_only: whether the question is withheld.
        few_shot: few-shot examples per prompt.
        few_shot_split: split of the examples.
        example_choice: how examples are selected; see `ExampleSelector`.
        answer_only_examples: if the question is withheld: no examples, examples with their question withheld, or
            complete ones.
        seed: seed of the draws.

    Raises:
        SelectionError: method and template do not fit, no prompt can be rendered, or too few examples are usable.
        NotFoundError: the split does not exist.
        BadInputError: a prompt lacks a field that the template uses.
    """
    method = template.method if method is None else method
    _check_settings(template, method, answer_only, few_shot, answer_only_examples)
    renderer = _PromptRenderer(prompts, template, method)
    problems = {row: renderer.find_problem(row) for row in map(int, rows)}
    usable = [row for row, problem in problems.items() if problem is None]
    skipped = Counter(problem for problem in problems.values() if problem is not None)
    if not usable:
        raise SelectionError(_explain_no_prompt_usable(template, skipped, list_splits(prompts.splits)))
    n_examples = 0 if answer_only and answer_only_examples == "none" else few_shot
    examples = _select_examples(renderer, usable, n=n_examples, split=few_shot_split, choice=example_choice, seed=seed)
    blank_examples = answer_only and answer_only_examples == "blank"
    rendered = tuple(
        renderer.render(row, examples[row], blank=answer_only, blank_examples=blank_examples) for row in usable
    )
    digests = [renderer.digest(prompt, prompts.tasks[row]) for row, prompt in zip(usable, rendered, strict=True)]
    return RenderedPrompts(
        prompts=rendered,
        skipped=MappingProxyType(dict(skipped)),
        few_shot=n_examples,
        digest=sha256_digest(sorted(digests)),
    )


def _select_examples(
    renderer: _PromptRenderer, rows: Sequence[int], *, n: int, split: str | None, choice: str, seed: int
) -> dict[int, list[int]]:
    """Return the rows of the few-shot examples of each row."""
    if not n:
        return {row: [] for row in rows}
    prompts = renderer.prompts
    candidates = [row for row in list_split_rows(prompts, split) if renderer.find_problem(row) is None]
    selector = ExampleSelector(prompts, candidates, split=split or "", n=n, choice=choice, seed=seed)
    return {row: selector.select(row) for row in rows}


class _PromptRenderer:
    """Renders many prompts with the same template; few-shot examples are rendered once."""

    def __init__(self, prompts: PromptTexts, template: Template, method: str) -> None:
        self.prompts, self.template, self.method = prompts, template, method
        self._examples: dict[tuple[int, bool], FewShotExample] = {}
        self._digests: dict[FewShotExample, str] = {}

    def find_problem(self, row: int) -> str | None:
        """Return why a prompt cannot be rendered; None if it can."""
        text, choices, gold = self.prompts.texts[row], self.prompts.choices[row], self.prompts.answers[row]
        if text is None or not text.strip():
            return NO_TEXT
        if not self.template.has_options:
            return None if gold is not None and gold.strip() else NO_REFERENCE_ANSWER
        if not choices:
            return NO_OPTIONS
        place = find_correct_option(gold, choices)
        return place if isinstance(place, str) else None

    def render(self, row: int, examples: Sequence[int], *, blank: bool, blank_examples: bool) -> RenderedPrompt:
        fields, gold = self._fields(row, blank), self._gold(row)
        compares = self.method != "generation"
        labelled = not compares and gold is not None and self.template.answer == "label"
        return RenderedPrompt(
            prompt_id=int(self.prompts.prompt_ids[row]),
            header=self.template.render_header(fields),
            examples=tuple(self._example(example, blank_examples) for example in examples),
            separator=self.template.separator,
            question=self.template.render_question(fields),
            join=self.template.join,
            options=tuple(self.template.render_option(fields, i) for i in range(len(fields.choices)))
            if compares
            else (),
            labels=option_labels(self.template.labels, fields.choices) if labelled else (),
            correct_option=gold if compares or labelled else None,
            references=() if compares else self._references(row, gold),
        )

    def digest(self, prompt: RenderedPrompt, task: str) -> str:
        """Return the SHA-256 of a rendered prompt, without its key."""
        for example in prompt.examples:
            if example not in self._digests:
                self._digests[example] = sha256_digest(example.question, example.answer)
        return sha256_digest(
            task,
            prompt.header,
            prompt.separator,
            prompt.question,
            prompt.join,
            [self._digests[example] for example in prompt.examples],
            list(prompt.options),
            prompt.correct_option,
            list(prompt.references),
            *([list(prompt.labels)] if prompt.labels else ()),
        )

    def _example(self, row: int, blank: bool) -> FewShotExample:
        if (row, blank) not in self._examples:
            fields, gold = self._fields(row, blank), self._gold(row)
            answer = (
                self.template.render_answer(fields, self._answer(row))
                if gold is None
                else self.template.render_option(fields, gold)
            )
            self._examples[row, blank] = FewShotExample(question=self.template.render_question(fields), answer=answer)
        return self._examples[row, blank]

    def _fields(self, row: int, blank: bool) -> TemplateFields:
        prompts = self.prompts
        fields = TemplateFields(
            name=f"{prompts.names[row]!r}" + (f" of task {prompts.tasks[row]!r}" if prompts.tasks[row] else ""),
            task=prompts.tasks[row],
            question=prompts.texts[row] or "",
            choices=tuple(prompts.choices[row] or ()),
            details=prompts.details[row],
        )
        return fields.withhold_question(self.template.blank) if blank else fields

    def _answer(self, row: int) -> str:
        """Return the reference answer as text; for a prompt with options, the text of the correct one."""
        gold, choices = self.prompts.answers[row] or "", self.prompts.choices[row] or ()
        place = find_correct_option(gold, choices)
        return choices[place] if isinstance(place, int) else gold

    def _gold(self, row: int) -> int | None:
        """Return the index of the correct option; None if the template uses no options."""
        if not self.template.has_options:
            return None
        place = find_correct_option(self.prompts.answers[row], self.prompts.choices[row] or ())
        return place if isinstance(place, int) else None

    def _references(self, row: int, gold: int | None) -> tuple[str, ...]:
        if gold is None:
            return list_written_answers(self._answer(row), self.prompts.details[row])
        choices = self.prompts.choices[row] or ()
        return list_option_answers(self.template.labels, gold, choices, texts_only=self.template.answer == "text")


def _check_settings(
    template: Template, method: str, answer_only: bool, few_shot: int, answer_only_examples: str
) -> None:
    if method not in METHODS:
        raise SelectionError(f"No method {method!r}. Known: {', '.join(METHODS)}.")
    if answer_only_examples not in ANSWER_ONLY_EXAMPLES:
        raise SelectionError(
            f"No value {answer_only_examples!r} for few-shot examples of answer-only prompts. Known: "
            f"{', '.join(ANSWER_ONLY_EXAMPLES)}."
        )
    if few_shot < 0:
        raise SelectionError(f"--few-shot is {few_shot}; it must be 0 or more.")
    if template.answer == "written" and method != "generation":
        raise SelectionError(
            f"Template {template.name} expects a generated answer, but method {method} compares options. Use "
            "--method generation, or a template with options, such as multiple_choice."
        )
    if template.answer == "text" and method == "letters":
        raise SelectionError(
            f"Template {template.name} expects the text of an option, but method letters compares labels. Use "
            "--method loglikelihood, or a template with labels, such as multiple_choice."
        )
    if answer_only and not template.has_options:
        raise SelectionError(
            f"Template {template.name} shows no options, so an answer-only run has nothing to choose from. Use a "
            "template and prompts with options, such as multiple_choice."
        )


def _explain_no_rows(prompts: PromptTexts, split: str | None, few_shot_split: str | None) -> str:
    if not prompts.tasks:
        return "The benchmark has no prompts. Import them first: suffrage prompts import BENCHMARK SOURCE."
    if split is not None:
        return (
            f"No prompt of the selected tasks is in split {split!r}. Splits: {', '.join(list_splits(prompts.splits))}."
        )
    return f"Every prompt of the selected tasks is in split {few_shot_split!r}, the source of the few-shot examples."


def _explain_no_prompt_usable(template: Template, skipped: Mapping[str, int], splits: Sequence[str]) -> str:
    reasons = "; ".join(f"{reason}: {n:,}" for reason, n in sorted(skipped.items())) or "none was selected"
    hint = "Import texts, options and reference answers first: suffrage prompts import BENCHMARK SOURCE."
    if set(skipped) == {NO_OPTIONS}:
        hint = "For prompts without options use --template written."
    if set(skipped) == {NO_REFERENCE_ANSWER} and len(splits) > 1:
        hint = (
            "The reference answers of a split may be unpublished. Try another split: --split NAME. Splits: "
            f"{', '.join(splits)}."
        )
    return f"No prompt can be rendered with template {template.name} ({reasons}). {hint}"
