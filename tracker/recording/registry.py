"""Analyses, found through the entry-point group `suffrage.analyses`.

An entry names a package, whose own modules are looked at, or one module. A module is an analysis when
it holds a function marked with `analysis`. Names and first lines are read from the source: nothing is
imported before an analysis is used, so that a broken one costs only its own command.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from tracker.errors import NotFoundError

GROUP = "suffrage.analyses"
MARK = "analysis"
OURS = "suffrage"


@dataclass(frozen=True, kw_only=True)
class AnalysisModule:
    """A module that is an analysis, as far as its source tells.

    Attributes:
        name: what its command is called, such as ``prompt-correlation``.
        module: its full name, such as ``analyses.prompt_correlation``.
        path: where its source lies; None where it could not be found.
        question: first line of its docstring.
        distribution: name and version of the package that brings it; '' where unknown.
        problem: why it cannot be used; '' where nothing speaks against it yet.
    """

    name: str
    module: str
    path: Path | None
    question: str = ""
    distribution: str = ""
    problem: str = ""


def available_analyses() -> dict[str, AnalysisModule]:
    """Every analysis by name, in the order of the names.

    Ours keep their names; one of another package that bears a name already taken is called
    ``entry:name``.
    """
    found: dict[str, AnalysisModule] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name != OURS, entry.name, entry.value)):
        distribution = f"{entry.dist.name} {entry.dist.version}" if entry.dist else ""
        for one in _analyses_of(entry):
            one = replace(one, distribution=distribution)
            if one.name not in found:
                found[one.name] = one
            elif found[one.name].module != one.module:
                qualified = f"{entry.name}:{one.name}"
                found[qualified] = replace(one, name=qualified)
    return dict(sorted(found.items()))


def find_analysis(name: str) -> AnalysisModule:
    """The analysis of that name.

    Raises:
        NotFoundError: there is none.
    """
    every = available_analyses()
    if name not in every:
        hint = "" if every else "No installed package brings any."
        raise NotFoundError("analysis", name, every, hint)
    return every[name]


def _analyses_of(entry: EntryPoint) -> Iterator[AnalysisModule]:
    spec = _spec(entry.module)
    if spec is None:
        problem = f"the entry point {entry.name!r} names the module {entry.module}, which is not installed"
        yield AnalysisModule(name=_command_name(entry.module), module=entry.module, path=None, problem=problem)
        return
    if spec.origin is not None and (one := _analysis_in(spec.name, Path(spec.origin))):
        yield one
    for folder in spec.submodule_search_locations or ():
        for path in sorted(Path(folder).glob("[a-z]*.py")):
            if one := _analysis_in(f"{spec.name}.{path.stem}", path):
                yield one
        for path in sorted(Path(folder).glob("[a-z]*/__init__.py")):
            if one := _analysis_in(f"{spec.name}.{path.parent.name}", path):
                yield one


def _analysis_in(module: str, path: Path) -> AnalysisModule | None:
    found = AnalysisModule(name=_command_name(module), module=module, path=path)
    try:
        source = path.read_bytes()
    except OSError as error:
        return replace(found, problem=f"its source cannot be read ({error.strerror})")
    told = _told(source)
    return None if told is None else replace(found, question=told[0], problem=told[1])


@cache
def _told(source: bytes) -> tuple[str, str] | None:
    """The question that a source asks, and why it cannot be used; None where it is no analysis.

    Kept by content, since parsing is nearly all that looking round costs, and one command looks round often.
    """
    if MARK.encode() not in source:
        return None
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return "", f"its source is not Python{line}"
    if not _is_marked(tree):
        return None
    return (ast.get_docstring(tree) or "").split("\n", 1)[0], ""


def _is_marked(tree: ast.Module) -> bool:
    names = {MARK}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.name == MARK and alias.asname}
    return any(
        (isinstance(mark, ast.Name) and mark.id in names) or (isinstance(mark, ast.Attribute) and mark.attr == MARK)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        for mark in node.decorator_list
    )


def _command_name(module: str) -> str:
    return module.rpartition(".")[2].replace("_", "-")


def _spec(module: str) -> ModuleSpec | None:
    """Where a module lies. `importlib.util.find_spec` would import the packages around it."""
    locations: Sequence[str] | None = None
    spec = None
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        specs = (finder.find_spec(name, locations) for finder in sys.meta_path)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None:
            return None
        locations = list(spec.submodule_search_locations or ())
    return spec
