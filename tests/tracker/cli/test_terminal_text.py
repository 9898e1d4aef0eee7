"""No text from a file acts on a terminal, whatever command prints it."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parents[1] / "web"))
from hostile_store import NAMES, fill_hostile_everywhere

import tracker.cli
from tracker.cli import main
from tracker.cli.values.terminal_text import MAX_MESSAGE_LENGTH, UNSAFE, cut_message, make_cell, make_printable
from tracker.database import connect

HOSTILE_MODEL = next(name for name in NAMES if "\x1b" in name)
BENCHMARK = NAMES[4]
ACTING = "\x1b[2J\x1b]0;title\x07\r\u202e\u200b\x9b31m\x7f"
COMMANDS = [
    ["benchmarks"],
    ["models"],
    ["models", "related", BENCHMARK],
    ["tasks", "list", BENCHMARK],
    ["metrics", "list"],
    ["runs", "list", "--all"],
    ["runs", "show", "1"],
    ["findings"],
    *(["show", str(number)] for number in (1, 2, 3, 5)),
    ["leaderboard", BENCHMARK],
    ["leaderboard", NAMES[0]],
    ["verdict", BENCHMARK],
    ["history", BENCHMARK],
    ["looks", BENCHMARK],
    ["plan", BENCHMARK],
    ["compare", BENCHMARK, NAMES[0], NAMES[1]],
    ["prompts", "list", NAMES[0]],
    ["prompts", "check", NAMES[0]],
    ["undo", "--list"],
    ["doctor", "--no-mlflow"],
    ["db", "current"],
    ["db", "check"],
    ["sql", "SELECT * FROM model"],
    ["sql", 'SELECT name AS "' + "\x1b[31m" + '" FROM task'],
    ["export", "scores", NAMES[0], "--output", "out.parquet", "--model", ACTING],
    # errors that repeat what the user or a file names
    ["leaderboard", ACTING],
    ["show", "1", "--database", f"{ACTING}.db"],
    ["ingest", ACTING],
    ["ingest", f"{ACTING}.csv", "--benchmark", ACTING],
    ["models", "import", f"{ACTING}.csv"],
    ["compare", NAMES[0], ACTING, HOSTILE_MODEL],
    [ACTING],
    ["leaderboard", f"--{ACTING}"],
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("hostile") / "hostile.db"
    engine = connect(f"sqlite:///{path}")
    fill_hostile_everywhere(engine)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE benchmark SET revision = :text WHERE id = 1"), {"text": ACTING})
        connection.execute(sa.text("UPDATE task SET name = name || :text WHERE id > 5"), {"text": ACTING})
    engine.dispose()
    return f"sqlite:///{path}"


ALL = [*COMMANDS, *([*words, "--format", "json"] for words in COMMANDS[:4] + COMMANDS[5:9])]


@pytest.mark.parametrize("words", ALL, ids=range(len(ALL)))
def test_no_command_prints_a_character_that_acts(
    words: list[str], hostile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    monkeypatch.setenv("SUFFRAGE_DATABASE_URL", hostile)
    monkeypatch.setenv("SUFFRAGE_NO_MLFLOW", "1")
    (tmp_path / f"{ACTING}.csv").write_text(f"model,prompt_id,{ACTING}\n{ACTING},{ACTING},nope\n")
    with pytest.raises(SystemExit):  # anything else is a traceback
        main(words)
    printed = capsys.readouterr()
    assert UNSAFE.findall(printed.out + printed.err) == []
    assert printed.out + printed.err


def test_csv_is_exact_for_programs_and_printable_on_a_terminal(
    hostile: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sql", "SELECT name FROM model", "--format", "csv", "--database", hostile]
    printed = []
    for is_terminal in (False, True):
        monkeypatch.setattr("sys.stdout.isatty", lambda answer=is_terminal: answer)
        with pytest.raises(SystemExit):
            main(words)
        printed.append(capsys.readouterr().out)
    assert HOSTILE_MODEL in printed[0]
    assert make_printable(HOSTILE_MODEL) in printed[1]
    assert UNSAFE.search(printed[1]) is None


@given(st.text())
def test_printable_text_is_the_same_text_as_json(text: str) -> None:
    if not any(0xD800 <= ord(letter) < 0xE000 for letter in text):
        assert json.loads(make_printable(json.dumps(text, ensure_ascii=False))) == text
    assert UNSAFE.search(make_printable(text)) is None
    assert make_printable(make_printable(text)) == make_printable(text)
    assert "\n" not in make_cell(text)
    assert "\t" not in make_cell(text)


def test_unicodes_controls_and_formats_are_all_unsafe() -> None:
    import unicodedata

    kept = {"\n", "\t"}
    for code in range(0x110000):
        letter = chr(code)
        if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") and letter not in kept:
            assert UNSAFE.match(letter), hex(code)
        if unicodedata.bidirectional(letter) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"):
            assert UNSAFE.match(letter), hex(code)


@given(st.text(min_size=1, max_size=50), st.integers(0, 400), st.text(max_size=20))
def test_a_message_is_cut_and_keeps_its_advice(text: str, times: int, advice: str) -> None:
    message = f"{text * times}\n{advice}"
    cut = cut_message(message)
    assert len(cut) <= MAX_MESSAGE_LENGTH
    assert cut == message or "…" in cut
    if "\n" not in advice:
        assert cut.endswith(advice)


def test_commands_print_only_through_the_gate() -> None:
    """But for constants with colours, in the demo."""
    folder = Path(tracker.cli.__file__).parent
    direct = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            function = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if function in ("click.echo", "click.secho", "print", "sys.stdout.write", "sys.stderr.write"):
                direct.append(path.name)
    assert sorted(set(direct)) == ["demo.py", "terminal_text.py"]
