"""Local tasks for lm-evaluation-harness, as users write them in YAML; JSON is YAML too."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

WORDS = ("river", "stone", "lamp", "garden", "winter", "paper", "orange", "signal", "harbour", "copper", "window")
N_PROMPTS = 12
N_EXAMPLES = 3
GROUP = "drift_group"
"""Tasks of different sizes."""
PARTS = {"drift_part_a": 5, "drift_part_b": 9}
STRICT = {"function": "regex", "regex_pattern": r"#### (\d+)"}
FLEXIBLE = {"function": "regex", "regex_pattern": r"(\d+)\D*$"}
FIRST = {"function": "take_first"}
MEDIAN = {"metric": "acc", "aggregation": "median", "higher_is_better": True}
EXACT_MATCH = {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}


def documents(name: str, n_prompts: int = N_PROMPTS, n_choices: int = 4) -> list[dict[str, Any]]:
    """Made-up prompts that serve every kind of task."""
    rng = random.Random(name)
    rows = []
    for place in range(n_prompts):
        first, second = rng.randint(1, 60), rng.randint(1, 60)
        choices = rng.sample(WORDS, n_choices)
        rows.append({
            "query": f"Which word of {name} number {place} follows {rng.choice(WORDS)}?",
            "sum": f"What is {first} + {second}?",
            "total": str(first + second),
            "translation": f"We add {first} and {second}.\n#### {first + second + place % 2}",
            "text": " ".join(rng.choices(WORDS, k=rng.randint(4, 15))),
            "choices": choices,
            "gold": rng.randrange(n_choices),
        })  # fmt: skip
    return rows


def configurations(*, has_groups: bool) -> dict[str, dict[str, Any]]:
    """The tasks by name, without their data.

    Args:
        has_groups: whether the release reads groups from files, rather than from their tasks.
    """
    choice = {
        "output_type": "multiple_choice",
        "doc_to_text": "Question: {{query}}\nAnswer:",
        "doc_to_choice": "{{choices}}",
        "doc_to_target": "{{gold}}",
    }
    generation = {
        "output_type": "generate_until",
        "doc_to_text": "Question: {{sum}}\nAnswer:",
        "doc_to_target": "{{total}}",
        "generation_kwargs": {"until": ["Question:"], "do_sample": False},
        "metric_list": [EXACT_MATCH],
    }
    membership: dict[str, Any] = {} if has_groups else {"group": GROUP}
    return {
        "drift_choice": choice | {"metric_list": metrics("acc", "acc_norm", "acc_mutual_info")},
        "drift_binary": choice | {"metric_list": metrics("acc", "f1", "mcc")},
        "drift_few_shot": choice | {
            "metric_list": metrics("acc", "acc_norm"), "num_fewshot": N_EXAMPLES, "fewshot_split": "validation",
            "fewshot_config": {"sampler": "first_n"},
        },
        "drift_median": choice | {"metric_list": [MEDIAN]},
        "drift_filters": generation | {
            "filter_list": [
                {"name": "strict-match", "filter": [STRICT, FIRST]},
                {"name": "flexible-extract", "filter": [FLEXIBLE, FIRST]},
            ],
        },
        "drift_repeats": generation | {
            "repeats": 5,
            "filter_list": [
                {"name": "first", "filter": [STRICT, FIRST]},
                {"name": "majority", "filter": [STRICT, {"function": "majority_vote"}, FIRST]},
            ],
        },
        "drift_corpus": generation | {
            "doc_to_target": "{{translation}}", "metric_list": metrics("bleu", "chrf", "ter"),
        },
        "drift_text": {
            "output_type": "loglikelihood_rolling",
            "doc_to_text": "",
            "doc_to_target": "{{text}}",
            "metric_list": metrics("word_perplexity", "byte_perplexity", "bits_per_byte"),
        },
        "drift_last_word": {
            "output_type": "loglikelihood",
            "doc_to_text": "{{query}}",
            "doc_to_target": " {{choices[gold]}}",
            "metric_list": metrics("perplexity", "acc"),
        },
        **{name: choice | membership | {"metric_list": metrics("acc", "acc_norm")} for name in PARTS},
    }  # fmt: skip


def metrics(*names: str) -> list[dict[str, Any]]:
    """Metrics with the harness's own aggregations."""
    return [{"metric": name} for name in names]


def write_tasks(folder: Path, *, has_groups: bool) -> list[str]:
    """Write the tasks and their data; return what to evaluate."""
    folder.mkdir(parents=True)
    for name, configuration in configurations(has_groups=has_groups).items():
        files = {}
        for split, of, n_prompts in (
            ("test", name, PARTS.get(name, N_PROMPTS)),
            ("validation", f"examples of {name}", N_EXAMPLES),
        ):
            rows = documents(of, n_prompts, 2 if name == "drift_binary" else 4)
            files[split] = str(folder / f"{name}.{split}.json")
            Path(files[split]).write_text("".join(json.dumps(row) + "\n" for row in rows))
        source = {
            "task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": files},
            "test_split": "test", "num_fewshot": 0,
        }  # fmt: skip
        (folder / f"{name}.yaml").write_text(json.dumps(source | configuration, indent=1))
    if has_groups:
        averages = [{"metric": name, "aggregation": "mean", "weight_by_size": True} for name in ("acc", "acc_norm")]
        group = {"group": GROUP, "task": list(PARTS), "aggregate_metric_list": averages}
        (folder / f"{GROUP}.yaml").write_text(json.dumps(group, indent=1))
    return [*(name for name in configurations(has_groups=has_groups) if name not in PARTS), GROUP]
