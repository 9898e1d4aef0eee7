"""From a plan to what is asked: everything that can be refused is refused here, before a model is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from tracker.database import transaction
from tracker.evaluating.plan import Plan
from tracker.evaluating.prompt_templates.rendering import Asked, chosen_rows, questions
from tracker.evaluating.prompt_templates.template import Template, default_template, load_template
from tracker.evaluating.responses import Sampling
from tracker.evaluating.scoring.score_response import check_scoring
from tracker.queries.prompts import Prompts, prompts
from tracker.queries.resolution import BenchmarkKey, find_benchmark
from tracker.queries.selection import Selection

METRICS = {
    "letters": ("accuracy", "gold_probability_letters"),
    "loglikelihood": ("acc", "acc_norm", "gold_probability_likelihoods"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """What is asked, in words.

    Attributes:
        benchmark: of which.
        prompts: all that are stored of it.
        template: how they are put.
        method: how answers are found.
        metrics: under which they are scored.
        sampling: how answers are written.
        asked: by condition.
        splits: those of the prompts that are asked; none where no others are stored.
    """

    benchmark: BenchmarkKey
    prompts: Prompts
    template: Template
    method: str
    metrics: tuple[str, ...]
    sampling: Sampling
    asked: Mapping[str, Asked]
    splits: tuple[str, ...]

    def choices_of(self, prompt_id: int) -> Sequence[str] | None:
        """The options of a prompt; None where it has none."""
        at = int(self.prompts.prompt_ids.searchsorted(prompt_id))
        return self.prompts.choices[at]


def prepare(engine: sa.Engine, plan: Plan) -> Prepared:
    """Read the prompts, and put them in words for each condition.

    Args:
        engine: the store.
        plan: what is to be asked.

    Raises:
        SuffrageError: there is no such benchmark, template or split, or they do not suit each other.
    """
    asking, writing = plan.asking, plan.writing
    check_scoring(writing.metrics, writing.extract, writing.ignore)
    with transaction(engine, write=False) as session:
        benchmark = find_benchmark(session, plan.benchmark)
        stored = prompts(session, Selection(benchmark=plan.benchmark))  # examples may come from other tasks
    rows = chosen_rows(
        stored,
        split=asking.split,
        few_shot_split=asking.few_shot_split,
        tasks=asking.tasks,
        limit=asking.limit,
        seed=asking.seed,
    )
    template = load_template(asking.template, labels=asking.labels) if asking.template else None
    if template is None:
        template = default_template([stored.choices[row] for row in rows])
        if asking.labels:
            template = load_template(template.name, labels=asking.labels)
    method = asking.method or template.method
    asked = {
        condition: questions(
            stored,
            rows,
            template,
            method=method,
            answer_only=condition == "answer_only",
            few_shot=asking.few_shot,
            few_shot_split=asking.few_shot_split,
            shots=asking.shots,
            answer_only_shots=asking.answer_only_shots,
            seed=asking.seed,
        )
        for condition in plan.conditions
    }
    return Prepared(
        benchmark=benchmark,
        prompts=stored,
        template=template,
        method=method,
        metrics=METRICS.get(method, writing.metrics),
        sampling=Sampling(
            max_tokens=writing.max_tokens or template.max_tokens,
            temperature=writing.temperature,
            top_p=writing.top_p,
            seed=asking.seed,
            stop=(*template.stop, *(stop for stop in writing.stop if stop not in template.stop)),
            n_trials=writing.trials if method == "generation" else 1,
        ),
        asked=asked,
        splits=_splits(stored, rows),
    )


def _splits(stored: Prompts, rows: NDArray[np.intp]) -> tuple[str, ...]:
    """The splits of the chosen prompts, where others are stored too."""
    chosen = sorted({stored.splits[row] or "" for row in rows.tolist()})
    return tuple(filter(None, chosen)) if len(chosen) < len(set(stored.splits)) else ()
