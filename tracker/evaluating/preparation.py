"""Turn a plan into rendered prompts. Every error of a plan is raised here, before a model is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from tracker.database import transaction
from tracker.errors import SelectionError
from tracker.evaluating.judge import Rubric, load_rubric
from tracker.evaluating.plan import Plan, option_name
from tracker.evaluating.plan_settings import NO_STOP, PromptSettings
from tracker.evaluating.prompt_templates.lm_eval_prompts import NAME as LM_EVAL
from tracker.evaluating.prompt_templates.lm_eval_prompts import LmEvalPrompts
from tracker.evaluating.prompt_templates.rendering import RenderedPrompts, render_prompts, select_rows
from tracker.evaluating.prompt_templates.template import Template, default_template, load_template
from tracker.evaluating.responses import CONVERSATION_TOKENS, Sampling
from tracker.evaluating.scoring.options import LABEL_PROBABILITY
from tracker.evaluating.scoring.pass_at_k import parse_k
from tracker.evaluating.scoring.rules import ScoringRules
from tracker.evaluating.scoring.written_answers import check_rules
from tracker.ingest.datasets.lm_eval.stored_prompt import PROMPT
from tracker.queries.prompts import PromptTexts, load_prompts
from tracker.queries.resolution import BenchmarkKey, find_benchmark
from tracker.queries.selection import Selection

FIXED_BY_TASK = (
    "conditions", "labels", "method", "few_shot", "few_shot_split", "example_choice", "metrics", "preset", "extract",
    "extract_reference", "ignore",
)  # fmt: skip
"""Settings that a prompt imported from lm-evaluation-harness determines."""
METRICS = {
    "letters": ("accuracy", "gold_probability_letters", LABEL_PROBABILITY),
    "loglikelihood": ("acc", "acc_norm", "gold_probability_likelihoods"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedEvaluation:
    """A plan with its rendered prompts.

    Attributes:
        benchmark: the benchmark.
        prompts: all stored prompts of the benchmark.
        template: renders the prompts.
        method: how the model answers.
        metrics: metrics of the scores.
        rules: how generated answers are scored.
        rubric: template of the judge's prompt; None without a judge.
        sampling: sampling options.
        rendered: rendered prompts, by condition.
        splits: splits of the rendered prompts; empty if they cover all splits.
    """

    benchmark: BenchmarkKey
    prompts: PromptTexts
    template: Template
    method: str
    metrics: tuple[str, ...]
    rules: ScoringRules
    rubric: Rubric | None
    sampling: Sampling
    rendered: Mapping[str, RenderedPrompts]
    splits: tuple[str, ...]

    def get_choices(self, prompt_id: int) -> Sequence[str] | None:
        """Return the options of a prompt, or None if it has none."""
        at = int(self.prompts.prompt_ids.searchsorted(prompt_id))
        return self.prompts.choices[at]


def prepare(engine: sa.Engine, plan: Plan) -> PreparedEvaluation:
    """Load the prompts, and render them for each condition.

    Args:
        engine: the store.
        plan: the evaluation.

    Raises:
        SuffrageError: the benchmark, template or split does not exist, or they do not fit each other.
    """
    settings, rules = plan.prompts, plan.generation.rules()
    check_rules(rules)
    if too_large := [name for name in rules.trial_metrics if (parse_k(name) or 0) > plan.generation.trials]:
        raise SelectionError(f"{too_large[0]} needs at least {parse_k(too_large[0])} responses: raise --trials.")
    rubric = load_rubric(plan.generation.judge_template) if plan.generation.judge else None
    with transaction(engine, write=False) as session:
        benchmark = find_benchmark(session, plan.benchmark)
        stored = load_prompts(session, Selection(benchmark=plan.benchmark))
    if settings.template in (None, LM_EVAL) and any(PROMPT in details for details in stored.details):
        _check_fixed_by_task(plan)
    rows = select_rows(
        stored,
        split=settings.split,
        few_shot_split=settings.few_shot_split,
        tasks=settings.tasks,
        limit=settings.limit,
        seed=settings.seed,
    )
    imported = LmEvalPrompts(stored, rows)
    if settings.template == LM_EVAL or (settings.template is None and imported):
        return _prepare_imported(plan, benchmark, stored, imported, rubric)
    template = _choose_template(settings, [stored.choices[row] for row in rows])
    method = settings.method or template.method
    rendered = {
        condition: render_prompts(
            stored,
            rows,
            template,
            method=method,
            answer_only=condition == "answer_only",
            few_shot=settings.few_shot,
            few_shot_split=settings.few_shot_split,
            example_choice=settings.example_choice,
            answer_only_examples=settings.answer_only_examples,
            seed=settings.seed,
        ).with_system_prompt(settings.system_prompt)
        for condition in plan.conditions
    }
    return PreparedEvaluation(
        benchmark=benchmark,
        prompts=stored,
        template=template,
        method=method,
        metrics=METRICS.get(method, (*rules.metrics, *((rubric.metric,) if rubric else ()))),
        rubric=rubric,
        rules=rules,
        sampling=_make_sampling(plan, template, method),
        rendered=rendered,
        splits=_list_splits(stored, rows),
    )


def _check_fixed_by_task(plan: Plan) -> None:
    """Check the options of a plan for prompts imported from lm-evaluation-harness.

    Raises:
        SelectionError: an option would change the texts of prompts, or their scores.
    """
    explicit = [
        option_name(name)
        for part in (plan, plan.prompts, plan.generation)
        for name in FIXED_BY_TASK
        if hasattr(part, name) and getattr(part, name) != type(part).__dataclass_fields__[name].default
    ]
    if explicit:
        raise SelectionError(
            f"The prompts of {plan.benchmark} are evaluated as in lm-evaluation-harness, which determines "
            f"{explicit[0]}. Omit {explicit[0]}, or choose a template, such as --template multiple_choice."
        )


def _prepare_imported(
    plan: Plan, benchmark: BenchmarkKey, stored: PromptTexts, imported: LmEvalPrompts, rubric: Rubric | None
) -> PreparedEvaluation:
    """Prepare prompts whose texts were imported from lm-evaluation-harness."""
    template = imported.template
    rendered = imported.render().with_system_prompt(plan.prompts.system_prompt)
    return PreparedEvaluation(
        benchmark=benchmark,
        prompts=stored,
        template=template,
        method=template.method,
        metrics=(*imported.metrics, *((rubric.metric,) if rubric else ())),
        rubric=rubric,
        rules=ScoringRules(metrics=imported.metrics),
        sampling=_make_sampling(plan, template, template.method),
        rendered=dict.fromkeys(plan.conditions, rendered),
        splits=_list_splits(stored, np.array(imported.rows)),
    )


def _choose_template(settings: PromptSettings, choices: Sequence[Sequence[str] | None]) -> Template:
    if settings.template:
        return load_template(settings.template, labels=settings.labels)
    template = default_template(choices)
    return load_template(template.name, labels=settings.labels) if settings.labels else template


def _make_sampling(plan: Plan, template: Template, method: str) -> Sampling:
    generation = plan.generation
    stop = () if generation.stop == (NO_STOP,) else generation.stop or template.stop
    sampling = Sampling(
        max_tokens=generation.max_tokens or template.max_tokens,
        temperature=generation.temperature,
        top_p=generation.top_p,
        seed=plan.prompts.seed,
        stop=stop,
        is_default_stop=not generation.stop,
        is_default_length=generation.max_tokens is None,
        n_trials=generation.trials if method == "generation" else 1,
    )
    min_tokens = CONVERSATION_TOKENS if plan.server.api_base is not None else 0
    return sampling.for_conversation(min_tokens) if plan.is_chat else sampling


def _list_splits(stored: PromptTexts, rows: NDArray[np.intp]) -> tuple[str, ...]:
    """Return the splits of the chosen prompts, if other splits are stored too."""
    chosen = sorted({stored.splits[row] or "" for row in rows.tolist()})
    return tuple(filter(None, chosen)) if len(chosen) < len(set(stored.splits)) else ()
