"""Discover plug-in modules through an entry-point group without importing them.

An entry names a package, whose modules are searched, or one module. A module is a plug-in if it holds a function with
the decorator of its kind. Names and first lines are read from the source. A broken plug-in therefore affects nothing
but itself.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from tracker.errors import PluginError

BUILT_IN = "suffrage"


@dataclass(frozen=True, kw_only=True)
class PluginModule:
    """A plug-in module, as far as its source shows.

    Attributes:
        name: of its command or option, such as ``prompt-correlation``.
        module: its full name, such as ``analyses.prompt_correlation``.
        path: path of its source; None if not found.
        description: first line of its docstring.
        options: keyword arguments of its decorator that are literals.
        defaults: default of each keyword-only parameter of its function; None unless all are literals, or constants of
            the module that are.
        distribution: name and version of its package; '' if unknown.
        problem: why it cannot be used; '' if no problem is known yet.
    """

    name: str
    module: str
    path: Path | None
    description: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    defaults: Mapping[str, Any] | None = field(default=None, hash=False)
    distribution: str = ""
    problem: str = ""

    def error(self, kind: str, reason: str) -> PluginError:
        """Return the error of a plug-in that cannot be used.

        Args:
            kind: such as ``analysis``.
            reason: why not.
        """
        where = f" in {self.path}" if self.path else ""
        return PluginError(f"The {kind} {self.name}{where} cannot be used: {reason}.")

    def load_function(self, kind: str, mark: str) -> Callable[..., Any]:
        """Import the module and return its decorated function.

        Args:
            kind: such as ``analysis``.
            mark: name of the decorator; it sets the attribute ``__suffrage_<mark>__``.

        Raises:
            PluginError: the module cannot be imported, or decorates not exactly one function.
        """
        if self.problem:
            raise self.error(kind, self.problem)
        try:
            module = importlib.import_module(self.module)
        except Exception as error:
            raise self.error(kind, f"importing {self.module} fails: {type(error).__name__}: {error}") from error
        functions: list[Callable[..., Any]] = [
            function
            for function in vars(module).values()
            if getattr(function, f"__suffrage_{mark}__", None) and function.__module__ == module.__name__
        ]
        if len(functions) != 1:
            raise self.error(kind, f"{self.module} marks {len(functions)} functions with @{mark}; it must mark one")
        return functions[0]


def sorted_entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entries of a group: built-in ones first, since they keep their names, then by name."""
    return _read_entry_points(group, tuple((folder, _modification_time(folder)) for folder in sys.path))


@cache
def _read_entry_points(group: str, path: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """Read the entries of every package on the import path.

    Cached by the path and the modification times of its folders: installing a package changes one of them.
    """
    entries = entry_points(group=group)
    return tuple(sorted(entries, key=lambda entry: (entry.name != BUILT_IN, entry.name, entry.value)))


def _modification_time(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


def distribution_name(entry: EntryPoint) -> str:
    """Return name and version of the package that provides an entry; '' if unknown."""
    if not entry.dist:
        return ""
    metadata = entry.dist.metadata
    return f"{metadata['Name']} {metadata['Version']}"


def command_name(module: str) -> str:
    """Return the name of a module's command or option: its last part, with dashes."""
    return module.rpartition(".")[2].replace("_", "-")


def discover(group: str, mark: str, *, package: str = "") -> dict[str, PluginModule]:
    """Discover every plug-in of a group by name, in the order of the names.

    Built-in plug-ins keep their names. One of another package with the name of an earlier one is named ``entry:name``.

    Args:
        group: the entry-point group.
        mark: name of the decorator.
        package: a built-in package whose modules come first; no entry point needs to name it.
    """
    by_name: dict[str, PluginModule] = {}
    entries = [EntryPoint(name=BUILT_IN, value=package, group=group)] if package else []
    for entry in (*entries, *sorted_entry_points(group)):
        distribution = distribution_name(entry)
        for plugin in _plugins_of(entry, mark):
            plugin = replace(plugin, distribution=distribution)
            if plugin.name not in by_name:
                by_name[plugin.name] = plugin
            elif by_name[plugin.name].module != plugin.module:
                qualified = f"{entry.name}:{plugin.name}"
                by_name[qualified] = replace(plugin, name=qualified)
    return dict(sorted(by_name.items()))


def _plugins_of(entry: EntryPoint, mark: str) -> Iterator[PluginModule]:
    spec = _find_spec(entry.module)
    if spec is None:
        problem = f"the entry point {entry.name!r} names the module {entry.module}, which is not installed"
        yield PluginModule(name=command_name(entry.module), module=entry.module, path=None, problem=problem)
        return
    if spec.origin is not None and (plugin := _read_plugin(spec.name, Path(spec.origin), mark)):
        yield plugin
    for folder in spec.submodule_search_locations or ():
        for path in sorted(Path(folder).glob("[a-z]*.py")):
            if plugin := _read_plugin(f"{spec.name}.{path.stem}", path, mark):
                yield plugin
        for path in sorted(Path(folder).glob("[a-z]*/__init__.py")):
            if plugin := _read_plugin(f"{spec.name}.{path.parent.name}", path, mark):
                yield plugin


def _read_plugin(module: str, path: Path, mark: str) -> PluginModule | None:
    plugin = PluginModule(name=command_name(module), module=module, path=path)
    try:
        source = path.read_bytes()
    except OSError as error:
        return replace(plugin, problem=f"its source cannot be read ({error.strerror})")
    parsed = _parse_source(source, mark)
    if parsed is None:
        return None
    return replace(plugin, **vars(parsed))


@dataclass(frozen=True, kw_only=True)
class _ParsedSource:
    """The fields of `PluginModule` that its source shows."""

    description: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] | None = None
    problem: str = ""


@cache
def _parse_source(source: bytes, mark: str) -> _ParsedSource | None:
    """Parse a source as a plug-in; None if it is none.

    Cached by content: parsing dominates the time of discovery, and one command may discover several times.
    """
    if mark.encode() not in source:
        return None
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return _ParsedSource(problem=f"its source is not Python{line}")
    marked = _find_marked(tree, mark)
    if marked is None:
        return None
    function, decorator = marked
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    options = {}
    for keyword in keywords:
        if keyword.arg is not None:
            with suppress(ValueError):  # not a literal
                options[keyword.arg] = ast.literal_eval(keyword.value)
    description = (ast.get_docstring(tree) or "").split("\n", 1)[0]
    return _ParsedSource(description=description, options=options, defaults=_read_defaults(tree, function))


def _read_defaults(tree: ast.Module, function: ast.FunctionDef) -> dict[str, Any] | None:
    """Return the defaults of the keyword-only parameters; None if one has none, or one that is not a literal.

    A constant of the module stands for its literal. A `Device` is no parameter.
    """
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    defaults = {}
    for parameter, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if isinstance(parameter.annotation, ast.Name) and parameter.annotation.id == "Device":
            continue
        if default is None:
            return None
        try:
            literal = constants.get(default.id, default) if isinstance(default, ast.Name) else default
            defaults[parameter.arg] = ast.literal_eval(literal)
        except ValueError:
            return None
    return defaults


def _find_marked(tree: ast.Module, mark: str) -> tuple[ast.FunctionDef, ast.expr] | None:
    """Return the function with the decorator, and the decorator."""
    names = {mark}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.name == mark and alias.asname}
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            function = decorator.func if isinstance(decorator, ast.Call) else decorator
            if (isinstance(function, ast.Name) and function.id in names) or (
                isinstance(function, ast.Attribute) and function.attr == mark
            ):
                return node, decorator
    return None


def _find_spec(module: str) -> ModuleSpec | None:
    """Return the path of a module. `importlib.util.find_spec` would import the packages around it."""
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
