"""Results in Python and notebooks: data frames, HTML, figures, and options that are those of the commands."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

import tracker
from tracker.api.options import ANALYSIS_DEFAULTS, COMMAND_DEFAULT
from tracker.api.store import Store
from tracker.cli import suffrage
from tracker.errors import MissingExtraError, NotFoundError, SelectionError
from tracker.notebook.html import MAX_COLUMNS, MAX_ROWS, render_result
from tracker.notebook.result import NotebookResult, make_table
from tracker.notebook.tables import TableResult

N = 40
ROW = '{"q": "Is %s?", "o": ["yes", "no"], "a": "B"}'
MODELS = ("best", "second", "<third> & 'last'")


def scores(seed: int) -> pd.DataFrame:
    """Simulated scores of prompts by three models."""
    rng = np.random.default_rng(seed)
    columns = {model: (rng.random(N) < 0.8 - 0.2 * place).astype(int) for place, model in enumerate(MODELS)}
    return pd.DataFrame({"prompt_id": [f"q{row}" for row in range(N)], "category": ["a", "b"] * (N // 2), **columns})


def write_prompts(store: Store) -> Path:
    """Write two questions beside the store."""
    path = Path(str(store.engine.url.database)).with_name("questions.jsonl")
    path.write_text("\n".join(ROW % word for word in ("it", "he")))
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with three models, two runs each, and a recorded finding."""
    folder = tmp_path_factory.mktemp("notebook")
    with tracker.open(f"sqlite:///{folder}/store.db") as opened:
        for seed in (1, 2):
            opened.ingest(scores(seed), name=f"week {seed}", benchmark="quiz", metric="accuracy")
        opened.analyze("rank-intervals", "quiz", n_resamples=20)
        yield opened


NO_RESULT = {
    "close": "closes the store",
    "figure": "a file",
    "report": "writes a file",
    "session": "for the functions of `tracker.queries`",
    "evaluate": "needs a model: tests/tracker/evaluating/test_evaluation.py",
}
"""Public methods of a store that return no result, or whose result is tested elsewhere."""
RESULTS: dict[str, Callable[[Store], NotebookResult]] = {
    "leaderboard": lambda store: store.leaderboard("quiz"),
    "verdict": lambda store: store.verdict("quiz"),
    "comparison": lambda store: store.compare("quiz", *MODELS[:2], n_resamples=50),
    "history": lambda store: store.history("quiz"),
    "model history": lambda store: store.history("best"),
    "plan": lambda store: store.plan("quiz", effect=0.05),
    "related": lambda store: store.related("quiz"),
    "looks": lambda store: store.looks("quiz"),
    "finding": lambda store: store.finding(1),
    "analysis": lambda store: store.analyze("rank-intervals", "quiz", n_resamples=20),
    "reproductions": lambda store: store.reproduce(1),
    "scores": lambda store: store.performance_matrix("quiz"),
    "task means": lambda store: store.task_matrix("quiz"),
    "sql": lambda store: store.sql("select id, name from model"),
    "table": lambda store: store.table(1, "models"),
    "prompts": lambda store: store.prompts_from(
        "published",
        write_prompts(store),
        fields={"text": "q", "choices": "o", "answer": "a"},
        answer_is="letter",
        on_conflict="skip",
    ),
    "benchmarks": lambda store: store.benchmarks(),
    "models": lambda store: store.models(),
    "runs": lambda store: store.runs(),
    "findings": lambda store: store.findings(),
    "files": lambda store: store.ingest(scores(2), name="week 2", benchmark="quiz", metric="accuracy"),
}


class Markup(HTMLParser):
    """Checks that tags are closed in order, and collects the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts += [data.strip()] if data.strip() else []


@pytest.fixture
def used_methods(store: Store, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the methods of the store that a test calls."""
    names: set[str] = set()
    plain = Store.__getattribute__

    def collect(self: Store, name: str) -> Any:
        names.add(name)
        return plain(self, name)

    monkeypatch.setattr(Store, "__getattribute__", collect)
    return names


def test_every_public_method_with_a_result_is_tested(store: Store, used_methods: set[str]) -> None:
    for make in RESULTS.values():
        make(store)
    public = {name for name, _ in inspect.getmembers(Store, inspect.isfunction) if not name.startswith("_")}
    assert public - used_methods == set(NO_RESULT) - used_methods
    hints = {name: inspect.signature(getattr(Store, name)).return_annotation for name in NO_RESULT}
    assert hints == {
        "close": "None", "figure": "bytes", "report": "Path", "session": "Iterator[Session]",
        "evaluate": "Rows[EvaluationOutcome]",
    }  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
class TestEveryResult:
    def test_is_a_data_frame_html_with_the_verdict_first_and_a_figure(self, store: Store, name: str) -> None:
        result = RESULTS[name](store)
        assert isinstance(result, NotebookResult)
        table, frame = result.to_arrow(), result.to_pandas()
        assert list(frame.columns) == table.column_names
        assert len(frame) == table.num_rows > 0
        html = result._repr_html_()
        markup = Markup(html)
        assert markup.texts[0] == result.describe()
        assert len(result.describe()) > 5
        assert not re.search(r"#[0-9a-f]{3}|rgb|black|white|<script|onerror", html)
        figure = result.plot()
        assert isinstance(figure, Figure)
        assert figure.axes or figure.images


class TestDataFrames:
    def test_a_leaderboard_has_the_columns_of_the_command(self, store: Store) -> None:
        board = store.leaderboard("quiz")
        frame = board.to_pandas()
        assert frame["model"].tolist() == [row.model for row in board.rows]
        assert frame["rank_high"].tolist() == [board.rank_intervals[row.model].high for row in board.rows]
        np.testing.assert_array_equal(frame["mean"], [row.mean for row in board.rows])

    def test_a_matrix_has_a_row_per_prompt(self, store: Store) -> None:
        matrix = store.performance_matrix("quiz")
        frame = matrix.to_pandas()
        np.testing.assert_array_equal(frame[list(matrix.models)].to_numpy(), matrix.Q)
        assert frame["prompt_id"].tolist() == matrix.prompt_ids.tolist()

    def test_a_history_has_a_row_per_run_with_its_change(self, store: Store) -> None:
        frame = store.history("quiz").to_pandas()
        assert len(frame) == 2 * len(MODELS)
        assert frame["change"].notna().sum() == len(MODELS)
        assert set(store.history("best").to_pandas()["model"]) == {"best"}

    def test_values_that_are_no_numbers_or_texts_become_json(self) -> None:
        table = make_table([{"x": {"a": 1}, "y": 1, "z": (1, 2)}, {"x": None, "y": "b", "z": (3,)}])
        assert table.to_pylist() == [
            {"x": '{"a": 1}', "y": "1", "z": [1, 2]},
            {"x": None, "y": '"b"', "z": [3]},
        ]
        assert make_table([]).num_rows == 0

    def test_polars_is_used_where_it_is_installed(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        class Frame:
            def __init__(self, table: pa.Table) -> None:
                self.table = table

        stand_in = ModuleType("polars")
        stand_in.DataFrame = Frame  # type: ignore[attr-defined]
        stand_in.from_arrow = Frame  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "polars", stand_in)
        board = store.leaderboard("quiz")
        frame: Any = board.to_polars()
        assert frame.table.equals(board.to_arrow())

    def test_without_polars_the_error_has_the_command_that_installs_it(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "polars", None)
        with pytest.raises(MissingExtraError, match=r"pip install '\.\[polars\]'"):
            store.models().to_polars()


class TestHtml:
    def test_names_with_markup_are_escaped(self, store: Store) -> None:
        html = store.leaderboard("quiz")._repr_html_()
        assert "<third>" not in html
        assert "&lt;third&gt; &amp; &#x27;last&#x27;" in html

    @settings(max_examples=15)
    @given(st.text(), st.lists(st.text(), max_size=3), st.dictionaries(st.text(), st.text(), max_size=3))
    def test_no_text_becomes_markup(self, headline: str, details: list[str], row: dict[str, str]) -> None:
        expected = Markup(render_result("x", ["y"], make_table([{"a": "b"}]))).tags
        assert Markup(render_result(headline, details, make_table([row]))).tags <= expected

    def test_long_tables_are_cut_and_empty_columns_left_out(self) -> None:
        rows = [{f"c{place}": row for place in range(MAX_COLUMNS + 3)} | {"empty": None} for row in range(MAX_ROWS + 5)]
        html = render_result("x", (), make_table(rows))
        assert "and 5 more rows and 3 more columns: <code>.to_pandas()</code>" in html
        assert html.count("<tr>") == 1 + MAX_ROWS
        assert "empty" not in html


class TestFigures:
    def test_a_list_has_a_bar_for_each_label(self, store: Store) -> None:
        (axes,) = store.runs(model="best").plot().axes
        assert len(axes.patches) == 2
        assert {bar.get_width() for bar in axes.patches} == {N}  # type: ignore[attr-defined]
        (axes,) = store.findings(analysis="rank-intervals").plot().axes
        assert [label.get_text() for label in axes.get_yticklabels()] == ["rank-intervals"]
        assert [bar.get_width() for bar in axes.patches] == [len(store.findings(analysis="rank-intervals"))]  # type: ignore[attr-defined]

    def test_an_empty_list_can_be_drawn(self, tmp_path: Path) -> None:
        with tracker.open(f"sqlite:///{tmp_path}/x.db") as empty:
            for rows in (empty.benchmarks(), empty.models(), empty.runs(), empty.findings()):
                assert len(rows.plot().axes[0].patches) == 0
                assert rows.to_pandas().empty
                assert rows._repr_html_()

    def test_a_statement_draws_its_first_numbers_by_its_first_texts(self, store: Store) -> None:
        result = store.sql("select id, name, 10 * id as size from model order by id")
        (axes,) = result.plot().axes
        assert [label.get_text() for label in axes.get_yticklabels()] == [*MODELS]
        assert [bar.get_width() for bar in axes.patches] == [10, 20, 30]  # type: ignore[attr-defined]
        assert axes.get_xlabel() == "size"
        assert [bar.get_width() for bar in result.plot("id").axes[0].patches] == [1, 2, 3]  # type: ignore[attr-defined]
        with pytest.raises(SelectionError, match="Choose from: id, size"):
            result.plot("name")
        with pytest.raises(SelectionError, match="no column with numbers"):
            store.sql("select name from model").plot()

    def test_a_statement_is_a_table_for_other_libraries(self, store: Store) -> None:
        result = store.sql("select name from model order by id")
        assert isinstance(result, TableResult)
        assert pa.table(result).equals(result.to_arrow())
        assert (len(result), result["name"].to_pylist()) == (3, [*MODELS])

    def test_a_finding_draws_the_figures_that_it_names(self, store: Store) -> None:
        finding = store.finding(1)
        assert finding.figures == ("ranks", "separable")
        pixels = finding.plot("separable").images[0].get_array()
        assert pixels is not None
        assert pixels.shape[0] > 100
        with pytest.raises(NotFoundError, match="separable"):
            finding.plot("seperable")

    def test_a_comparison_draws_a_figure_by_name(self, store: Store) -> None:
        pair = store.compare("quiz", *MODELS[:2], n_resamples=50)
        assert pair.plot(pair.figures[-1]).axes
        with pytest.raises(NotFoundError):
            pair.plot("nothing")

    def test_a_history_without_steps_has_none(self, store: Store) -> None:
        first = store.runs()[-1].id
        with pytest.raises(SelectionError, match="nothing can have changed"):
            store.history("quiz", runs=first).plot()
        with pytest.raises(SelectionError, match="use 0 to 0"):
            store.history("quiz").plot(part=1)


class TestComparison:
    def test_nothing_is_recorded_unless_requested(self, store: Store) -> None:
        before = len(store.findings())
        result = store.compare("quiz", *MODELS[:2], n_resamples=50)
        assert result.id is None
        assert str(result).startswith("comparison, not recorded: ")
        assert len(store.findings()) == before
        recorded = store.compare("quiz", *MODELS[:2], n_resamples=50, record=True)
        assert recorded.id is not None
        assert store.finding(recorded.id).describe() == recorded.describe() == result.describe()
        np.testing.assert_equal(dict(recorded.metrics), dict(result.metrics))

    def test_a_run_has_the_name_of_the_command(self, store: Store) -> None:
        newest, *_, oldest = (run.id for run in store.runs(model="best"))
        assert store.compare("quiz", f"run:{oldest}", f"run:{newest}", n_resamples=50).metrics["n_prompts"] == N

    @pytest.mark.parametrize("options", [{"publish_to": "sqlite:///m.db"}, {"models": "best"}, {"runs": 1}])
    def test_options_without_effect_are_errors(self, store: Store, options: dict[str, Any]) -> None:
        with pytest.raises(SelectionError):
            store.compare("quiz", *MODELS[:2], **options)


class TestIngest:
    @pytest.mark.parametrize("kind", ["pandas", "arrow", "interface"])
    def test_a_data_frame_is_imported_once_like_its_file(self, kind: str, tmp_path: Path) -> None:
        frame = scores(3)

        class Stream:
            def __arrow_c_stream__(self, requested_schema: object = None) -> object:
                return pa.Table.from_pandas(frame).__arrow_c_stream__(requested_schema)

        value: Any = {"pandas": frame, "arrow": pa.Table.from_pandas(frame), "interface": Stream()}[kind]
        with tracker.open(f"sqlite:///{tmp_path}/x.db") as store:
            (result,) = store.ingest(value, benchmark="quiz", metric="accuracy")
            assert result.summary() == f"dataframe (wide-table): {N} new prompts, 3 new models, 3 new runs, 120 scores"
            (again,) = store.ingest(value, benchmark="quiz", metric="accuracy")
            assert "ingested before" in again.summary()
            matrix = store.performance_matrix("quiz", models=list(MODELS))
            np.testing.assert_array_equal(sorted(matrix.Q.sum(axis=0)), sorted(frame[list(MODELS)].sum()))

    def test_a_named_index_is_a_column_and_another_is_not(self, tmp_path: Path) -> None:
        with tracker.open(f"sqlite:///{tmp_path}/x.db") as store:
            store.ingest(scores(3).set_index("prompt_id"), name="scores", benchmark="quiz", metric="accuracy")
            assert store.sql("select count(*) as n from prompt").to_pylist() == [{"n": N}]
            shuffled = scores(3).sample(frac=1, random_state=0)
            store.ingest(shuffled, benchmark="quiz", metric="accuracy", on_conflict="error")
            assert store.sql("select count(*) as n from score").to_pylist() == [{"n": 3 * N}]

    @pytest.mark.parametrize("name", ["", "a/b", ".."])
    def test_a_name_is_no_path(self, store: Store, name: str) -> None:
        with pytest.raises(SelectionError, match="name is"):
            store.ingest(scores(1), name=name, benchmark="quiz")

    def test_columns_that_are_no_table_are_an_error(self, store: Store) -> None:
        with pytest.raises(SelectionError, match="cannot be read as a table"):
            store.ingest(pd.DataFrame({"prompt_id": ["a", "b"], "m": [1, {"x": object()}]}), benchmark="quiz")


OUTPUT = {"database", "output_format", "output", "force", "tracking_uri", "no_mlflow", "publish_to"}
"""Options of commands about the store, the output and MLflow, and where Python has a parameter for them."""
COMMANDS: dict[str, tuple[tuple[str, ...], dict[str, str | None]]] = {
    "leaderboard": (("leaderboard",), {}),
    "verdict": (("verdict",), {}),
    "plan": (("plan",), {"effect": None}),
    "history": (("history",), {"changed": None}),
    "related": (("models", "related"), {}),
    "looks": (("looks",), {}),
    "compare": (("compare",), {"n_flips": None}),
    "report": (("report",), {"no_prompts": "with_prompts", "force": "replace"}),
    "findings": (("findings",), {"name": "analysis"}),
    "runs": (("runs",), {"every": None}),
    "ingest": (
        ("ingest",),
        {"format_name": "format", "bounds": "lower upper", "lower_is_better": "higher_is_better",
         "model_column": "columns"},
    ),
    "evaluate": (("evaluate",), {"dry_run": None, "show_prompt": None, "model": None}),
    "prompts_from": (
        ("prompts", "import"),
        dict.fromkeys(("lm_eval_tasks", "lm_eval_folder", "few_shot", "few_shot_seed", "trust_code")),
    ),
}  # fmt: skip
"""Command of each method, and names of options that differ: None where Python has no such parameter."""
ONLY_PYTHON = {"ingest": {"name"}, "evaluate": {"progress"}, "prompts_from": {"progress"}}
"""Parameters without an option."""


class TestOptions:
    @pytest.mark.parametrize("method", COMMANDS)
    def test_are_those_of_the_command_by_name_and_default(self, method: str) -> None:
        path, renamed = COMMANDS[method]
        command: Any = suffrage
        for word in path:
            command = command.get_command(click.Context(command), word)
        options = {
            name: option
            for option in command.params
            if isinstance(option, click.Option) and option.name not in OUTPUT - set(renamed)
            for name in (renamed.get(option.name, option.name) or "").split()
        }
        parameters = {
            name: parameter
            for name, parameter in inspect.signature(getattr(Store, method)).parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in OUTPUT | ONLY_PYTHON.get(method, set())
        }
        assert set(parameters) == set(options)
        for name, parameter in parameters.items():
            default = options[name].get_default(click.Context(command))
            expected = default if isinstance(default, str | int | float) else None
            if name in renamed.values() or parameter.default is COMMAND_DEFAULT or name in ("lower", "upper"):
                continue
            assert parameter.default == expected, name

    def test_no_public_method_hides_its_options(self) -> None:
        for name, method in inspect.getmembers(Store, inspect.isfunction):
            kinds = {parameter.kind for parameter in inspect.signature(method).parameters.values()}
            hides = inspect.Parameter.VAR_KEYWORD in kinds
            assert name.startswith("_") or hides == (name == "analyze"), name
        *options, last = inspect.signature(Store.analyze).parameters
        assert (last, {*ANALYSIS_DEFAULTS} - {*options}) == ("parameters", set())

    def test_an_analysis_has_the_defaults_of_a_selection(self) -> None:
        parameters = inspect.signature(Store.analyze).parameters
        assert {name: parameters[name].default for name in ANALYSIS_DEFAULTS} == dict(ANALYSIS_DEFAULTS)

    def test_every_option_of_any_analysis_is_named(self) -> None:
        parameters = set(inspect.signature(Store.analyze).parameters)
        analyze: Any = suffrage.get_command(click.Context(suffrage), "analyze")
        context = click.Context(analyze)
        from tracker.recording.declaration import load_declaration

        for name in ("rank-intervals", "prompt-weighting", "semantic-similarity", "task-subsets"):
            declared = {parameter.name for parameter in load_declaration(name).parameters}
            options = {option.name for option in analyze.get_command(context, name).params}
            assert options - declared - OUTPUT - {"scheduler"} <= parameters  # an address is a value of `workers`

    def test_options_are_fields_of_what_they_set(self) -> None:
        from dataclasses import fields

        from tracker.api.options import IngestOptions, PromptImportOptions
        from tracker.ingest.datasets.ingest_prompts import PromptOptions
        from tracker.ingest.measurement import ReadOptions

        assert {*IngestOptions.__annotations__} == {field.name for field in fields(ReadOptions)} - {"known_names"}
        assert {*PromptImportOptions.__annotations__} == {field.name for field in fields(PromptOptions)}

    def test_an_unknown_option_is_an_error_with_the_nearest_name(self, store: Store) -> None:
        with pytest.raises(SelectionError, match=r"verdict has no option 'taskeffects'\. Did you mean 'task_effects'"):
            store.verdict("quiz", taskeffects="fixed")  # type: ignore[call-arg]


JOBS = {
    "history into a data frame": (3, "store = tracker.open(url)\nframe = store.history('quiz').to_pandas()"),
    "leaderboard with a plot": (3, "board = tracker.open(url).leaderboard('quiz')\nboard.plot()"),
    "comparison": (2, "tracker.open(url).compare('quiz', 'best', 'second')"),
}


@pytest.mark.parametrize("job", JOBS)
def test_a_notebook_job_takes_few_lines(store: Store, job: str) -> None:
    most, text = JOBS[job]
    code = f"import tracker\n{text}"
    assert len(code.splitlines()) <= most
    exec(code, {"url": store.engine.url.render_as_string()})
