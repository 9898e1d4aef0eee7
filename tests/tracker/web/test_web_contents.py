"""What the pages say: verdicts first, numbers of the commands, and the questions of a newcomer in few clicks."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser
from itertools import combinations

import numpy as np
import pytest
import sqlalchemy as sa
from statsmodels.stats.multitest import multipletests
from web_server import HOSTILE, Get, read

from tracker.database import transaction
from tracker.queries.comparing.named_pair import select_named_pair
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.pipeline import compute_report
from tracker.recording.verdict.recorded_lines import find_recorded_verdict
from tracker.web.templates_environment import keep_numbers_whole

LABEL = f"{HOSTILE[0]}@1"


class Links(HTMLParser):
    """The links of a page with their texts, its first sentence, and what it asks the server for later."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[list[str]] = []
        self.sections: list[str] = []
        self.lead = ""
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if tag == "a":
            self.links.append([values.get("href") or "", ""])
            self._in = "a"
        if tag == "p" and "lead" in (values.get("class") or ""):
            self._in = "lead"
        if address := values.get("hx-get"):
            self.sections.append(address)

    def handle_endtag(self, tag: str) -> None:
        self._in = "" if tag in ("a", "p") else self._in

    def handle_data(self, data: str) -> None:
        if self._in == "a":
            self.links[-1][1] += data
        elif self._in == "lead":
            self.lead += data

    def follow(self, get: Get, *, starts: str = "", text: str = "") -> tuple[Links, str]:
        """Click the first link with such an address and text."""
        address = next(href for href, label in self.links if href.startswith(starts) and text in label)
        response = get(address)
        assert response.status_code == 200
        return Links(response.text), response.text


class TestQuestions:
    def test_is_number_one_safe_in_one_click(self, get: Get) -> None:
        page, _ = Links(get("/").text).follow(get, starts="/benchmark/1", text=LABEL)
        assert "first by" in page.lead
        assert any(section.startswith("/benchmark/1/verdict") for section in page.sections)

    def test_is_the_new_checkpoint_better_in_one_click(self, get: Get) -> None:
        page, _ = Links(get("/").text).follow(get, starts="/benchmark/1/compare")
        newest = read(get, "/index.json")["runs"][0]["model"]
        assert newest in page.lead.replace("\ufffd", "\u202e")
        assert "better" in page.lead or "ahead" in page.lead

    def test_what_flipped_and_what_both_answered_in_two_clicks(self, get: Get) -> None:
        benchmark, _ = Links(get("/").text).follow(get, starts="/benchmark/1", text=LABEL)
        compared, text = benchmark.follow(get, text="Compare models")
        assert "Prompts with different scores" in text
        assert any(href.startswith("/prompt/") for href, _ in compared.links)
        row = read(get, "/benchmark/1/compare.json")["rows"][0]
        assert row["answers"] == [HOSTILE[1], HOSTILE[1]]


class TestVerdictFirst:
    @pytest.mark.parametrize(
        "path",
        ["/", "/benchmark/1", "/benchmark/1/tasks", "/benchmark/1/history", "/benchmark/1/runs", "/benchmark/1/prompts",
         "/benchmark/1/compare", "/prompt/1", "/model/1", "/run/1", "/run/1/responses", "/findings", "/finding/1"],
    )  # fmt: skip
    def test_every_page_begins_with_a_sentence(self, get: Get, path: str) -> None:
        assert Links(get(path).text).lead.strip().endswith(".")

    def test_the_first_page_has_the_leader_of_each_benchmark(self, get: Get) -> None:
        [row] = read(get, "/index.json")["benchmarks"]
        assert row["lead"] == read(get, "/benchmark/1.json")["headline"]

    def test_a_recorded_verdict_is_shown_while_it_is_current(self, get: Get) -> None:
        data = read(get, "/benchmark/1/verdict.json")
        assert data["recorded"]["id"] == 1
        assert data["recorded"]["stale"] == ""

    def test_a_recorded_verdict_without_leader_and_choices_has_the_default_ones(self, hostile_store: sa.Engine) -> None:
        default, common = Selection(benchmark=LABEL), Selection(benchmark=LABEL, missing="common")
        with transaction(hostile_store) as session, session.begin_nested() as change:
            board = load_leaderboard(session, common, n_resamples=0)
            assert find_recorded_verdict(session, common, board) is None
            plain = {"benchmark": LABEL, "metric": "accuracy<b>", "condition": "full", "variant": ""}
            session.execute(sa.update(tables.finding).values(leader=None, selection=plain))
            rows = [
                find_recorded_verdict(session, selection, load_leaderboard(session, selection, n_resamples=0))
                for selection in (default, common)
            ]
            change.rollback()
        assert [row and row.id for row in rows] == [1, None]

    @pytest.mark.parametrize("path", ["/model/1", "/benchmark/1/history"])
    def test_the_first_line_comes_with_the_part_that_loads_itself_again(self, get: Get, path: str) -> None:
        text = get(path).text
        section = text[text.index('<section id="') : text.index("</section>")]
        assert text.count('class="lead"') == section.count('class="lead"')
        read(get, f"{path}.json")
        text = get(path).text
        section = text[text.index('<section id="') : text.index("</section>")]
        assert Links(section).lead.startswith(("Rank", "No model has two runs"))
        assert text.count('class="lead"') == 1


class TestBenchmark:
    def test_present_choices_have_a_link_that_removes_them(self, get: Get) -> None:
        data = read(get, "/benchmark/1.json", missing="worst")
        choices = {row["name"]: row for row in data["choices"]}
        assert (choices["missing scores"]["value"], choices["missing scores"]["parameter"]) == ("worst", "missing")
        page = Links(get("/benchmark/1?missing=worst&model=DROP").text)
        removals = [href for href, text in page.links if "remove" in text]
        assert removals == ["/benchmark/1?model=DROP", "/benchmark/1?missing=worst"]
        default = {row["name"]: row["parameter"] for row in read(get, "/benchmark/1.json")["choices"]}
        assert default["missing scores"] == ""

    def test_the_best_of_each_task_is_marked(self, get: Get) -> None:
        data = read(get, "/benchmark/1/tasks.json")
        for row, best in zip(data["rows"], data["best"], strict=True):
            values = {name["name"]: row[name["name"]] for name in data["models"]}
            assert best == [name for name, value in values.items() if value == max(values.values())]


class TestModel:
    def test_ranks_are_those_of_the_leaderboard(self, get: Get, hostile_store: sa.Engine) -> None:
        with transaction(hostile_store, write=False) as session:
            board = load_leaderboard(session, Selection(benchmark=LABEL), n_resamples=0)
        row = next(row for row in board.rows if row.model == HOSTILE[2])
        interval = board.rank_intervals[HOSTILE[2]]
        [standing] = read(get, "/model/3.json")["standings"]
        assert [standing[name] for name in ("rank", "mean", "low", "high")] == [row.rank, row.mean, row.low, row.high]
        assert (standing["rank_low"], standing["rank_high"]) == (interval.low, interval.high)


class TestCompare:
    def test_the_verdict_is_that_of_the_command(self, get: Get, hostile_store: sa.Engine) -> None:
        names = (HOSTILE[2], HOSTILE[4])
        with transaction(hostile_store, write=False) as session:
            pair, (a, b) = select_named_pair(session, Selection(benchmark=LABEL), names)
        report = compute_report(hostile_store, "comparison", pair, {"model_a": a, "model_b": b})
        data = read(get, "/benchmark/1/compare.json", a=a, b=b)
        assert data["headline"] == report.summary.headline
        assert data["pairs"][0]["tasks"] == report.tables["tasks"].to_pylist()
        assert data["pairs"][0]["metrics"]["difference"] == report.finding.metrics["difference"]
        # runs are the same as the models that they are of
        runs = {row["model"]: row["id"] for row in read(get, "/benchmark/1/runs.json")["rows"]}
        single = read(get, "/benchmark/1/compare.json", a=f"run:{runs[a]}", b=f"run:{runs[b]}")
        assert single["pairs"][0]["metrics"] == data["pairs"][0]["metrics"]
        assert [row["id"] for row in single["rows"]] == [row["id"] for row in data["rows"]]

    def test_prompts_can_be_those_on_which_one_model_is_better(self, get: Get) -> None:
        every = read(get, "/benchmark/1/compare.json")
        parts = [read(get, "/benchmark/1/compare.json", better=letter) for letter in "ab"]
        assert [part["paging"]["n_rows"] for part in parts] == [every["counts"]["a"], every["counts"]["b"]]
        assert every["paging"]["n_rows"] == sum(part["paging"]["n_rows"] for part in parts)
        assert all(row["scores"][0] > row["scores"][1] for row in parts[0]["rows"])

    def test_every_pair_of_five_models_is_compared(self, get: Get) -> None:
        chosen = dict(zip("abcde", HOSTILE, strict=False))
        data = read(get, "/benchmark/1/compare.json", **chosen)
        pairs = list(combinations(HOSTILE[:5], 2))
        assert [(pair["first"], pair["second"]) for pair in data["pairs"]] == pairs
        assert all(len(row["pairs"]) == 4 for row in data["tasks"])
        single = read(get, "/benchmark/1/compare.json", a=HOSTILE[2], b=HOSTILE[4])
        assert data["pairs"][pairs.index((HOSTILE[2], HOSTILE[4]))]["metrics"] == single["pairs"][0]["metrics"]
        _, adjusted, *_ = multipletests([pair["metrics"]["pvalue"] for pair in data["pairs"]], method="holm")
        np.testing.assert_allclose([pair["holm"] for pair in data["pairs"]], adjusted)
        best = max(data["models"], key=lambda model: model["mean"])["title"]
        assert data["headline"].startswith(f"{best} has the best mean of these 5; {(adjusted <= 0.05).sum()} of 10 ")
        page = get("/benchmark/1/compare", params=chosen).text
        assert page.count(">these two</a>") == 10


class TestRun:
    def test_responses_are_in_parts_and_link_to_their_prompts(self, get: Get) -> None:
        data = read(get, "/run/1/responses.json", sort="score", order="descending")
        assert data["paging"]["n_pages"] == 2
        scores = [row["score"] for row in data["rows"]]
        assert scores == sorted(scores, reverse=True)
        assert {row["answer"] for row in data["rows"]} == {HOSTILE[1]}
        assert 'href="/prompt/1"' in get("/run/1/responses").text
        wrong = read(get, "/run/1/responses.json", to="0")
        assert {row["score"] for row in wrong["rows"]} == {0.0}


class TestPrompts:
    def test_disagreement_selects(self, get: Get) -> None:
        rows = read(get, "/benchmark/1/prompts.json", disagreement="0.45")["rows"]
        assert rows
        assert all(row["spread"] >= 0.45 for row in rows)


class TestFormats:
    def test_all_rows_of_a_long_list_come_at_once(self, get: Get) -> None:
        every = read(get, "/benchmark/1/prompts.json", page="all")
        assert (len(every["rows"]), every["paging"]["n_pages"]) == (120, 1)

    def test_spreadsheets_get_no_formula(self, get: Get) -> None:
        plain = get("/sql.csv", params={"statement": "SELECT '=1+1' AS a, -1 AS b"}).text
        assert list(csv.DictReader(io.StringIO(plain))) == [{"a": "=1+1", "b": "-1"}]
        options = {"statement": "SELECT '=1+1' AS a, -1 AS b", "for_spreadsheets": "yes"}
        safe = get("/sql.csv", params=options).text
        assert safe.startswith("\ufeff")
        assert list(csv.DictReader(io.StringIO(safe[1:]))) == [{"a": "'=1+1", "b": "-1"}]


def test_a_command_that_repeats_a_finding_has_its_parameters(get: Get) -> None:
    command = read(get, "/finding/1.json")["finding"]["command"]
    assert command.startswith("suffrage analyze rank-intervals ")
    assert "--n-resamples 50" in command


def test_no_line_of_a_sentence_ends_within_a_number() -> None:
    assert keep_numbers_whole("<b> by 0.18, p = 2.6e-273).") == (
        '&lt;b&gt; by 0.18, p = <span class="short">2.6e-273</span>).'
    )
