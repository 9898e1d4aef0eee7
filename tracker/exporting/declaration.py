"""Read the declaration of an export format from its signature: arguments, options and output."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints, overload

from sqlalchemy.orm import Session

from tracker.exporting.outputs import BinaryFile, FileTree, TextFile
from tracker.exporting.registry import MARK, find_export, list_formats
from tracker.exporting.table_files import StreamedTable
from tracker.plugins.discovery import PluginModule
from tracker.plugins.parameters import Parameter, format_hint, parse_parameter
from tracker.queries.selection import Policy, Selection

F = TypeVar("F", bound=Callable[..., Any])
KIND = "export format"
OUTPUTS = (StreamedTable, TextFile, BinaryFile, FileTree)
TABLE_FORMATS = ("csv", "jsonl", "parquet")

OptionCheck = Callable[[Mapping[str, Any]], None]
"""Called with every option before the store is opened; raises `OptionsError` if options contradict each other."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What the decorator `export` declares; see there."""

    format_of: str
    title: str
    suffix: str
    check: OptionCheck | None
    policies: Sequence[Policy]


@overload
def export(function: F) -> F: ...


@overload
def export(
    *,
    format_of: str = "",
    title: str = "",
    suffix: str = "",
    check: OptionCheck | None = None,
    policies: Sequence[Policy] = (),
) -> Callable[[F], F]: ...


def export(
    function: F | None = None,
    *,
    format_of: str = "",
    title: str = "",
    suffix: str = "",
    check: OptionCheck | None = None,
    policies: Sequence[Policy] = (),
) -> Any:
    """Mark the function of a module as an export format: `suffrage export NAME`, named after the module.

    The function takes a session, then the arguments of the command, then, keyword-only, its options, and returns a
    `StreamedTable`, `TextFile`, `BinaryFile` or `FileTree`. A `Selection` stands for the argument BENCHMARK and the
    options that select data.

    Args:
        function: the function.
        format_of: another export, such as ``scores``, to which this adds a ``--format``. A literal.
        title: name of the format in messages; the module's name if ''.
        suffix: suffix of its files, such as ``.json``, by which ``--output`` selects the format.
        check: raises an error if options contradict each other.
        policies: policies for missing scores that it supports, for a ``Selection``; empty if it has no ``--missing``.
    """

    def mark(function: F) -> F:
        options = ExportOptions(format_of=format_of, title=title, suffix=suffix, check=check, policies=tuple(policies))
        setattr(function, f"__suffrage_{MARK}__", options)
        return function

    return mark if function is None else mark(function)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExportFormat:
    """An export format, ready to run.

    Attributes:
        name: such as ``scores``.
        function: takes a session, arguments and options, and returns an output.
        arguments, options: its parameters, in the order of the signature.
        selection: name of the parameter that is a `Selection`; '' without one.
        meanings: help of selection options that differ from their usual help.
        output: one of `OUTPUTS`.
        help: docstring of its module.
        title: its name in messages.
        suffix: suffix of its files; '' if no suffix selects the format.
        check: raises an error if options contradict each other.
        policies: policies for missing scores; empty without ``--missing``.
    """

    name: str
    function: Callable[..., Any]
    arguments: Sequence[Parameter]
    options: Sequence[Parameter]
    selection: str
    meanings: Mapping[str, str]
    output: type
    help: str
    title: str
    suffix: str
    check: OptionCheck | None
    policies: Sequence[Policy]

    def run(self, session: Session, values: Mapping[str, Any]) -> Any:
        """Call the function with the values that it accepts."""
        names = [parameter.name for parameter in (*self.arguments, *self.options)]
        names += [self.selection] if self.selection else []
        return self.function(session, **{name: values[name] for name in names})


@dataclass(frozen=True, kw_only=True)
class ExportCommand:
    """An export with all its formats.

    Attributes:
        main: the default format of the command.
        further: additional formats for ``--format``, by name.
    """

    main: ExportFormat
    further: Mapping[str, ExportFormat]

    @property
    def formats(self) -> tuple[str, ...]:
        """Values of ``--format``; empty without a choice."""
        return (*(TABLE_FORMATS if self.main.output is StreamedTable else ()), *self.further)

    @property
    def own_options(self) -> Mapping[str, str]:
        """The format of each option that an additional format brings."""
        shared = {parameter.name for parameter in (*self.main.arguments, *self.main.options)}
        return {
            parameter.name: name
            for name, further in self.further.items()
            for parameter in (*further.arguments, *further.options)
            if parameter.name not in shared
        }


def load_export(name: str) -> ExportCommand:
    """Import an export and its additional formats, and read their signatures.

    Raises:
        NotFoundError: no export has this name.
        PluginError: a format cannot be imported, or its signature is invalid.
    """
    further = {plugin.name: _declare(plugin) for plugin in list_formats(name)}
    return ExportCommand(main=_declare(find_export(name)), further=further)


def _declare(plugin: PluginModule) -> ExportFormat:
    error = partial(plugin.error, KIND)
    function = plugin.load_function(KIND, MARK)
    options: ExportOptions = getattr(function, f"__suffrage_{MARK}__")
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as problem:
        raise error(f"an annotation cannot be resolved ({problem}); import it outside TYPE_CHECKING") from problem
    output = hints.get("return")
    if not isinstance(output, type) or not issubclass(output, OUTPUTS):
        known = ", ".join(kind.__name__ for kind in OUTPUTS)
        raise error(f"it returns {format_hint(output)}; it can return one of {known}")
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or hints.get(parameters[0].name) is not Session:
        raise error("its first parameter must be the session, a sqlalchemy.orm.Session")
    declared: dict[bool, list[Parameter]] = {False: [], True: []}
    selection = ""
    meanings: Mapping[str, str] = {}
    for parameter in parameters[1:]:
        hint = hints.get(parameter.name)
        if hint is None:
            raise error(f"{parameter.name} has no annotation")
        kind, *metadata = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if kind is Selection:
            selection = parameter.name
            meanings = next((part for part in metadata if isinstance(part, Mapping)), meanings)
            continue
        by_keyword = parameter.kind is parameter.KEYWORD_ONLY
        declared[by_keyword].append(parse_parameter(error, parameter.name, hint, parameter.default))
    return ExportFormat(
        name=plugin.name,
        function=function,
        arguments=tuple(declared[False]),
        options=tuple(declared[True]),
        selection=selection,
        meanings=dict(meanings),
        output=next(kind for kind in OUTPUTS if issubclass(output, kind)),
        help=inspect.getdoc(inspect.getmodule(function)) or "",
        title=options.title or plugin.name,
        suffix=options.suffix,
        check=options.check,
        policies=options.policies,
    )
