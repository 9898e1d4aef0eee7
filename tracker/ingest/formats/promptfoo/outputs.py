"""Results of promptfoo in each output format: JSON, JSON Lines, YAML and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import check_text, open_file, read_bytes, read_first_records
from tracker.ingest.files.file_summary import first_keys
from tracker.ingest.files.json_files import iterate_json_lines, parse_json, parse_line
from tracker.ingest.files.json_stream import stream_parts
from tracker.ingest.files.json_values import mapping, parsed_number
from tracker.ingest.files.mismatch import first_missing_key
from tracker.ingest.files.yaml_text import parse_yaml
from tracker.ingest.formats.promptfoo.rows import FIELDS, TECHNICAL

HEAD = ("evalId", "config", "metadata", "version", "timestamp", "stats", "prompts")
CHUNK = 1 << 18
CURRENT = 3
"""Version of the results in formats that do not contain it."""
JSON_START = re.compile(
    rb'\s*\{\s*(?:"evalId"\s*:\s*(?:"[^"]*"|null)\s*,\s*)?"results"\s*:\s*\{\s*"version"\s*:\s*\d+\b'
)
YAML_START = re.compile(rb"\s*(?:---\s*)?(?:evalId:[^\n]*\n)?results:\s*\n\s+version:\s*\d+\b")
LINE_FIELDS = ("promptIdx", "testIdx", "testCase", "provider", "success", "score")
HEADING = re.compile(r"\[(?P<provider>[^\]\n]+)\] (?P<label>.*)", re.DOTALL)
CELL = re.compile(r"\[(?P<outcome>PASS|FAIL|ERROR)\](?: \((?P<score>-?\d+\.\d\d)[,)])?")
STATUS, SCORE, NAMED_SCORES, DESCRIPTION = "Status", "Score", "Named Scores", "Description"


def mismatch_reason(path: Path, start: bytes) -> str | None:
    """Return why a file is no output of promptfoo.

    Args:
        path: the file.
        start: its first bytes.
    """
    kind = path.suffix.lower()
    if kind == ".jsonl":
        return first_missing_key(first_keys(start), LINE_FIELDS)
    if kind in (".yaml", ".yml"):
        return None if YAML_START.match(start) else "it does not start with results and their version"
    if kind == ".csv":
        records = read_first_records(start, whole=False)
        has_outputs = isinstance(records, list) and output_columns(records[0], records[1:2])
        return None if has_outputs else "no column [provider] prompt with a status or [PASS]"
    if kind != ".json":
        return "the name does not end in .json, .jsonl, .yaml or .csv"
    return None if JSON_START.match(start) else "it does not start with results and their version"


def iterate_entries(path: Path, head: dict[str, Any]) -> Iterator[Any]:
    """Yield the results in the order of the file; members beside them are added to the header.

    Raises:
        BadInputError: the file is invalid; raised after the results before the damage.
    """
    kind = path.suffix.lower()
    if kind == ".jsonl":
        head["version"] = CURRENT
        yield from (row for _, row in iterate_json_lines(path))
    elif kind in (".yaml", ".yml"):
        yield from _read_yaml(path, head)
    elif kind == ".csv":
        head["version"] = CURRENT
        yield from _read_csv(path)
    else:
        yield from _read_json(path, head)


def output_columns(header: Sequence[str], first_rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns of a CSV file that hold outputs, each of a provider and prompt."""
    has_status = [place for place, names in enumerate(pairwise(header[1:])) if names == (STATUS, SCORE)]
    if has_status:
        return has_status
    cells = first_rows[0] if first_rows else []
    return [
        place
        for place, (heading, cell) in enumerate(zip(header, cells, strict=False))
        if HEADING.fullmatch(heading) and CELL.match(cell)
    ]


def _read_json(path: Path, head: dict[str, Any]) -> Iterator[Any]:
    n = 0
    with open_file(path) as file:
        chunks = iter(lambda: file.read(CHUNK), b"")
        for name, data in stream_parts(chunks, path, of=("results", "results"), only=FIELDS, beside=HEAD):
            if name is not None:
                head[name] = parse_json(path, data, name)
                continue
            n += 1
            yield parse_json(path, data, f"result {n}")


def _read_yaml(path: Path, head: dict[str, Any]) -> Iterator[Any]:
    data = read_bytes(path)
    check_text(path, data)
    content = mapping(parse_yaml(path, data))
    summary = mapping(content.get("results"))
    for name in HEAD:
        if name in content or name in summary:
            head[name] = content.get(name, summary.get(name))
    results = summary.get("results")
    yield from results if isinstance(results, list) else ()


def _read_csv(path: Path) -> Iterator[Any]:
    data = read_bytes(path)
    check_text(path, data)
    reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    try:
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise BadInputError(path, f"is not valid CSV: {error}.") from error
    header = rows[0]
    columns = output_columns(header, rows[1:2])
    if not columns:
        raise BadInputError(path, "has no column [provider] prompt with a status or [PASS].")
    for test, row in enumerate(rows[1:]):
        if len(row) != len(header):
            raise BadInputError(path, f"row {test + 1}: has {len(row)} cells, not {len(header)}.")
        variables = dict(zip(header[: columns[0]], row, strict=False))
        description = variables.pop(DESCRIPTION, None)
        for number, column in enumerate(columns):
            entry = _entry(path, test, header[column:], row[column:])
            case = {"vars": variables, "description": description or None}
            yield {**entry, "testIdx": test, "promptIdx": number, "testCase": case, "vars": variables}


def _entry(path: Path, test: int, header: Sequence[str], row: Sequence[str]) -> dict[str, Any]:
    """Return the result of a test in one output column, which is the first one."""
    heading = HEADING.fullmatch(header[0])
    label = heading["label"] if heading else header[0]
    output: str | None = None
    scores_json, cell = "{}", CELL.match(row[0])
    if tuple(header[1:3]) == (STATUS, SCORE):
        outcome, score, output = row[1], parsed_number(row[2]), row[0]
        scores_json = row[3] if header[3:4] == [NAMED_SCORES] and row[3] else scores_json
    else:
        outcome, score = (cell["outcome"], parsed_number(cell["score"])) if cell else (row[0], None)
    if outcome not in ("PASS", "FAIL", "ERROR"):
        raise BadInputError(path, f"row {test + 1}: unknown status {outcome[:40]!r}; expected PASS, FAIL or ERROR.")
    try:
        named_scores = parse_line(scores_json.encode())
    except ValueError as error:
        raise BadInputError(path, f"row {test + 1}: {NAMED_SCORES} is not JSON.") from error
    return {
        "provider": heading["provider"] if heading else "",
        "prompt": {"label": label},
        "success": outcome == "PASS",
        "score": score,
        "namedScores": named_scores,
        "failureReason": TECHNICAL if outcome == "ERROR" else int(outcome == "FAIL"),
        "response": None if output is None else {"output": output},
    }
