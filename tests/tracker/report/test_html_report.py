"""The report as a file: complete, small, the same each time, and nothing in it that can act."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hostile_benchmark import BENCHMARK, MODELS, N_PROMPTS, SPELLS, TASKS, ingest_into, written
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

import tracker
from tracker.api.reports import BenchmarkReport, build_report
from tracker.api.store import Store
from tracker.queries.findings.finding_records import MetricRecord
from tracker.queries.selection import Selection
from tracker.report.finding_sections import build_finding_entries, select_pictures
from tracker.report.first_picture import draw_first_picture
from tracker.report.images import MAX_COLOURS, MAX_WIDTH, read_png_size, shrink_picture
from tracker.report.metric_tables import build_number_tables
from tracker.report.number_format import NOTHING, format_number, format_score, format_share, split_paragraphs
from tracker.report.page import MAX_BYTES, format_code
from tracker.report.score_patterns import bin_by_difficulty, compute_agreement, compute_correlations


class Page(HTMLParser):
    """What is on a page: elements with their attributes, and the text of each script and of all the rest."""

    def __init__(self, page: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.text = ""
        self._within = ""
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._within = tag
            (self.scripts if tag == "script" else self.styles).append("")

    def handle_endtag(self, tag: str) -> None:
        self._within = "" if tag == self._within else self._within

    def handle_data(self, data: str) -> None:
        if self._within == "script":
            self.scripts[-1] += data
        elif self._within == "style":
            self.styles[-1] += data
        else:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Store]:
    """A store with the hostile benchmark, two findings of one question, and an older one of another."""
    folder = tmp_path_factory.mktemp("hostile")
    shutil.copy(sqlite_template, folder / "store.db")
    with tracker.open(f"sqlite:///{folder / 'store.db'}") as store:
        ingest_into(store, folder)
        store.compare(BENCHMARK, *MODELS[:2], n_resamples=100, record=True)
        store.analyze("rank-intervals", BENCHMARK, n_resamples=50)
        store.analyze("rank-intervals", BENCHMARK, n_resamples=60)
        yield store


@pytest.fixture(scope="module")
def built(hostile: Store) -> BenchmarkReport:
    return build_report(hostile.engine, Selection(benchmark=BENCHMARK))


@pytest.fixture(scope="module")
def page(built: BenchmarkReport) -> Page:
    return Page(built.page)


class TestNothingActs:
    def test_the_only_scripts_are_the_pages_own_two_and_its_data(self, page: Page) -> None:
        kinds = [attributes.get("type") for attributes in page.all("script")]
        assert kinds == ["application/json", "text/plain", None]
        assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]

    def test_what_names_and_texts_spell_is_shown_as_text(self, page: Page) -> None:
        for spell in (*SPELLS, *MODELS, *TASKS):
            assert spell in page.text
        assert "49" not in re.findall(r"&lt;b&gt; (\S+)", page.text)  # nor is it a template

    def test_names_within_data_can_end_neither_element_nor_string(self, page: Page) -> None:
        data = json.loads(page.scripts[0])
        assert not set("<>&") & set(page.scripts[0])
        assert sorted(data["means"]["labels"]) == sorted(MODELS)
        assert sorted(data["tasks"]["columns"]) == sorted(TASKS)

    def test_the_policy_allows_these_scripts_by_their_digests_and_no_address_at_all(self, page: Page) -> None:
        policy = next(
            item["content"] for item in page.all("meta") if item.get("http-equiv") == "Content-Security-Policy"
        )
        assert policy is not None
        rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
        own_rules = base64.b64encode(hashlib.sha256(page.scripts[2].encode()).digest()).decode()
        library = gzip.decompress(base64.b64decode(page.scripts[1]))
        drawing = base64.b64encode(hashlib.sha256(library).digest()).decode()
        assert rules["script-src"] == [f"'sha256-{own_rules}'", f"'sha256-{drawing}'"]
        assert rules["default-src"] == ["'none'"]
        assert rules["img-src"] == ["data:", "blob:"]
        assert set(rules) == {"default-src", "script-src", "style-src", "img-src", "base-uri", "form-action"}

    def test_nothing_is_loaded_from_anywhere(self, page: Page) -> None:
        assert not {"link", "iframe", "object", "embed", "base", "form", "video", "audio"} & {
            n for n, _ in page.elements
        }
        for name, attributes in page.elements:
            for place in ("src", "href", "srcset", "action", "data", "poster"):
                address = attributes.get(place)
                assert address is None or address.startswith(("#", "data:image/png;base64,")), (name, address)
        assert "url(" not in page.styles[0]
        assert "@import" not in page.styles[0]


class TestContents:
    def test_every_model_stands_there_with_mean_interval_and_coverage(self, built: BenchmarkReport, page: Page) -> None:
        for row in built.contents.board.rows:
            assert format_score(row.mean) in page.text
            assert f"{format_score(row.low)} to {format_score(row.high)}" in page.text
        assert "Missing scores can have any value from 0 to 1" in page.text
        assert "98.3 %" in page.text

    def test_ranks_have_the_intervals_that_the_leaderboard_gives_them(
        self, hostile: Store, built: BenchmarkReport
    ) -> None:
        intervals = hostile.leaderboard(BENCHMARK).rank_intervals
        assert len(intervals) == len(MODELS)
        assert built.contents.ranks.low == {model: interval.low for model, interval in intervals.items()}
        assert built.contents.ranks.high == {model: interval.high for model, interval in intervals.items()}

    def test_the_first_picture_has_the_ranks_of_the_leaderboard(self, built: BenchmarkReport, page: Page) -> None:
        board = built.contents.board
        picture = draw_first_picture(board)
        assert picture is not None
        assert picture["title"] in page.text
        assert [row["model"] for row in picture["rows"]] == [row.model for row in board.rows if row.rank is not None]
        places = {int(tick["label"]): tick["x"] for tick in picture["ticks"]}
        for row in picture["rows"]:
            interval = board.rank_intervals[row["model"]]
            for end, place in zip((interval.low, interval.high), row["narrow"], strict=True):
                assert place == places.get(int(end), place)
            assert row["narrow"][0] <= row["dot"] <= row["narrow"][1]

    def test_without_rank_intervals_the_first_picture_has_the_means(self, hostile: Store) -> None:
        board = build_report(hostile.engine, Selection(benchmark=BENCHMARK, weights="task-equal")).contents.board
        picture = draw_first_picture(board)
        assert picture is not None
        assert not board.rank_intervals
        dots = [row["dot"] for row in picture["rows"]]
        assert dots == sorted(dots, reverse=board.higher_is_better)
        assert max(dots) <= picture["width"]

    def test_every_finding_has_its_summary_and_pictures(
        self, hostile: Store, built: BenchmarkReport, page: Page
    ) -> None:
        result = hostile.findings(benchmark=BENCHMARK)
        assert len(result) == 3
        for item in result:
            assert f"Finding {item.id}," in page.text
            assert item.summary.headline in page.text
        pictures = [item["src"] or "" for item in page.all("img")]
        assert len(pictures) == len(built.contents.pictures) > 4
        for address in pictures:
            Image.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/png;base64,")))).load()
        assert "Compute intervals of ranks that hold for all models together." in page.text

    def test_a_finding_whose_data_changed_is_marked_stale(self, hostile: Store, tmp_path: Path) -> None:
        copied = tmp_path / "copy.db"
        with hostile.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(str(hostile.engine.url.database), copied)
        with tracker.open(f"sqlite:///{copied}") as store:
            before = Page(build_report(store.engine, Selection(benchmark=BENCHMARK)).page).text
            rows = [["prompt_id", MODELS[0]], *([f"p{row}", 1] for row in range(N_PROMPTS))]
            store.ingest(written(tmp_path / "rerun.csv", rows), benchmark=BENCHMARK, metric="accuracy")
            after = Page(build_report(store.engine, Selection(benchmark=BENCHMARK)).page).text
        assert "Stale:" not in before
        assert after.count("Stale:") == 3

    def test_texts_of_prompts_are_left_out_on_request(self, hostile: Store) -> None:
        without = build_report(hostile.engine, Selection(benchmark=BENCHMARK), with_prompts=False)
        assert "What is" not in Page(without.page).text
        assert without.contents.examples is None

    def test_scores_of_whole_tasks_make_a_report_too(self, tmp_path: Path, sqlite_url: str) -> None:
        (tmp_path / "t.csv").write_text("model,task,score\na,x,1\na,y,2\nb,x,3\nb,y,5\n")
        with tracker.open(sqlite_url) as store:
            store.ingest(tmp_path / "t.csv", benchmark="few", metric="points")
            built = build_report(store.engine, Selection(benchmark="few"))
        text = Page(built.page).text
        assert built.contents.scores is None
        assert "2 models on 2 tasks" in text
        assert "scores are of whole tasks" in text
        assert "There are no findings on this benchmark yet" in text

    def test_every_engine_gives_the_same_page(
        self, hostile: Store, built: BenchmarkReport, tmp_path: Path, store_url: str
    ) -> None:
        with tracker.open(store_url) as store:
            ingest_into(store, tmp_path)
            result = build_report(store.engine, Selection(benchmark=BENCHMARK)).contents
        assert result.board.rows == built.contents.board.rows
        assert result.ranks == built.contents.ranks
        assert result.examples == built.contents.examples

    def test_scores_too_large_to_be_squared_have_no_interval(self, tmp_path: Path, sqlite_url: str) -> None:
        rows = [["prompt_id", "x", "y"], *([f"p{row}", 1e300 * (row % 2), 1] for row in range(9))]
        with tracker.open(sqlite_url) as store:
            store.ingest(written(tmp_path / "t.csv", rows), benchmark="huge", metric="points")
            with np.errstate(over="ignore", invalid="ignore"):
                page = build_report(store.engine, Selection(benchmark="huge")).page
        assert "4.444 × 10²⁹⁹" in Page(page).text
        assert not re.search(r'(x1|x2|cx)="(nan|-?inf)"', page.decode())

    def test_one_model_and_one_prompt_make_a_report_too(self, tmp_path: Path, sqlite_url: str) -> None:
        (tmp_path / "t.csv").write_text("prompt_id,a\np1,1\n")
        with tracker.open(sqlite_url) as store:
            store.ingest(tmp_path / "t.csv", benchmark="least", metric="points")
            built = build_report(store.engine, Selection(benchmark="least"))
        assert "1 model on 1 prompt," in Page(built.page).text


class TestLaws:
    def test_the_same_store_gives_the_same_bytes_wherever_it_lies(
        self, hostile: Store, built: BenchmarkReport, tmp_path: Path
    ) -> None:
        with hostile.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(str(hostile.engine.url.database), tmp_path / "elsewhere.db")
        with tracker.open(f"sqlite:///{tmp_path / 'elsewhere.db'}") as store:
            assert build_report(store.engine, Selection(benchmark=BENCHMARK)).page == built.page

    def test_it_names_no_folder_of_the_machine_that_made_it(self, hostile: Store, built: BenchmarkReport) -> None:
        assert str(Path(str(hostile.engine.url.database)).parent) not in built.page.decode()

    def test_it_is_small(self, built: BenchmarkReport) -> None:
        assert len(built.page) <= MAX_BYTES < 5_000_000

    def test_where_room_is_short_the_latest_answers_keep_their_pictures(self, built: BenchmarkReport) -> None:
        every, none_left = select_pictures(built.contents, 10_000_000)
        last, before, second = (finding.id for finding in built.contents.findings)
        assert none_left == 0
        assert list(dict.fromkeys(key for key, _ in every)) == [last, second, before]
        latest = {last, second}
        room = sum(len(base64.b64encode(png)) + 22 for (key, _), png in every.items() if key in latest)
        some, omitted = select_pictures(built.contents, room)
        assert ({key for key, _ in some}, omitted) == (latest, len(every) - len(some))
        assert select_pictures(built.contents, -1) == ({}, len(every))
        drawn = {entry.id: bool(entry.pictures) for entry in build_finding_entries(built.contents, some)}
        assert drawn == {last: True, second: True, before: False}


def matrices(low: int = 2) -> st.SearchStrategy[np.ndarray]:
    """Scores of which some are missing; no row and no column is without any."""
    shapes = st.tuples(st.integers(low, 40), st.integers(1, 5))
    cells = st.sampled_from([0.0, 1.0, np.nan])
    drawn = shapes.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=cells))
    return drawn.filter(lambda Q: bool((~np.isnan(Q)).any(axis=0).all() and (~np.isnan(Q)).any(axis=1).all()))


class TestAgainstReference:
    @given(matrices())
    @settings(max_examples=30)
    def test_the_share_of_equal_scores_is_counted_pair_by_pair(self, Q: np.ndarray) -> None:
        result = compute_agreement(Q)
        for a in range(Q.shape[1]):
            for b in range(Q.shape[1]):
                both = ~np.isnan(Q[:, a]) & ~np.isnan(Q[:, b])
                expected = np.mean(Q[both, a] == Q[both, b]) if both.any() else np.nan
                np.testing.assert_allclose(result[a, b], expected)

    @given(st.integers(0, 2**32 - 1), st.floats(0, 1e6))
    @settings(max_examples=30)
    def test_correlations_are_those_of_numpy_over_shared_prompts(self, seed: int, shift: float) -> None:
        rng = np.random.default_rng(seed)
        Q = rng.normal(size=(12, 4)) + shift
        Q[rng.random(Q.shape) < 0.2] = np.nan
        Q[:, 3] = 0.5
        if np.isnan(Q).all(axis=0).any():
            return
        result = compute_correlations(Q)
        for a in range(4):
            for b in range(4):
                both = ~np.isnan(Q[:, a]) & ~np.isnan(Q[:, b])
                if both.sum() < 2 or 3 in (a, b):
                    assert np.isnan(result[a, b])
                else:
                    np.testing.assert_allclose(result[a, b], np.corrcoef(Q[both, a], Q[both, b])[0, 1], atol=1e-7)

    @given(matrices(low=1), st.integers(1, 6))
    @settings(max_examples=30)
    def test_means_by_difficulty_are_means_of_sorted_prompts(self, Q: np.ndarray, n_bins: int) -> None:
        result = bin_by_difficulty(Q, n_bins)
        difficulty = [float(np.mean(row[~np.isnan(row)])) for row in Q]
        order = sorted(range(len(Q)), key=lambda row: (difficulty[row], row))
        assert result.edges[0] == 0
        assert result.edges[-1] == len(Q)
        assert (np.diff(result.edges) >= 1).all()
        assert np.ptp(np.diff(result.edges)) <= 1
        for place, (first, last) in enumerate(zip(result.edges[:-1], result.edges[1:], strict=True)):
            rows = order[first:last]
            np.testing.assert_allclose(result.overall[place], np.mean([difficulty[row] for row in rows]))
            for model in range(Q.shape[1]):
                known = [Q[row, model] for row in rows if not np.isnan(Q[row, model])]
                np.testing.assert_allclose(result.means[model, place], np.mean(known) if known else np.nan)


class TestTexts:
    def test_backquotes_become_code_and_all_else_is_escaped(self) -> None:
        assert format_code("Add `--top <k>` & run.") == "Add <code>--top &lt;k&gt;</code> &amp; run."

    def test_findings_are_folded_under_their_headlines_and_their_caveats_labelled(self, built: BenchmarkReport) -> None:
        page = built.page.decode()
        for finding in built.contents.findings:
            fold = page.split(f'id="finding-{finding.id}">')[1].split("</summary>")[0]
            assert format_code(finding.summary.headline) in fold
            for caveat in finding.summary.caveats:
                assert f"<li><b>Caveat:</b> {format_code(caveat)}</li>" in page

    @given(st.floats(-1e12, 1e12))
    @settings(max_examples=100)
    def test_a_number_keeps_four_digits(self, value: float) -> None:
        message = format_number(value).replace(",", "").replace("−", "-").replace(" × 10", "e")
        message = message.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
        np.testing.assert_allclose(float(message), value, rtol=6e-4)

    @given(st.floats(0, 1, exclude_min=True, exclude_max=True))
    def test_a_share_is_all_or_none_only_where_it_is(self, value: float) -> None:
        assert format_share(value) not in ("0 %", "100 %")

    def test_what_is_no_number_is_a_dash(self) -> None:
        assert [format_number(None), format_number(float("nan")), format_score(None), format_score(float("inf"))] == [
            NOTHING
        ] * 4

    def test_scores_keep_what_their_size_allows(self) -> None:
        assert [format_score(x) for x in (0.62804, 12.3456, 1234.56, -0.5, 0.0001234, 0.0)] == [
            "0.628", "12.35", "1,234.6", "−0.500", "1.234 × 10⁻⁴", "0.000",
        ]  # fmt: skip

    def test_a_docstring_becomes_paragraphs_without_marks(self) -> None:
        assert split_paragraphs("One?\n\nTwo ``Q``\nand `b`.\n\n") == ["One?", "Two Q and b."]

    def test_numbers_with_p_values_stand_with_what_belongs_to_them_and_missing_ones_with_their_reason(self) -> None:
        options = [
            MetricRecord(name="n", value=3.0, reason="", is_main=True),
            MetricRecord(name="spread", value=None, reason="one prompt only", is_main=True),
            MetricRecord(name="mean", value=0.5, reason="", is_main=True),
            MetricRecord(name="mean.null_mean", value=0.25, reason="", is_main=False),
            MetricRecord(name="mean.pvalue", value=0.01, reason="", is_main=True),
            MetricRecord(name="mean.discrete", value=1.0, reason="", is_main=False),
            MetricRecord(name="aside", value=1.0, reason="", is_main=False),
        ]
        plain, tested = build_number_tables(options)
        assert plain.heads == ("number", "value", "why undefined")
        assert plain.rows == (("n", "3", ""), ("spread", NOTHING, "one prompt only"))
        assert tested.heads == ("statistic", "value", "by chance, mean", "p-value, upper tail", "remark")
        assert tested.rows == (("mean", "0.5", "0.25", "0.01", "takes few values: p-values move in steps"),)


class TestPictures:
    def drawn(self, width: int, height: int) -> bytes:
        rng = np.random.default_rng(3)
        pixels = np.full((height, width, 4), 255, np.uint8)
        pixels[10:40, 10:60, :3] = rng.integers(0, 255, (30, 50, 3))
        pixels[50:60, :, 3] = 0
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "PNG")
        return buffer.getvalue()

    def test_they_have_a_palette_fit_the_column_and_stand_on_white_paper(self) -> None:
        png = shrink_picture(self.drawn(2000, 100))
        picture = Image.open(io.BytesIO(png))
        assert picture.mode == "P"
        assert read_png_size(png) == picture.size == (MAX_WIDTH, 80)
        colours = picture.convert("RGB").getcolors(MAX_COLOURS)
        assert colours is not None
        assert max(colours)[1] == (255, 255, 255)

    def test_what_is_no_picture_or_smaller_already_stays_as_it_is(self) -> None:
        small = shrink_picture(self.drawn(100, 80))
        assert shrink_picture(b"no picture") == b"no picture"
        assert len(shrink_picture(small)) <= len(small)
        assert read_png_size(b"no picture") is None
