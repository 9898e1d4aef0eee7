"""Parse a template file: one Jinja file of settings and blocks.

Settings are ``{% set name = constant %}`` lines. Blocks hold texts; a file without blocks is the block ``question``.
Blocks are compiled before anything is rendered, so that misspelt names are reported with their line before a model is
loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from traceback import walk_tb
from typing import Any

from jinja2 import StrictUndefined, nodes
from jinja2 import Template as Compiled
from jinja2.exceptions import TemplateSyntaxError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tracker.errors import BadInputError
from tracker.evaluating.option_values import LABELS
from tracker.evaluating.prompt_templates.fields import (
    ANSWER_NAMES,
    HEADER_NAMES,
    QUESTION_NAMES,
    Choice,
    Details,
    TemplateFields,
)
from tracker.suggestions import find_similar, format_guess

ANSWERS = ("label", "text", "written")
NAMES = {"header": HEADER_NAMES, "question": QUESTION_NAMES, "answer": ANSWER_NAMES}
"""Blocks, and the names that each may use."""

NAMELESS = "<template>"
"""File name that Jinja gives a template compiled from a string."""


@dataclass(frozen=True, slots=True)
class TemplateSetting:
    """A setting: default and accepted values."""

    default: Any
    requirement: str
    accepts: Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(part, str) and part for part in value)


SETTINGS = {
    "labels": TemplateSetting("letters", f"one of {', '.join(LABELS)}", lambda value: value in LABELS),
    "answer": TemplateSetting("label", f"one of {', '.join(ANSWERS)}", lambda value: value in ANSWERS),
    "join": TemplateSetting(" ", "a text", _is_text),
    "separator": TemplateSetting("\n\n", "a text", _is_text),
    "blank": TemplateSetting("", "a text", _is_text),
    "isolated_labels": TemplateSetting(False, "true or false", lambda value: isinstance(value, bool)),
    "stop": TemplateSetting(None, 'a list of texts, such as ["\\n"]', _are_texts),
    "max_tokens": TemplateSetting(256, "an integer above 0", lambda value: type(value) is int and value > 0),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class TemplateBlock:
    """A block of a template.

    Attributes:
        place: the file, or the name of a built-in template.
        names: names used in the block.
    """

    place: str
    names: frozenset[str]
    compiled: Compiled

    def render(self, values: Mapping[str, Any], fields: TemplateFields) -> str:
        """Render the text for one prompt; one line break at its end is removed.

        Raises:
            BadInputError: the prompt lacks a field that the template uses, or the template cannot be rendered.
        """
        try:
            return self.compiled.render(values).removesuffix("\n")
        except Exception as error:  # expressions of users can raise any exception
            message = f"line {_find_line(error)}: prompt {fields.name}: {error}"
            hint = "The question and further fields are withheld here." if fields.blank is not None else ""
            raise BadInputError(self.place, message, advice=hint) from error


@dataclass(frozen=True, kw_only=True, eq=False)
class TemplateFile:
    """A parsed template.

    Attributes:
        settings: value of every setting.
        blocks: by name; ``question`` is always there.
    """

    settings: Mapping[str, Any]
    blocks: Mapping[str, TemplateBlock]


def parse_template(source: str, place: str) -> TemplateFile:
    """Parse a template.

    Args:
        source: the file's text.
        place: its name in messages.

    Raises:
        BadInputError: the template is invalid or uses an unknown name; the message names the line.
    """
    environment = _make_environment()
    try:
        tree = environment.parse(source)
        settings, rest = _split_settings(tree, place)
        blocks = {
            name: _compile_block(environment, name, body, place) for name, body in _split_blocks(rest, place).items()
        }
    except TemplateSyntaxError as error:
        raise BadInputError(place, f"line {error.lineno}: {error.message}") from None
    except RecursionError:
        raise BadInputError(place, "statements or expressions are nested too deeply") from None
    return TemplateFile(settings=settings, blocks=blocks)


class _UndefinedField(StrictUndefined):
    """A name without a value; its message lists the available fields."""

    @property
    def _undefined_message(self) -> str:
        if isinstance(self._undefined_obj, Details):
            known = ", ".join(sorted(self._undefined_obj._fields)) or "none"
            return f"the prompt has no further field {self._undefined_name!r}. Its fields: {known}."
        return super()._undefined_message


def _make_environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        undefined=_UndefinedField,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_printable,
        autoescape=False,
    )
    # The same prompt always gives the same text.
    del environment.filters["random"], environment.globals["lipsum"]
    return environment


def _printable(value: Any) -> Any:
    if isinstance(value, (str, int, float, Choice, StrictUndefined)):
        return value
    if value is None:
        raise ValueError("a printed field is null")
    if callable(value):
        raise ValueError("a function is printed: add parentheses after its name")
    kind = "further fields" if isinstance(value, Details) else "a list"
    raise ValueError(f"{kind} cannot be printed: select an item, or write a loop")


def _split_settings(tree: nodes.Template, place: str) -> tuple[dict[str, Any], list[nodes.Node]]:
    """Return every setting, and the other nodes at the top level."""
    values: dict[str, Any] = {}
    rest: list[nodes.Node] = []
    for node in tree.body:
        if not isinstance(node, nodes.Assign):
            rest.append(node)
            continue
        name = node.target.name if isinstance(node.target, nodes.Name) else ""
        if name not in SETTINGS:
            raise BadInputError(place, f"line {node.lineno}: unknown setting {name!r}. {_suggest(name, SETTINGS)}")
        try:
            value = node.node.as_const() if isinstance(node.node, nodes.Expr) else None
        except nodes.Impossible:
            value = None
        if not SETTINGS[name].accepts(value):
            raise BadInputError(place, f"line {node.lineno}: {name} must be {SETTINGS[name].requirement}")
        values[name] = tuple(value) if isinstance(value, list) else value
    return {name: values.get(name, setting.default) for name, setting in SETTINGS.items()}, rest


def _split_blocks(rest: Sequence[nodes.Node], place: str) -> dict[str, list[nodes.Node]]:
    """Return the nodes of each block."""
    blocks = [node for node in rest if isinstance(node, nodes.Block)]
    bodies: dict[str, list[nodes.Node]] = {}
    for block in blocks:
        if block.name not in NAMES:
            raise BadInputError(
                place, (f"line {block.lineno}: unknown block {block.name!r}. {_suggest(block.name, NAMES)}")
            )
        if block.name in bodies:
            raise BadInputError(place, f"line {block.lineno}: block {block.name!r} is defined twice")
        bodies[block.name] = list(block.body)
    for part in (
        part for node in rest if blocks and not isinstance(node, nodes.Block) for part in _list_printed_parts(node)
    ):
        message = f"this text is outside of the blocks {', '.join(bodies)} and is never rendered"
        raise BadInputError(place, f"line {_first_line(part)}: {message}")
    if not blocks:
        bodies["question"] = _drop_leading_lines(rest)
    for body in bodies.values():
        _check_statements(body, place)
    if not any(True for node in bodies.get("question", ()) for _ in _list_printed_parts(node)):
        raise BadInputError(place, "the template is empty: write a text, or {% block question %} ... {% endblock %}")
    return bodies


def _drop_leading_lines(rest: Sequence[nodes.Node]) -> list[nodes.Node]:
    """Return the nodes without the empty lines that follow the settings."""
    body = list(rest)
    while body and not any(True for _ in _list_printed_parts(body[0])):
        del body[0]
    if body and isinstance(body[0], nodes.Output):
        parts = body[0].nodes
        while isinstance(parts[0], nodes.TemplateData) and not parts[0].data.strip("\n"):
            del parts[0]
        if isinstance(parts[0], nodes.TemplateData):
            parts[0].data = parts[0].data.lstrip("\n")
    return body


def _first_line(part: nodes.Node) -> int:
    data = part.data if isinstance(part, nodes.TemplateData) else ""
    return part.lineno + data[: len(data) - len(data.lstrip())].count("\n")


def _list_printed_parts(node: nodes.Node) -> Iterator[nodes.Node]:
    """Return the parts of a node that are more than white space."""
    if not isinstance(node, nodes.Output):
        yield node
        return
    for part in node.nodes:
        if not (isinstance(part, nodes.TemplateData) and not part.data.strip()):
            yield part


def _check_statements(body: Sequence[nodes.Node], place: str) -> None:
    kinds = (nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport, nodes.Block)
    for node in body:
        for statement in [node, *node.find_all(nodes.Stmt)]:
            if isinstance(statement, kinds):
                description = "a nested block" if isinstance(statement, nodes.Block) else "another file"
                raise BadInputError(place, f"line {statement.lineno}: a template cannot contain {description}")


def _compile_block(
    environment: ImmutableSandboxedEnvironment, name: str, body: list[nodes.Node], place: str
) -> TemplateBlock:
    tree = nodes.Template(body, lineno=1)
    tree.set_environment(environment)
    used = find_undeclared_variables(tree)
    for unknown in sorted(used - set(NAMES[name])):
        line = min((part.lineno for part in tree.find_all(nodes.Name) if part.name == unknown), default=1)
        raise BadInputError(place, f"line {line}: {_explain_unknown_name(unknown, name)}")
    return TemplateBlock(place=place, names=frozenset(used), compiled=environment.from_string(tree))


def _explain_unknown_name(unknown: str, block: str) -> str:
    known_in = next((name for name, names in NAMES.items() if unknown in names), None)
    if known_in is not None:
        return f"{unknown} is available in the block {known_in}, not in the block {block}"
    hint = _suggest(unknown, NAMES[block])
    return f"unknown name {unknown!r} in the block {block}. {hint} Further fields of a prompt are details.NAME."


def _suggest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    return format_guess(find_similar(name, names, n=1)) or f"Known: {', '.join(names)}."


def _find_line(error: BaseException) -> int:
    """Return the template line that an error came from."""
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == NAMELESS]
    return lines[-1] if lines else 1
