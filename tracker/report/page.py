"""Write the report as one file that loads nothing and whose content cannot run scripts."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from tracker.name_lists import join_names
from tracker.report.charts import MAX_MODELS, N_BINS, build_charts
from tracker.report.contents import Contents
from tracker.report.finding_sections import build_finding_entries, describe_selection, select_pictures
from tracker.report.first_picture import draw_first_picture
from tracker.report.leaderboard_rows import (
    build_leaderboard_rows,
    compute_axis_limits,
    describe_intervals,
    list_limits,
)
from tracker.report.metric_tables import NumberTable
from tracker.report.number_format import format_code, format_count, format_day, format_minute, format_score, shorten
from tracker.report.plotly_library import fingerprint, load_plotly
from tracker.report.prompt_examples import Example
from tracker.version import __version__

MAX_BYTES = 4_900_000
"""Maximum bytes of the file; older figures are left out if it would be larger."""

MAX_TABLE_CELLS = 5_000
MAX_PROMPT_LENGTH = 900
N_SOURCES = 3
N_TOP, MAX_ON_FIRST_PAGE = 10, 12
"""Rows of the first page's table, and up to how many models it shows all of them."""

EXAMPLES = {
    "hardest": ("The hardest", "the lowest mean of all models"),
    "most divided": ("Those that divide the models most", "the largest spread between models"),
    "easiest": ("The easiest", "the highest mean of all models"),
}


def render_page(contents: Contents) -> bytes:
    """Render the report; equal contents give equal bytes.

    The file is below five million bytes, unless its content without figures of findings is already larger.
    """
    drawn = build_charts(contents)
    bare = _rendered(contents, drawn, {}, 0)
    fitting, n_omitted = select_pictures(contents, MAX_BYTES - len(bare) - 400 * len(contents.pictures))
    return _rendered(contents, drawn, fitting, n_omitted)


def _rendered(
    contents: Contents, drawn: dict[str, Any], pictures: dict[tuple[int, str], bytes], n_omitted: int
) -> bytes:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = PackageLoader("tracker.report", "templates")
    environment = Environment(loader=templates, autoescape=True, undefined=StrictUndefined)
    environment.filters["code"] = format_code
    page = environment.get_template("page.html").render(_template_values(contents, drawn, pictures, n_omitted))
    return page.encode()


def _template_values(
    contents: Contents, drawn: dict[str, Any], pictures: dict[tuple[int, str], bytes], n_omitted: int
) -> dict[str, Any]:
    board, library = contents.board, load_plotly()
    style, script = _asset("style.css"), _asset("page.js")
    rows = build_leaderboard_rows(board, contents.ranks)
    top = rows if len(rows) <= MAX_ON_FIRST_PAGE else rows[:N_TOP]
    low, high = compute_axis_limits(board)
    units = format_count(board.n_units, board.unit)
    return {
        "policy": _policy(script, library.fingerprint),
        "version": __version__,
        "drawing_version": library.version,
        "library": library.packed,
        "style": style,
        "script": script,
        "charts": drawn,
        "data": _as_json(drawn),
        "board": board,
        "ranks": contents.ranks,
        "rows": rows,
        "top": top,
        "n_hidden": len(rows) - len(top),
        "picture": draw_first_picture(board),
        "excluded": [row for row in rows if row["excluded"]],
        "axis": {"low": format_score(low), "high": format_score(high)},
        "counted": f"{format_count(len(rows), 'model')} on {units}"
        + (f" in {format_count(board.n_tasks, 'task')}" if board.unit == "prompt" and board.n_tasks else ""),
        "units": units,
        "interval_text": describe_intervals(board),
        "chosen": describe_selection({**contents.selection.as_json(), "metric": ""}),
        "as_of": format_day(contents.as_of) if contents.as_of else "",
        "verdict": contents.verdict,
        "short": list_limits(board),
        "parts": any(name in drawn for name in ("tasks", "difficulty", "agreement")),
        "hidden_models": max(0, len(rows) - MAX_MODELS),
        "most_models": MAX_MODELS,
        "n_bins": min(N_BINS, contents.scores.n_prompts) if contents.scores is not None else 0,
        "binary": contents.scores is not None and contents.scores.is_binary,
        "task_table": _task_table(contents),
        "examples": _examples(contents),
        "findings": build_finding_entries(contents, pictures),
        "n_omitted": format_count(n_omitted, "picture") if n_omitted else "",
        "origin": _origin(contents),
        "runs": [
            {
                "id": run.id,
                "model": run.model,
                "condition": " ".join(filter(None, (run.condition, run.variant, run.label))),
                "n": f"{run.n_scores:,}",
                "n_value": run.n_scores,
                "ingested": format_minute(run.ingested).removesuffix(" UTC"),
                "sources": _join_names([source.replace("\\", "/").rpartition("/")[2] for source in run.sources]),
            }
            for run in contents.runs
        ],
    }


def _policy(script: str, library: str) -> str:
    """Return the content security policy: only this page's scripts, styles and images; no external address."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'sha256-{fingerprint(script.encode())}' 'sha256-{library}'",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _asset(name: str) -> str:
    """Read a packaged file that is included unchanged."""
    return files("tracker.report").joinpath("templates", name).read_text(encoding="utf-8")


def _as_json(value: Any) -> str:
    """Format data so that it can end neither its element nor a string."""
    from jinja2.utils import htmlsafe_json_dumps

    return htmlsafe_json_dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _task_table(contents: Contents) -> NumberTable | None:
    matrix = contents.tasks
    if matrix is None or matrix.T.size > MAX_TABLE_CELLS:
        return None
    column = {model: place for place, model in enumerate(matrix.models)}
    models = [row.model for row in contents.board.rows if row.model in column]
    rows = tuple((model, *(format_score(value) for value in matrix.T[:, column[model]].tolist())) for model in models)
    return NumberTable(heads=("model", *matrix.tasks), rows=rows, has_reasons=False)


def _examples(contents: Contents) -> list[dict[str, Any]]:
    if contents.examples is None:
        return []
    return [
        {
            "title": EXAMPLES[name][0],
            "caption": f"{format_count(contents.examples.counts[name], 'prompt')} with {EXAMPLES[name][1]}"
            + (f"; the first {len(examples)}:" if len(examples) < contents.examples.counts[name] else ":"),
            "prompts": [
                {"head": _head(example), "text": shorten(example.text, MAX_PROMPT_LENGTH)} for example in examples
            ],
        }
        for name, examples in contents.examples.groups.items()
    ]


def _head(example: Example) -> str:
    task = f"{example.task}, " if example.task else ""
    return (
        f"{task}prompt {example.name}; mean {format_score(example.mean)} of {format_count(example.n_models, 'model')}"
    )


def _origin(contents: Contents) -> list[tuple[str, str]]:
    """Return names and values of the provenance; nothing about the machine that wrote the page."""
    board, selection = contents.board, contents.selection
    versions = sorted({finding.code_version for finding in contents.findings})
    facts = {
        "benchmark": board.benchmark,
        "metric": board.metric,
        "condition": board.condition,
        "choices": describe_selection({**selection.as_json(), "metric": ""})
        or "none: the most complete run of each model, the latest of equal ones",
        "missing scores": board.missing,
        "clusters": board.cluster,
        "data as of": format_minute(contents.as_of) if contents.as_of else "",
        "store": contents.database_id,
        "digest of the scores": contents.scores.digest if contents.scores is not None else "",
        "program": f"suffrage {__version__}",
        "programs behind findings": _join_names([version.split(",", 1)[0] for version in versions]),
    }
    return [(name, value) for name, value in facts.items() if value]


def _join_names(names: list[str]) -> str:
    return join_names(dict.fromkeys(names), N_SOURCES)
