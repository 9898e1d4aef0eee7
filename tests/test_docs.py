"""Names, paths, commands and links in the documentation and in docstrings exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

import tracker.formats
from tracker.cli import suffrage
from tracker.recording.registry import discover_analyses
from tracker.report.images import read_png_size

ROOT = Path(__file__).parents[1]
GUIDES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS = [*GUIDES, ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]
MODULES = sorted([*(ROOT / "tracker").rglob("*.py"), *(ROOT / "analyses").rglob("*.py")])
EXAMPLES = {"discriminating-prompts"}  # analyses of the package that docs/how-to/extending.md shows

STATISTICS = sorted(
    {*(ROOT / "docs/reference/statistics").glob("*.md")} - {ROOT / "docs/reference/statistics/index.md"}
)
SECTIONS = ["Definition", "Assumptions", "What is reported", "Degenerate cases", "Options", "Sources"]

FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.M | re.S)
CODE_SPAN = re.compile(r"(`+)(.+?)\1", re.S)
DOTTED_NAME = re.compile(r"(?<![\w./-])(?:tracker|analyses)(?:\.\w+)+(?![\w<…]|\.<)")
PATH_MENTION = re.compile(r"(?<![\w./-])(?:tracker|analyses|docs|tests|migrations)/[\w./*-]*(?![\w<…])")
COMMAND_LINE = re.compile(r"(?<![\w./'-])suffrage (?P<words>[a-z][^\n|;&#]*)")
LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^)\s]+)\)")


def prose(text: str) -> str:
    """A Markdown text without its fenced blocks."""
    return FENCE.sub("", text)


def code_spans(text: str) -> list[str]:
    return [" ".join(content.split()) for _, content in CODE_SPAN.findall(text)]


@cache
def parse_module(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def docstrings(path: Path) -> Iterator[str]:
    """Docstrings of a module that quotes a name or path of ours; the others are not parsed."""
    if not re.search(r"`[^`]*(?:tracker|analyses|docs|tests|migrations)[./]", path.read_text()):
        return
    for node in ast.walk(parse_module(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node, clean=False) or ""


def mentions(path: Path, pattern: re.Pattern[str]) -> list[str]:
    """What matches in the code spans of a document or of a module's docstrings."""
    texts = [prose(path.read_text())] if path.suffix == ".md" else docstrings(path)
    return [match for text in texts for span in code_spans(text) for match in pattern.findall(span)]


def members(node: ast.Module | ast.ClassDef) -> dict[str, ast.AST]:
    """What the body of a module or class defines, by name; imported names too."""
    definitions: dict[str, ast.AST] = {}
    statements: list[ast.AST] = list(node.body)
    while statements:
        statement = statements.pop()
        if isinstance(statement, ast.If | ast.Try | ast.With):
            statements += ast.iter_child_nodes(statement)
        elif isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            definitions[statement.name] = statement
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            definitions |= {alias.asname or alias.name: statement for alias in statement.names}
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            definitions |= {
                name.id: statement for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
            }
    return definitions


def exists(dotted: str) -> bool:
    """Whether a module, or a member of one, has this name; found without importing it."""
    first, *parts = dotted.split(".")
    path, node = ROOT / first, None
    for position, part in enumerate(parts):
        if (path / part).is_dir():
            path /= part
            continue
        if (path / f"{part}.py").is_file():
            path, rest = path / f"{part}.py", parts[position + 1 :]
        else:
            path, rest = path / "__init__.py", parts[position:]
        node = parse_module(path)
        for name in rest:
            if not isinstance(node, ast.Module | ast.ClassDef):
                return False
            node = members(node).get(name)
        return node is not None
    return path.is_dir()


def command_lines(path: Path) -> list[str]:
    """What follows `suffrage` in the code spans and shell blocks of a document."""
    text = path.read_text()
    lines = code_spans(prose(text))
    for language, block in FENCE.findall(text):
        joined = block.replace("\\\n", " ").splitlines()
        if language == "console":  # the other lines are output
            lines += [line for line in joined if line.lstrip().startswith("$ ")]
        elif language in ("sh", "bash"):
            lines += joined
    return [match["words"] for line in lines for match in COMMAND_LINE.finditer(line)]


def command_problem(words: str) -> str | None:
    """Why a command line cannot be run, as far as its command, subcommand and options show."""
    command: click.Command = suffrage
    context = click.Context(command)
    arguments = re.findall(r"\"[^\"]*\"|\S+", words)
    while isinstance(command, click.Group) and arguments and re.fullmatch(r"[a-z][a-z-]*,?", arguments[0]):
        name = arguments.pop(0).rstrip(",")
        if name in EXAMPLES:
            return None
        if name not in command.list_commands(context):
            return f"{name!r} is no command of {command.name}"
        subcommand = command.get_command(context, name)
        assert subcommand is not None
        command, context = subcommand, click.Context(subcommand, parent=context)
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for argument in arguments:
        option = re.match(r"--[a-z][\w-]*", argument)
        if option and option[0] not in known | {"--help", "--version"} and not isinstance(command, click.Group):
            return f"{option[0]} is no option of {command.name}"
    return None


@cache
def anchors(path: Path) -> set[str]:
    """Anchors of a document's headings, as GitHub makes them."""
    slugs: set[str] = set()
    for heading in re.findall(r"^#+ +(.+)$", prose(path.read_text()), re.M):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        number = next(i for i in range(len(slugs) + 1) if (f"{slug}-{i}" if i else slug) not in slugs)
        slugs.add(f"{slug}-{number}" if number else slug)
    return slugs


def link_problem(document: Path, target: str) -> str | None:
    """Why a relative link leads nowhere; None for one that does, and for addresses of other hosts."""
    if re.match(r"[a-z]+:", target):
        return None
    name, _, anchor = target.partition("#")
    path = (document.parent / name).resolve() if name else document
    if not path.exists():
        return f"{target}: no such file"
    if anchor and anchor not in anchors(path):
        return f"{target}: no such heading"
    return None


def identify(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", GUIDES, ids=identify)
class TestEveryGuide:
    def test_names_our_modules_and_their_members_as_they_are(self, document: Path) -> None:
        assert [name for name in mentions(document, DOTTED_NAME) if not exists(name)] == []

    def test_names_our_files_and_folders_as_they_are(self, document: Path) -> None:
        assert [path for path in mentions(document, PATH_MENTION) if not any(ROOT.glob(path.rstrip("/.")))] == []

    def test_imports_what_exists(self, document: Path) -> None:
        blocks = [block for language, block in FENCE.findall(document.read_text()) if language == "python"]
        imports = re.findall(r"^ *from ((?:tracker|analyses)[\w.]*) import (\([^)]*\)|.*)$", "\n".join(blocks), re.M)
        names = [f"{module}.{name}" for module, text in imports for name in re.findall(r"\w+", text)]
        assert [name for name in names if not exists(name)] == []

    def test_shows_commands_and_options_that_exist(self, document: Path) -> None:
        problems = {line: command_problem(line) for line in command_lines(document)}
        assert {line: problem for line, problem in problems.items() if problem} == {}


@pytest.mark.parametrize("document", DOCUMENTS, ids=identify)
def test_every_relative_link_of_a_document_leads_to_a_file_and_a_heading(document: Path) -> None:
    targets = LINK.findall(prose(document.read_text()))
    assert [problem for target in targets if (problem := link_problem(document, target))] == []


class TestFigures:
    def test_every_file_is_shown_by_a_page(self) -> None:
        linked = {
            (page.parent / target).resolve() for page in GUIDES for target in LINK.findall(prose(page.read_text()))
        }
        assert sorted(map(identify, {*(ROOT / "docs/figures").iterdir()} - linked)) == []

    def test_every_picture_can_be_read(self) -> None:
        widths = {identify(path): read_png_size(path.read_bytes()) for path in (ROOT / "docs/figures").glob("*.png")}
        assert {name: size for name, size in widths.items() if size is None or size[0] < 800} == {}

    @pytest.mark.parametrize("document", GUIDES, ids=identify)
    def test_a_comment_that_names_commands_is_followed_by_its_picture(self, document: Path) -> None:
        text = FENCE.sub("", CODE_SPAN.sub("", document.read_text()))
        comments = re.findall(r"<!-- drawn by: (.+) -->\n(.*)", text)
        wrong = [line for _, line in comments if not re.fullmatch(r"!\[[^\]]+\]\(\S+\.png\)", line)]
        problems = [
            command_problem(command.removeprefix("suffrage "))
            for commands, _ in comments
            for command in commands.split("; ")
            if not command.startswith("make picture-")
        ]
        assert wrong + [problem for problem in problems if problem] == []


def command_names(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command and subcommand, as it is typed; analyses and export formats have pages."""
    context = click.Context(group)
    for name in group.list_commands(context):
        yield " ".join((*words, name))
        command = group.get_command(context, name)
        if isinstance(command, click.Group) and name != "analyze":
            yield from command_names(command, (*words, name))


class TestReference:
    def test_shows_the_help_of_every_command(self) -> None:
        page = (ROOT / "docs/reference/commands.md").read_text()
        commands = re.findall(r"^\$ suffrage ([a-z -]+) --help$", page, re.M)
        assert sorted(commands) == sorted(command_names(suffrage))

    def test_lists_every_analysis(self) -> None:
        page = (ROOT / "docs/reference/statistics/index.md").read_text()
        documented = re.findall(r"^\| \[`([a-z-]+)`\]\(\1\.md\) \|", page, re.M)
        assert sorted(documented) == sorted(discover_analyses())

    @pytest.mark.parametrize("page", STATISTICS, ids=identify)
    def test_a_page_of_statistics_has_the_sections_of_all_of_them(self, page: Path) -> None:
        assert re.findall(r"^## (.+)$", prose(page.read_text()), re.M) == SECTIONS

    def test_the_architecture_names_every_package_of_the_tracker(self) -> None:
        page = (ROOT / "docs/explanation/architecture.md").read_text()
        packages = sorted(f"tracker.{path.parent.name}" for path in (ROOT / "tracker").glob("*/__init__.py"))
        assert [name for name in packages if f"`{name}" not in page] == []

    def test_the_page_on_python_names_what_formats_import(self) -> None:
        page = (ROOT / "docs/reference/python.md").read_text()
        assert [name for name in tracker.formats.__all__ if f"`{name}`" not in page] == []

    def test_the_index_links_to_every_page(self) -> None:
        index = ROOT / "docs/index.md"
        linked = {(index.parent / target.split("#")[0]).resolve() for target in LINK.findall(index.read_text())}
        pages = {*(ROOT / "docs").rglob("*.md")} - {index, *(ROOT / "docs/reference/statistics").glob("*.md")}
        assert sorted(map(identify, pages - linked)) == []

    @pytest.mark.parametrize("document", GUIDES, ids=identify)
    def test_a_page_has_one_title_in_its_first_line(self, document: Path) -> None:
        text = document.read_text()
        assert text.startswith("# ")
        assert len(re.findall(r"^# ", prose(text), re.M)) == 1


class TestDocstrings:
    def test_name_our_modules_and_their_members_as_they_are(self) -> None:
        wrong = {identify(path): name for path in MODULES for name in mentions(path, DOTTED_NAME) if not exists(name)}
        assert wrong == {}

    def test_name_our_files_and_folders_as_they_are(self) -> None:
        wrong = {
            identify(path): mention
            for path in MODULES
            for mention in mentions(path, PATH_MENTION)
            if not any(ROOT.glob(mention.rstrip("/.")))
        }
        assert wrong == {}


class TestTheChecks:
    """They find what is wrong."""

    @pytest.mark.parametrize(
        "name", ["tracker.cli", "tracker.errors.SuffrageError", "tracker.schema.measurements.Run.id"]
    )
    def test_a_name_that_exists_is_found(self, name: str) -> None:
        assert exists(name)

    @pytest.mark.parametrize(
        "name", ["tracker.nothing", "tracker.errors.Nothing", "tracker.cli.options.nothing.at.all"]
    )
    def test_a_name_that_does_not_exist_is_not_found(self, name: str) -> None:
        assert not exists(name)

    def test_wrong_commands_subcommands_and_options_are_found(self) -> None:
        wrong = ["no-such-thing", "db no-such-thing", "leaderboard mmlu --no-such-thing"]
        assert all(map(command_problem, wrong))
        assert not any(map(command_problem, ["db upgrade", "leaderboard mmlu --missing drop", "runs"]))

    def test_links_to_missing_files_and_headings_are_found(self) -> None:
        assert link_problem(ROOT / "README.md", "docs/nothing.md")
        assert link_problem(ROOT / "README.md", "docs/reference/formats.md#nothing")
        assert link_problem(ROOT / "README.md", "docs/reference/formats.md#facts-of-models") is None
