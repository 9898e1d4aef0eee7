"""Near-copies of models do not pass for structure of the prompts."""

from __future__ import annotations

import numpy as np
import pytest
from performance_matrices import matrix

from analyses.presentation.one_per_family import FamilyTest, state_verdict
from analyses.prompt_correlation import analyze as correlate
from analyses.rank_intervals import analyze as rank
from tracker.queries.clusters import Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.related_models.family_labels import FamilyLabels
from tracker.recording.finding import Report, Undefined
from tracker.statistics.resampling import PermutationTest

N_PROMPTS, N_MODELS = 500, 12
MODELS = tuple(f"model {j}" for j in range(N_MODELS + 1))
OPTIONS = {"null": "margins", "similarities": ("hamming",)}


def rasch_with_near_copy(rng: np.random.Generator, share: float) -> PerformanceMatrix:
    """Independent models and prompts without structure; the last model is the first with some scores changed."""
    odds = rng.normal(0, 1, (1, N_MODELS)) - rng.normal(0, 1.5, (N_PROMPTS, 1))
    Q = (rng.random((N_PROMPTS, N_MODELS)) < 1 / (1 + np.exp(-odds))).astype(float)
    return matrix(np.column_stack([Q, np.abs(Q[:, 0] - (rng.random(N_PROMPTS) < share))]), MODELS)


def correlate_with_margins(scores: PerformanceMatrix, seed: int, n_permutations: int) -> Report:
    return correlate(scores, n_permutations=n_permutations, seed=seed, **OPTIONS)


def check_rejections(n_tables: int, n_permutations: int, most: float) -> None:
    """The full test rejects nearly all tables, that with one model per family few, and the pair is named."""
    for share in (0.05, 0.1):
        rng = np.random.default_rng(round(1000 * share))
        rejected = reduced = n_named = families = 0
        for seed in range(n_tables):
            report = correlate_with_margins(rasch_with_near_copy(rng, share), seed, n_permutations)
            metrics = report.finding.metrics
            rejected += metrics["hamming.variance.pvalue"] <= 0.05
            pvalue = metrics["one_per_family.pvalue"]
            reduced += metrics["hamming.variance.pvalue"] <= 0.05 if isinstance(pvalue, Undefined) else pvalue <= 0.05
            families += metrics["one_per_family.n_models"] == N_MODELS
            first = report.tables["model_pairs"].slice(0, 1).to_pylist()[0]
            n_named += (first["model"], first["other"]) == ("model 0", f"model {N_MODELS}")
        print(
            f"\n{share:.0%} flips, {n_tables:,} Rasch tables of {N_PROMPTS} x {N_MODELS} and one near-copy: "
            f"rejected in {rejected / n_tables:.2%}, with one model per family in {reduced / n_tables:.2%}; "
            f"pair named in {n_named / n_tables:.2%}, the {N_MODELS} families found in {families / n_tables:.2%}"
        )
        assert rejected >= 0.95 * n_tables
        assert n_named >= 0.99 * n_tables
        assert families >= 0.98 * n_tables
        assert reduced <= most * n_tables


@pytest.mark.soak
def test_a_near_copy_does_not_pass_for_structure_of_the_prompts():
    check_rejections(2000, 99, 0.07)


def test_a_near_copy_is_named_and_left_out_in_a_few_tables():
    check_rejections(8, 39, 0.3)


def test_the_verdict_attributes_the_excess_to_the_pair():
    summary = correlate_with_margins(rasch_with_near_copy(np.random.default_rng(4), 0.05), 0, 199).summary
    assert summary.headline.startswith(
        "Related models can explain why some prompts agree more, others less, than chance allows: p = 0.01 with all "
        "models, not significant with one model per family (p = 0."
    )
    text = " ".join(summary.evidence)
    assert "Pairs of models with the largest shares of the excess: model 0 and model 12 (" in text
    assert "One model per family (12 of 13 models): " in text


@pytest.mark.parametrize(
    ("n_greater", "end"),
    [
        (0, " (p = 0.01), with one model per family too."),
        (100, ": p = 0.01 with all models, not significant with one model per family (p = 1)."),
        (
            199,
            ": p = 0.01 with all models, significant in the opposite direction with one model per family (p = 0.01).",
        ),
    ],
)
def test_a_verdict_that_related_models_can_explain_is_not_stated_of_the_prompts(n_greater, end):
    full, reduced = (
        PermutationTest(observed=1.0, null=np.arange(199.0), n_greater=n, n_equal=0) for n in (0, n_greater)
    )
    families = FamilyTest(n_models=4, n_families=3, test=reduced)
    sentence = state_verdict("Prompts agree", "p = 0.01", full, families)
    beginning = "Prompts agree" if n_greater == 0 else "Related models can explain why prompts agree"
    assert sentence == beginning + end.replace(": A,", ": p = 0.01 with all models,")
    assert state_verdict("Prompts agree", "p = 0.01", full, None) == "Prompts agree (p = 0.01)."


def test_stored_families_and_names_decide_too():
    rng = np.random.default_rng(5)
    scores = matrix((rng.random((40, 4)) < 0.5).astype(float), ("a-7b", "a-13b", "b", "c"))
    by_name = correlate(scores, n_permutations=19, **OPTIONS).finding
    assert by_name.metrics["one_per_family.n_models"] == 3
    stored = FamilyLabels(stored={"a-7b": "x", "a-13b": "y", "b": "x", "c": "y"})
    by_facts = correlate(scores, None, stored, n_permutations=19, **OPTIONS).finding
    assert by_facts.metrics["one_per_family.n_models"] == 2
    shared = FamilyLabels(stored=dict.fromkeys(scores.models, "x"))
    reason = correlate(scores, None, shared, n_permutations=19, **OPTIONS).finding.metrics["one_per_family.pvalue"]
    assert reason == Undefined("all models are one family")


def test_rank_intervals_are_repeated_with_the_best_model_of_each_family():
    rng = np.random.default_rng(6)
    means = (0.9, 0.85, 0.5, 0.2)
    scores = matrix((rng.random((400, 4)) < np.array(means)).astype(float), ("a-70b", "a-7b", "b", "c"))
    clusters = Clusters(field="none", prompt_ids=scores.prompt_ids, names=np.full(400, ""))
    report = rank(scores, clusters, n_resamples=0)
    assert report.finding.metrics["one_per_family.n_models"] == 3
    assert report.finding.metrics["one_per_family.n_may_lead"] == 1
    assert report.summary.evidence[-1] == (
        "One model per family (3 of 4 models): 3 of 3 pairs differ significantly. First may be: a-70b."
    )
