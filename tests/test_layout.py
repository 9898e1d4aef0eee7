"""The layout that docs/explanation/architecture.md promises: small folders, small functions, imports without cycles."""

from __future__ import annotations

import ast

import grimp
import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from source_tree import ROOT, modules, nodes

PACKAGES = ("tracker", "analyses")
PLUGINS = {
    "tracker/ingest/formats",
    "tracker/ingest/datasets/presets",
    "tracker/exporting/formats",
    "tracker/cli/commands",
}
MAX_MODULES = 14
MAX_LINES = 60
MAX_PARAMETERS = 10
MAX_LONG_FUNCTIONS = 10


@pytest.fixture(scope="module")
def functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function of the product, with its place."""
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node)
        for package in PACKAGES
        for path in modules(package)
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether click or an analysis declares the parameters, or Python users do: options of a command."""
    marks = {ast.unparse(mark).split("(")[0].split(".")[-1] for mark in function.decorator_list}
    return bool(marks & {"command", "analysis"})


def test_every_folder_holds_few_modules() -> None:
    folders = {path.parent for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    counts = {str(folder.relative_to(ROOT)): len([*folder.glob("[!_]*.py")]) for folder in folders}
    assert {name: n for name, n in counts.items() if n > MAX_MODULES and name not in PLUGINS} == {}


def test_functions_are_short(functions: list[tuple[str, ast.FunctionDef]]) -> None:
    long = [place for place, function in functions if function.end_lineno - function.lineno >= MAX_LINES]
    assert len(long) <= MAX_LONG_FUNCTIONS, long


def test_functions_take_few_parameters(functions: list[tuple[str, ast.FunctionDef]]) -> None:
    def n_parameters(function: ast.FunctionDef) -> int:
        arguments = function.args
        return len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs])

    public = ("tracker/api/",)
    many = [
        place
        for place, function in functions
        if n_parameters(function) > MAX_PARAMETERS and not is_command(function) and not place.startswith(public)
    ]
    assert many == []


def test_no_modules_import_each_other_in_a_cycle() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    modules = sorted(graph.modules)
    number = {name: place for place, name in enumerate(modules)}
    pairs = [
        (number[module], number[imported])
        for module in modules
        for imported in graph.find_modules_directly_imported_by(module)
    ]
    rows, columns = np.array(pairs).T
    edges = coo_array((np.ones(len(pairs)), (rows, columns)), shape=(len(modules), len(modules)))
    _, component = connected_components(edges, directed=True, connection="strong")
    cycles = [
        [modules[place] for place in np.flatnonzero(component == label)]
        for label in np.flatnonzero(np.bincount(component) > 1)
    ]
    assert cycles == []
