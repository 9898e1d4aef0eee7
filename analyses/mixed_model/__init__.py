"""Split score variance into crossed effects of models, tasks and prompts.

Ranks all models, also those with missing scores: `--missing impute`, the default, estimates them by the fitted effects
of model, task and prompt. It assumes that scores are not missing because they are bad. Effects of models within tasks
are pooled: a task with few prompts shrinks towards the model's overall level. Few-shot examples and
the length of questions enter as covariates where they are stored. Scores of 0 and 1 get a logistic model.

Source: Bates et al. 2015; Breslow & Clayton 1993.
Definitions: docs/reference/statistics/mixed-model.md.

Examples:
    suffrage analyze mixed-model mmlu_pro
    suffrage analyze mixed-model mmlu_pro --response gaussian
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from analyses.mixed_model import figures, tables
from analyses.mixed_model.method import fit_scores, split_scored
from analyses.mixed_model.summary import describe_verdict, list_warnings, summarize
from analyses.mixed_model.validation import find_problems
from analyses.numerics.mixed.effects import prompt_effects
from analyses.presentation.validation import validate
from tracker.queries.catalogue.covariates import Covariates
from tracker.queries.ranking.special_treatments import StoredScores
from tracker.recording.finding import PromptValues, Report, analysis

SCHEME = "mixed-model"


@analysis(
    in_verdict={},
    verdict_limit=20_000,
    missing="impute",
    policies=("impute", "common", "worst", "fail"),
    min_coverage=0.0,
    tests={
        "first place": ("first.holm",),
        "first place on other tasks": ("other_tasks.first.holm",),
        "covariates": ("covariates.holm",),
    },
    n_tests={
        "first place": "n_pairs",
        "first place on other tasks": "n_pairs",
        "covariates": "covariates.n_tests",
    },
    leader_tests=("first place", "first place on other tasks"),
)
def analyze(
    scores: StoredScores,
    stored: Covariates,
    *,
    response: Annotated[
        Literal["auto", "gaussian", "logistic"],
        "Distribution of the scores. auto: logistic for scores of 0 and 1, else gaussian.",
    ] = "auto",
    likelihood: Annotated[
        Literal["restricted", "full"],
        "What gaussian maximizes. restricted: REML, with unbiased variances; full: ML, comparable between covariates.",
    ] = "restricted",
    covariates: Annotated[
        Literal["stored", "none"],
        "stored: few-shot examples, length and family where they are known; none: without.",
    ] = "stored",
    level: Annotated[
        float, "Confidence level at which all rank intervals hold together, and of each other interval."
    ] = 0.95,
) -> Report:
    """Fit a mixed model and rank the models.

    Args:
        scores: at least 2 models and 2 prompts, with any scores missing.
        stored: covariates.
        response: of the scores.
        likelihood: of the linear model.
        covariates: whether to use ``stored``.
        level: of intervals.

    Raises:
        SelectionError: all scores are equal or explained without a residual, or an option is out of range.
    """
    scored, dropped = split_scored(scores)
    validate(find_problems(scored, response=response, likelihood=likelihood, level=level))
    finding = fit_scores(
        scored, stored if covariates == "stored" else None, response=response, likelihood=likelihood, level=level
    )
    return Report(
        finding,
        summary=summarize(finding),
        prompt_values={"effect": PromptValues(prompt_ids=scored.prompt_ids, values=prompt_effects(finding.fit))},
        task_values={"effect": dict(zip(finding.tasks, finding.by_task.effect.tolist(), strict=True))},
        rankings={SCHEME: tables.list_rankings(finding)},
        tables={
            "variances": tables.list_variances(finding),
            "models": tables.list_models(finding, scored.Q),
            "tasks": tables.list_tasks(finding),
            "deviations": tables.list_deviations(finding),
            "covariates": tables.list_covariates(finding),
        },
        figures={
            "effects": partial(figures.draw_effects, finding),
            "variances": partial(figures.draw_variances, finding),
        },
        warnings=list_warnings(finding, dropped),
        verdict=partial(describe_verdict, finding),
        ranked_by="by the mixed model",
    )
