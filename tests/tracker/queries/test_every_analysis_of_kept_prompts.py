"""Every discovered question, asked with --filter, answers as where the dropped prompts were never stored."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from analysis_options import SCORES_ONLY
from filled_stores import N_SIMULATED as N
from filled_stores import add_simulated_benchmark

from tracker.cli.commands.analyze import analysis_command
from tracker.database import connect, transaction
from tracker.errors import SuffrageError
from tracker.queries.selection import Selection
from tracker.recording.declaration import Declaration, load_declaration
from tracker.recording.finding import Report, Undefined
from tracker.recording.pipeline import run_analysis
from tracker.recording.registry import discover_analyses

NAMED_MODELS: Mapping[str, object] = SCORES_ONLY | {"model_a": "maker 8/model", "model_b": "maker 2/model"}


def questions() -> list[str]:
    """Names of all questions about one benchmark."""
    return [name for name in discover_analyses() if load_declaration(name).is_of_one_benchmark]


def about_filters(name: str) -> bool:
    return "filter" in load_declaration(name).claimed_options


def quick(declaration: Declaration) -> dict[str, Any]:
    return declaration.complete(
        {
            parameter.name: NAMED_MODELS[parameter.name]
            for parameter in declaration.parameters
            if parameter.name in NAMED_MODELS
        }
    )


def request(engine: sa.Engine, declaration: Declaration, selection: Selection) -> Report:
    """The report on a selection, computed and not drawn."""
    with transaction(engine, write=False) as session:
        inputs = [
            None
            if name in declaration.optional and not kind.is_chosen(selection)
            else kind.load(session, declaration.selection_for(kind, selection))
            for name, kind in declaration.inputs.items()
        ]
    return declaration.function(*inputs, **quick(declaration))


def result(report: Report) -> dict[str, str]:
    """Every number of a finding, to the last bit, or the reason why there is none."""
    numbers = report.finding.metrics.items()
    return {name: value.reason if isinstance(value, Undefined) else repr(float(value)) for name, value in numbers}


@pytest.fixture(scope="module")
def stores(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[sa.Engine, int, sa.Engine]]:
    """A store with a filter, the filter's key, and a store that never held the prompts that it drops."""
    engines = []
    for name in ("whole", "kept"):
        path = tmp_path_factory.mktemp(name) / "store.db"
        shutil.copy(sqlite_template, path)
        engines.append(connect(f"sqlite:///{path}"))
    whole, of_kept = engines
    add_simulated_benchmark(whole, np.ones(N, dtype=np.bool_))
    created = run_analysis(
        whole, "smart-filtering", Selection(benchmark="b"), quick(load_declaration("smart-filtering"))
    )
    kept = created.report.filter.kept
    in_order = np.argsort(created.report.filter.prompt_ids)
    assert N // 2 < kept.sum() < N - 5
    add_simulated_benchmark(of_kept, kept[in_order])
    yield whole, created.finding_id, of_kept
    for engine in engines:
        engine.dispose()


@pytest.mark.parametrize("name", [name for name in questions() if not about_filters(name)])
def test_every_question_of_kept_prompts_answers_as_if_there_were_no_others(
    stores: tuple[sa.Engine, int, sa.Engine], name: str
) -> None:
    whole, key, of_kept = stores
    declaration, selection = load_declaration(name), Selection(benchmark="b")
    chosen = [selection, replace(selection, weights="task-equal")] if declaration.has_option("weights") else [selection]
    for item in chosen:
        expected = result(request(of_kept, declaration, item))
        assert result(request(whole, declaration, replace(item, filter=key))) == expected
        assert expected
    assert result(request(whole, declaration, selection)) != result(request(of_kept, declaration, selection))


@pytest.mark.parametrize("name", [name for name in questions() if about_filters(name)])
def test_every_question_about_a_filter_looks_at_all_prompts(
    stores: tuple[sa.Engine, int, sa.Engine], name: str
) -> None:
    whole, key, _ = stores
    declaration, selection = load_declaration(name), Selection(benchmark="b")
    names = request(whole, declaration, replace(selection, filter=key))
    assert result(names) == result(request(whole, declaration, selection))  # it is the latest
    with pytest.raises(SuffrageError, match="No finding '99' with a filter"):
        request(whole, declaration, replace(selection, filter=99))


@pytest.mark.parametrize("name", questions())
def test_every_question_has_the_option(name: str) -> None:
    declaration = load_declaration(name)
    options = {option.name: option for option in analysis_command(declaration).params}
    default = "ID of a filter finding; only the prompts that it keeps are used."
    output = declaration.claimed_options.get("filter", default)
    assert options["filter"].help == output
