"""Prompts imported from lm-evaluation-harness: their texts are stored, and need no template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import cached_property
from types import MappingProxyType
from typing import Any

import orjson

from tracker.errors import SelectionError
from tracker.evaluating.prompt_templates.prompt_content import sha256_digest
from tracker.evaluating.prompt_templates.reference_answers import NO_REFERENCE_ANSWER
from tracker.evaluating.prompt_templates.rendered_prompt import FewShotExample, RenderedPrompt
from tracker.evaluating.prompt_templates.rendering import RenderedPrompts
from tracker.evaluating.prompt_templates.template import Template
from tracker.ingest.datasets.lm_eval.stored_prompt import EXAMPLE, PROMPT, LmEvalPrompt, TaskScoring
from tracker.queries.prompts import PromptTexts

NAME = "lm_eval"
"""Name of the template of these prompts."""
DEFAULT_MAX_TOKENS = 256
NOT_IMPORTED = "not imported from lm-evaluation-harness"


class LmEvalPrompts:
    """The stored texts of prompts.

    Args:
        prompts: all stored prompts.
        rows: the prompts to evaluate.
    """

    def __init__(self, prompts: PromptTexts, rows: Iterable[int]) -> None:
        self.prompts, self.rows = prompts, [int(row) for row in rows]
        fields = {row: prompts.details[row].get(PROMPT) for row in self.rows}
        self.stored = {row: LmEvalPrompt.from_field(field) for row, field in fields.items() if field}

    def __bool__(self) -> bool:
        return bool(self.stored)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the names of all metrics."""
        names = [name for prompt in self.stored.values() for name in prompt.scoring.metric_names()]
        return tuple(dict.fromkeys(names))

    @cached_property
    def template(self) -> Template:
        """Return a template with the settings of the task, for the record of a run.

        Raises:
            SelectionError: no prompt is stored with such texts, or no run can evaluate all prompts.
        """
        if not self.stored:
            raise SelectionError(
                "No prompt is stored with the texts of lm-evaluation-harness. Import them: suffrage prompts import "
                "--lm-eval TASK; or choose another template."
            )
        scorings = [prompt.scoring for prompt in self.stored.values()]
        kinds = {(scoring.output_type, tuple(scoring.until), scoring.max_gen_toks) for scoring in scorings}
        if len(kinds) > 1:
            raise SelectionError("The tasks differ in their output type or stop strings. Select some: --tasks A,B.")
        first = scorings[0]
        settings = {
            "answer": "written" if first.output_type == "generate_until" else "text",
            "join": "",
            "separator": "",
            "blank": "",
            "isolated_labels": False,
            "stop": tuple(first.until),
            "max_tokens": first.max_gen_toks or DEFAULT_MAX_TOKENS,
        }
        source = "\n".join(sorted({_dump(scoring) for scoring in scorings}))
        return Template(name=NAME, source=source, settings=settings, labels="letters", blocks={})

    def render(self) -> RenderedPrompts:
        """Return the prompts as the harness sends them.

        Raises:
            SelectionError: an example is not stored.
        """
        skipped: Counter[str] = Counter()
        rendered = []
        for row in self.rows:
            if row not in self.stored:
                skipped[NOT_IMPORTED] += 1
            elif self.stored[row].scoring.output_type == "multiple_choice" and not self.stored[row].correct:
                skipped[NO_REFERENCE_ANSWER] += 1
            else:
                rendered.append(self._render_one(row, self.stored[row]))
        if not rendered:
            reasons = "; ".join(f"{reason}: {n:,}" for reason, n in sorted(skipped.items()))
            raise SelectionError(f"No prompt can be evaluated ({reasons}).")
        return RenderedPrompts(
            prompts=tuple(rendered),
            skipped=MappingProxyType(dict(skipped)),
            few_shot=max(len(prompt.examples) for prompt in rendered),
            digest=sha256_digest(sorted(map(_digest, rendered))),
        )

    def _render_one(self, row: int, stored: LmEvalPrompt) -> RenderedPrompt:
        task = self.prompts.tasks[row]
        missing = [identifier for identifier in stored.examples if (task, identifier) not in self._examples]
        if missing:
            raise SelectionError(
                f"A few-shot example of task {task!r} is not stored ({missing[0]}). Import the task again: suffrage "
                "prompts import --lm-eval TASK."
            )
        return RenderedPrompt(
            prompt_id=int(self.prompts.prompt_ids[row]),
            header=stored.description,
            examples=tuple(self._examples[task, identifier] for identifier in stored.examples),
            separator=stored.separator,
            question=stored.question,
            contexts=tuple(stored.contexts),
            join=stored.join,
            options=tuple(stored.continuations),
            correct_option=stored.correct[0] if len(stored.correct) == 1 else None,
            references=tuple(stored.references),
            lm_eval=stored,
        )

    @cached_property
    def _examples(self) -> Mapping[tuple[str, str], FewShotExample]:
        """Few-shot examples by task and identifier."""
        fields: list[tuple[str, Any]] = [
            (task, details[EXAMPLE])
            for task, details in zip(self.prompts.tasks, self.prompts.details, strict=True)
            if EXAMPLE in details
        ]
        return {
            (task, example["id"]): FewShotExample(
                question=example["question"], answer=example["answer"], join=example["join"]
            )
            for task, example in fields
        }


def _digest(prompt: RenderedPrompt) -> str:
    """Return the SHA-256 of a prompt, without its key."""
    assert prompt.lm_eval is not None
    texts = list(prompt.contexts) or [prompt.question]
    answers = list(prompt.lm_eval.correct), list(prompt.references), _dump(prompt.lm_eval.scoring)
    return sha256_digest(prompt.head(), texts, prompt.join, list(prompt.options), *answers)


def _dump(scoring: TaskScoring) -> str:
    return orjson.dumps(asdict(scoring), option=orjson.OPT_SORT_KEYS).decode()
