"""A task of lm-evaluation-harness: its settings, validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.datasets.lm_eval.code import load_code
from tracker.ingest.datasets.lm_eval.task_search import FoundTask
from tracker.ingest.datasets.lm_eval.yaml_files import CodeReference, find_code
from tracker.name_lists import join_names

MULTIPLE_CHOICE, LOGLIKELIHOOD, GENERATE = "multiple_choice", "loglikelihood", "generate_until"
OUTPUT_TYPES = (MULTIPLE_CHOICE, LOGLIKELIHOOD, GENERATE)
MASS_FUNCTION = "process_results_mc2"
"""The only supported function of ``process_results``: TruthfulQA's probability mass on the true answers."""
METRICS: Mapping[str, Sequence[str]] = {
    MULTIPLE_CHOICE: ("acc", "acc_norm", "acc_bytes"),
    LOGLIKELIHOOD: ("perplexity", "acc"),
    GENERATE: ("exact_match",),
}
"""Supported metrics by output type."""
DEFAULT_METRICS = {
    MULTIPLE_CHOICE: ("acc", "acc_norm"),
    LOGLIKELIHOOD: ("perplexity", "acc"),
    GENERATE: ("exact_match",),
}
FILTERS = ("regex", "take_first", "remove_whitespace", "lowercase", "uppercase", "map", "multi_choice_regex")
NO_FILTER = "none"
SAMPLERS = ("default", "first_n")
UNSUPPORTED = {
    "class": "is a task in Python",
    "custom_dataset": "makes its documents in Python",
    "use_prompt": "uses a prompt of promptsource",
    "doc_to_image": "shows images",
    "doc_to_audio": "plays audio",
    "unsafe_code": "runs generated code",
}
"""Fields of tasks that cannot be imported, and why."""
MATCH_OPTIONS = ("ignore_case", "ignore_punctuation", "ignore_numbers", "regexes_to_ignore")
LENGTH_NAMES = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""Names of the maximum number of output tokens, by priority."""
MAX_TOKENS = 256
EXECUTED = ("process_docs", "doc_to_text", "doc_to_target", "doc_to_choice", "fewshot_config")
"""Fields in which a function runs; functions elsewhere do not."""


@dataclass(frozen=True, kw_only=True)
class FewShot:
    """Few-shot examples of a task.

    Attributes:
        n: examples per prompt.
        sampler: ``default`` draws them, ``first_n`` takes the first.
        split: split that they come from; None for another source.
        process_docs: function that changes the documents of that split.
        samples: the examples themselves.
        doc_to_text, doc_to_choice, doc_to_target, gen_prefix, target_delimiter, fewshot_delimiter: as of the task.
    """

    n: int = 0
    sampler: str = "default"
    split: str | None = None
    process_docs: Any = None
    samples: Any = None
    doc_to_text: Any = None
    doc_to_choice: Any = None
    doc_to_target: Any = None
    gen_prefix: str | None = None
    target_delimiter: str = " "
    fewshot_delimiter: str = "\n\n"


@dataclass(frozen=True, kw_only=True)
class LmEvalTask:
    """A task that can be imported.

    Attributes:
        name: its name.
        path: its file.
        output_type: one of `OUTPUT_TYPES`.
        dataset_path, dataset_name, dataset_kwargs: where its documents are, as of the package `datasets`.
        training_split, validation_split, test_split: names of splits.
        process_docs, doc_to_text, doc_to_target, doc_to_choice: templates, names of fields, or functions.
        description, gen_prefix, target_delimiter: texts of the prompt, or templates.
        few_shot: its few-shot examples.
        metrics: supported metrics with their options.
        filters: pipelines of filter functions, by name.
        generation: stop strings (``until``), ``max_gen_toks`` and ``temperature``.
        sums_probability: whether the score is the probability mass of the true options.
        ignored: metrics that are not supported.
    """

    name: str
    path: Path
    output_type: str
    dataset_path: str
    dataset_name: str | None = None
    dataset_kwargs: Mapping[str, Any] = field(default_factory=dict)
    training_split: str | None = None
    validation_split: str | None = None
    test_split: str | None = None
    process_docs: Any = None
    doc_to_text: Any = None
    doc_to_target: Any = None
    doc_to_choice: Any = None
    description: str = ""
    gen_prefix: str | None = None
    target_delimiter: str = " "
    few_shot: FewShot = field(default_factory=FewShot)
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    filters: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    generation: Mapping[str, Any] = field(default_factory=dict)
    sums_probability: bool = False
    ignored: tuple[str, ...] = ()


def make_task(source: FoundTask, *, trust_code: bool, n_few_shot: int | None = None) -> LmEvalTask:
    """Validate the settings of a task.

    Args:
        source: the task as found.
        trust_code: whether its Python functions may run.
        n_few_shot: few-shot examples per prompt; None for the task's. As in the harness, a task that sets 0 keeps 0.

    Raises:
        BadInputError: the task is not supported, or runs Python functions without trust.
    """
    settings = dict(source.settings)
    _check_supported(source)
    if not trust_code and (code := find_code([settings.get(name) for name in EXECUTED])) is not None:
        raise BadInputError(
            source.path,
            f"the task {source.name} runs Python code ({code.name}).",
            advice=f"Read {code.folder}, then allow its functions to run: --trust-code.",
        )
    code_free = {name: _load(settings.get(name)) for name in EXECUTED[:-1]}
    output_type = settings.get("output_type") or GENERATE
    sums_probability = isinstance(settings.get("process_results"), CodeReference)
    metrics, ignored = _list_metrics(source, output_type)
    texts = {
        name: settings[name]
        for name in ("description", "gen_prefix", "target_delimiter")
        if settings.get(name) is not None
    }
    return LmEvalTask(
        name=source.name,
        path=source.path,
        output_type=output_type,
        dataset_path=str(settings["dataset_path"]),
        dataset_name=settings.get("dataset_name"),
        dataset_kwargs=settings.get("dataset_kwargs") or {},
        training_split=settings.get("training_split"),
        validation_split=settings.get("validation_split"),
        test_split=settings.get("test_split"),
        few_shot=_make_few_shot(source, code_free, n_few_shot),
        metrics=metrics,
        filters=_list_filters(source, output_type),
        generation=_make_generation(settings) if output_type == GENERATE else {},
        sums_probability=sums_probability,
        ignored=ignored,
        **code_free,
        **texts,
    )


def _load(value: Any) -> Any:
    """Return a setting with its function loaded."""
    return load_code(value) if isinstance(value, CodeReference) else value


def _check_supported(source: FoundTask) -> None:
    settings = source.settings
    for name, reason in UNSUPPORTED.items():
        if settings.get(name):
            raise BadInputError(source.path, f"the task {source.name} {reason} ({name}), which is not supported.")
    if not settings.get("dataset_path"):
        raise BadInputError(source.path, f"the task {source.name} has no dataset_path.")
    output_type = settings.get("output_type") or GENERATE
    if output_type not in OUTPUT_TYPES:
        raise BadInputError(
            source.path,
            f"the task {source.name} has the output type {output_type}, which is not supported.",
            advice=f"Supported: {', '.join(OUTPUT_TYPES)}.",
        )
    scorer = settings.get("process_results")
    if scorer and not (isinstance(scorer, CodeReference) and scorer.name.rpartition(".")[2] == MASS_FUNCTION):
        name = scorer.name if isinstance(scorer, CodeReference) else scorer
        raise BadInputError(source.path, f"the task {source.name} scores in Python ({name}), which is not supported.")
    if (settings.get("repeats") or 1) != 1:
        raise BadInputError(source.path, f"the task {source.name} has repeats above 1, which are not supported.")


def _list_metrics(source: FoundTask, output_type: str) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """Return the supported metrics with their options, and the names of the others."""
    entries = source.settings.get("metric_list")
    if entries is None:
        return {name: {} for name in DEFAULT_METRICS[output_type]}, ()
    metrics: dict[str, dict[str, Any]] = {}
    ignored = []
    for entry in entries:
        name = entry.get("metric")
        options = {key: entry[key] for key in MATCH_OPTIONS if entry.get(key)}
        if (
            isinstance(name, str)
            and name in METRICS[output_type]
            and not isinstance(entry.get("aggregation"), CodeReference)
        ):
            metrics[name] = options
        else:
            ignored.append(name.name if isinstance(name, CodeReference) else str(name))
    if not metrics:
        raise BadInputError(
            source.path,
            f"the task {source.name} has no supported metric (it has {join_names(ignored, 5) or 'none'}).",
            advice=f"Supported for {output_type}: {', '.join(METRICS[output_type])}.",
        )
    return metrics, tuple(ignored)


def _list_filters(source: FoundTask, output_type: str) -> dict[str, list[dict[str, Any]]]:
    entries = source.settings.get("filter_list")
    if not entries:
        return {NO_FILTER: []}
    filters = {str(entry["name"]): list(entry["filter"]) for entry in entries}
    known = FILTERS if output_type == GENERATE else ("take_first",)
    for steps in filters.values():
        for step in steps:
            if find_code(step) is not None or step.get("function") not in known:
                function = step.get("function")
                raise BadInputError(
                    source.path,
                    f"the task {source.name} uses the filter {getattr(function, 'name', function)}, which is not "
                    f"supported for {output_type}.",
                    advice=f"Supported: {', '.join(known)}.",
                )
    return {name: [dict(step) for step in steps if step["function"] != "take_first"] for name, steps in filters.items()}


def _make_generation(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return stop strings, length and temperature, with the harness's defaults."""
    options = dict(settings.get("generation_kwargs") or {})
    until = options.get("until", settings.get("fewshot_delimiter") or "\n\n")
    length = next((options[name] for name in LENGTH_NAMES if options.get(name) is not None), MAX_TOKENS)
    samples = bool(options.get("do_sample", float(options.get("temperature") or 0) > 0))
    temperature = float(options.get("temperature", 1.0) or 0.0) if samples else 0.0
    return {
        "until": [until] if isinstance(until, str) else list(until or ()),
        "max_gen_toks": int(length),
        "temperature": temperature,
        **({"top_p": float(options["top_p"])} if samples and "top_p" in options else {}),
    }


def _make_few_shot(source: FoundTask, functions: Mapping[str, Any], n_few_shot: int | None) -> FewShot:
    settings = source.settings
    specific = {name: _load(value) for name, value in dict(settings.get("fewshot_config") or {}).items()}
    n_listed = settings.get("num_fewshot")
    n = int(n_listed or 0) if n_few_shot is None or n_listed == 0 else n_few_shot
    inherited = {
        "split": settings.get("fewshot_split"),
        "process_docs": functions["process_docs"],
        "fewshot_delimiter": settings.get("fewshot_delimiter", "\n\n"),
        "target_delimiter": settings.get("target_delimiter", " "),
        "gen_prefix": settings.get("gen_prefix"),
        **{name: functions[name] for name in ("doc_to_text", "doc_to_choice", "doc_to_target")},
    }
    merged = inherited | specific
    merged.pop("fewshot_indices", None)  # without effect in the harness, too
    unknown = set(merged) - set(FewShot.__dataclass_fields__)
    if unknown:
        raise BadInputError(
            source.path, f"the task {source.name} has an unknown field of fewshot_config: {min(unknown)}."
        )
    if merged.get("sampler", "default") not in SAMPLERS:
        raise BadInputError(
            source.path,
            f"the task {source.name} uses the sampler {merged['sampler']!r}, which is not supported.",
            advice=f"Supported: {', '.join(SAMPLERS)}.",
        )
    return FewShot(n=n, **merged)
