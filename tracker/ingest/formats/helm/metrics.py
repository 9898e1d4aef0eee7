"""Selection of HELM's statistics that are scores.

HELM records about thirty numbers per instance, mostly counts, costs and probabilities. `describe_metric` knows the
scores by name; other statistics are skipped unless the user names one.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tracker.ingest.measurement import MetricDescription, ReadOptions, metric_description

RATES = frozenset({
    "exact_match", "quasi_exact_match", "quasi_leave_articles_exact_match", "prefix_exact_match",
    "quasi_prefix_exact_match", "exact_match_indicator", "final_number_exact_match", "exact_set_match",
    "iou_set_match", "f1_set_match", "f1_score", "rouge_1", "rouge_2", "rouge_l", "bleu_1", "bleu_4",
    "chinese_bleu_1", "chinese_rouge_1", "chinese_rouge_2", "cleva_math_result_match", "math_equiv",
    "math_equiv_chain_of_thought", "code_eval_acc", "pass", "strict_acc", "test_avg", "chain_of_thought_correctness",
    "ifeval_strict_accuracy", "omni_math_accuracy", "wildbench_score_rescaled", "classification_macro_f1",
    "classification_micro_f1", "NDCG", "RR",
})  # fmt: skip
"""From 0 to 1, higher is better; also with @k, the best of k outputs or the first k of a list."""
DISTANCES = frozenset({"absolute_value_difference", "ter_score", "mer_score", "cer_score"})
"""From 0 up, lower is better."""
OTHER_METRICS = re.compile(r"wildbench_score|safety_score|cider|tip_score|classification_\w+|ifeval_\w+|math_equiv\w*"
                    r"|\w*(?:accuracy|correctness|exact_match)")  # fmt: skip
"""Higher is better, with uncertain bounds: scores of judge models, and newer variants of the rates."""


def describe_metric(name: str, options: ReadOptions) -> MetricDescription | None:
    """Return the description of a score; None if the statistic is not a score."""
    plain = re.sub(r"@\d{1,4}$", "", name)
    description = metric_description(name, options)
    if plain in RATES:
        known = MetricDescription(name=name, higher_is_better=True, lower=0.0, upper=1.0)
    elif plain in DISTANCES:
        known = MetricDescription(name=name, higher_is_better=False, lower=0.0)
    elif OTHER_METRICS.fullmatch(plain):
        known = MetricDescription(name=name, higher_is_better=True)
    elif name == options.metric:
        return description
    else:
        return None
    return replace(
        known,
        higher_is_better=known.higher_is_better if options.higher_is_better is None else options.higher_is_better,
        lower=known.lower if options.lower is None else options.lower,
        upper=known.upper if options.upper is None else options.upper,
    )
