"""Every page shows the same data as HTML, JSON and CSV, and nothing of the data acts."""

from __future__ import annotations

import csv
import io
import re
from contextlib import ExitStack
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest
import sqlalchemy as sa
from web_server import HOSTILE, N_PROMPTS, Get, crawl, read

from tracker.database import transaction
from tracker.queries.embeddings import load_embeddings
from tracker.queries.performance import load_performance_matrix
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.related_models.related_pairs import list_pairs, load_related
from tracker.queries.selection import Selection
from tracker.web.pages import sql_console

LABEL = f"{HOSTILE[0]}@1"
PAGES = (
    "/", "/search?q=question", "/benchmark/1", "/benchmark/1/tasks", "/benchmark/1/runs", "/benchmark/1/prompts",
    "/benchmark/1/compare", "/prompt/1", "/model/1", "/model/1/relatives", "/run/1", "/findings", "/finding/1",
    "/sql?statement=select+1",
)  # fmt: skip


def with_suffix(path: str, suffix: str) -> str:
    place, mark, query = path.partition("?")
    return f"{'/index' if place == '/' else place}.{suffix}{mark}{query}"


class Elements(HTMLParser):
    """The elements of a page, and the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attributes}


class Forms(HTMLParser):
    """The values that the forms of a page send."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.values: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in ("option", "input"):
            self.values.add(dict(attributes).get("value") or "")


class TestFormats:
    @pytest.mark.parametrize("path", PAGES)
    def test_html_json_and_csv_have_the_same_rows(self, get: Get, path: str) -> None:
        page, data = get(path), get(with_suffix(path, "json"))
        table = get(with_suffix(path, "csv"))
        assert (page.status_code, data.status_code, table.status_code) == (200, 200, 200), page.text[-2000:]
        rows = list(csv.DictReader(io.StringIO(table.text)))
        lists = [value for value in data.json().values() if isinstance(value, list) and len(value) == len(rows)]
        assert any([set(row) for row in value] == [set(row) for row in rows] for value in lists) or not rows

    def test_the_leaderboard_is_that_of_the_command(self, get: Get, hostile_store: sa.Engine) -> None:
        with transaction(hostile_store, write=False) as session:
            board = load_leaderboard(session, Selection(benchmark=LABEL), n_resamples=0)
        rows = get("/benchmark/1.json").json()["rows"]
        assert [(row["model"], row["rank"], row["mean"], row["low"], row["high"]) for row in rows] == [
            (row.model, row.rank, row.mean, row.low, row.high) for row in board.rows
        ]
        assert [row["rank_low"] for row in rows] == [board.rank_intervals[row["model"]].low for row in rows]


class TestNothingActs:
    def test_no_page_has_an_element_or_attribute_that_data_brought(self, get: Get) -> None:
        responses = crawl(get, "/", 150)
        kinds = {re.sub(r"\d+", "1", address.partition("?")[0]) for address in responses}
        assert {*(path.partition("?")[0] for path in PAGES[2:]), "/finding/1/table/models"} <= kinds
        for address, response in responses.items():
            assert response.status_code == 200, (address, response.text[-500:])
            if not response.headers["content-type"].startswith("text/html"):
                continue
            seen = Elements()
            seen.feed(response.text)
            assert seen.tags.count("script") == 2, address
            assert "img" not in seen.tags or address.startswith("/finding/"), address
            assert not {name for name in seen.attributes if name.startswith("on")} | (seen.attributes & {"style"})
            assert "\u202e" not in re.sub('value="[^"]*"', "", response.text), address
            assert "49 $49" not in response.text, address

    def test_hostile_names_are_shown_as_they_are(self, get: Get) -> None:
        text = get("/benchmark/1").text
        for name in HOSTILE[:4]:
            assert escape(name, quote=True).replace("&quot;", "&#34;").replace("&#x27;", "&#39;") in text, name

    def test_forms_send_names_as_they_are(self, get: Get) -> None:
        values = Forms(get("/benchmark/1/compare").text).values
        assert set(HOSTILE) <= values
        for name in HOSTILE:
            assert get("/benchmark/1/compare.json", params={"a": name}).status_code == 200, name


class TestBenchmark:
    def test_rows_are_filtered_and_sorted(self, get: Get) -> None:
        rows = get("/benchmark/1.json?sort=mean&order=ascending").json()["rows"]
        assert [row["mean"] for row in rows] == sorted(row["mean"] for row in rows)
        assert [row["model"] for row in get("/benchmark/1.json?model=DROP").json()["rows"]] == [HOSTILE[5]]
        assert get("/benchmark/1.json?family=none").json()["rows"] == []

    def test_the_verdict_is_computed_in_the_background(self, get: Get) -> None:
        data = read(get, "/benchmark/1/verdict.json")
        assert data["state"] == "ready"
        assert {check["topic"] for check in data["checks"]} >= {"voting rule"}

    def test_tasks_have_the_means_of_their_prompts(self, get: Get, hostile_store: sa.Engine) -> None:
        with transaction(hostile_store, write=False) as session:
            scores = load_performance_matrix(session, Selection(benchmark=LABEL))
        for row in get("/benchmark/1/tasks.json").json()["rows"]:
            for column, model in enumerate(scores.models):
                mean = scores.Q[scores.tasks == row["task"], column].mean()
                assert row[model] == pytest.approx(mean, abs=1e-12)


class TestPrompts:
    def test_statistics_are_those_of_the_scores(self, get: Get, hostile_store: sa.Engine) -> None:
        with transaction(hostile_store, write=False) as session:
            matrix = load_performance_matrix(session, Selection(benchmark=LABEL))
        data = get("/benchmark/1/prompts.json?sort=discrimination&order=descending").json()
        assert data["paging"] == {"page": 1, "n_pages": 2, "first": 1, "last": 100, "n_rows": N_PROMPTS}
        for row in data["rows"][:20]:
            place = int(np.flatnonzero(matrix.prompt_ids == row["id"])[0])
            scores, rest = matrix.Q[place], np.delete(matrix.Q, place, axis=0).mean(axis=0)
            assert row["mean"] == pytest.approx(scores.mean())
            assert row["spread"] == pytest.approx(scores.std())
            assert row["discrimination"] == pytest.approx(np.corrcoef(scores, rest)[0, 1])
        values = [row["discrimination"] for row in data["rows"]]
        assert values == sorted(values, reverse=True)

    def test_pages_cover_every_prompt_once(self, get: Get) -> None:
        keys = [
            row["id"]
            for page in (1, 2)
            for row in get(f"/benchmark/1/prompts.json?sort=mean&page={page}").json()["rows"]
        ]
        assert sorted(keys) == list(range(1, N_PROMPTS + 1))

    @pytest.mark.parametrize(
        ("wish", "n"),
        [
            ("QUESTION 77", 1),
            ('"question 7"', 1),
            ("100% of_it", N_PROMPTS),
            ("<script>", 20),
            ("\\", 0),
        ],
    )
    def test_questions_with_the_words_are_listed(self, get: Get, wish: str, n: int) -> None:
        assert get("/benchmark/1/prompts.json", params={"q": wish}).json()["paging"]["n_rows"] == n

    def test_difficulty_selects(self, get: Get) -> None:
        rows = get("/benchmark/1/prompts.json?from=0.2&to=0.4").json()["rows"]
        assert rows
        assert all(0.2 <= row["mean"] <= 0.4 for row in rows)

    def test_a_prompt_has_the_responses_of_every_model(self, get: Get) -> None:
        data = get("/prompt/5.json").json()
        assert sorted(row["model"] for row in data["responses"]) == sorted(HOSTILE)
        assert {row["answer"] for row in data["responses"]} == {HOSTILE[1]}
        assert all(row["scores"]["accuracy<b>"] in (0.0, 1.0) for row in data["responses"])

    def test_similar_prompts_have_the_largest_cosines(self, get: Get, hostile_store: sa.Engine) -> None:
        with transaction(hostile_store, write=False) as session:
            vectors = load_embeddings(session, Selection(benchmark=LABEL))
        E = vectors.E.astype(float)
        cosines = E @ E[4] / np.linalg.norm(E, axis=1) / np.linalg.norm(E[4])
        nearest = [place for place in np.argsort(-cosines) if place != 4][:5]
        similar = get("/prompt/5.json").json()["similar"]
        assert [row["id"] for row in similar] == vectors.prompt_ids[nearest].tolist()
        np.testing.assert_allclose([row["similarity"] for row in similar], cosines[nearest], atol=1e-6)


class TestModel:
    def test_relatives_are_those_of_the_command(self, get: Get, hostile_store: sa.Engine) -> None:
        with transaction(hostile_store, write=False) as session:
            pairs = list_pairs(load_related(session, Selection(benchmark=LABEL)))
        expected = [(pair.agreement, pair.excess) for pair in pairs if HOSTILE[2] in (pair.model, pair.other_model)]
        data = read(get, "/model/3/relatives.json")
        assert data["model"]["name"] == HOSTILE[2]
        assert [(row["agreement"], row["excess"]) for row in data["rows"]] == expected
        assert HOSTILE[2] not in {row["model"] for row in data["rows"]}


class TestCompare:
    def test_prompts_that_differ_are_those_of_the_scores(self, get: Get, hostile_store: sa.Engine) -> None:
        with transaction(hostile_store, write=False) as session:
            scores = load_performance_matrix(session, Selection(benchmark=LABEL))
        a, b = (scores.models.index(name) for name in (HOSTILE[2], HOSTILE[4]))
        data = get("/benchmark/1/compare.json", params={"a": HOSTILE[2], "b": HOSTILE[4]}).json()
        differing = set(scores.prompt_ids[scores.Q[:, a] != scores.Q[:, b]].tolist())
        assert {row["id"] for row in data["rows"]} == differing
        assert HOSTILE[4] in data["pairs"][0]["headline"]
        equal = np.mean(scores.Q[:, a] == scores.Q[:, b])
        assert data["agreement"][0]["shares"][HOSTILE[4]] == pytest.approx(equal)

    def test_a_run_of_the_first_model_is_compared_with_the_second(self, get: Get) -> None:
        first, second = get("/benchmark/1.json").json()["rows"][:2]
        data = get("/benchmark/1/compare.json", params={"a": f"run:{first['run_id']}"}).json()
        assert [model["run_id"] for model in data["models"]] == [first["run_id"], second["run_id"]]

    def test_unknown_and_repeated_models_are_errors(self, get: Get) -> None:
        assert get("/benchmark/1/compare", params={"a": "nobody"}).status_code == 400
        assert get("/benchmark/1/compare", params={"a": HOSTILE[0], "b": HOSTILE[0]}).status_code == 400


class TestErrors:
    @pytest.mark.parametrize(
        ("path", "status", "text"),
        [
            ("/benchmark/99", 404, "99"),
            ("/prompt/99999999999999999999", 404, "prompt"),
            ("/model/0", 404, "model"),
            ("/finding/7", 404, "7"),
            ("/finding/1/table/none", 404, "none"),
            ("/nothing", 404, "no page"),
            ("/benchmark/1?sort=color", 400, "rank"),
            ("/benchmark/1?page=9", 400, "from 1 to 1"),
            ("/benchmark/1?page=x", 400, "number"),
            ("/benchmark/1?min_coverage=nan", 400, "number"),
            ("/benchmark/1?unknown=1", 400, "Parameters:"),
            ("/benchmark/1?metric=none", 404, "accuracy"),
            ("/sql?statement=delete+from+model", 400, "read"),
        ],
    )
    def test_what_does_not_exist_is_explained(self, get: Get, path: str, status: int, text: str) -> None:
        response = get(path, headers={"accept": "text/html"})
        assert (response.status_code, text in response.text) == (status, True), response.text[-800:]
        assert "Traceback" not in response.text

    def test_an_error_of_json_is_json(self, get: Get) -> None:
        response = get("/benchmark/99.json")
        assert response.status_code == 404
        assert "99" in response.json()["problem"]


class TestSql:
    def test_rows_are_cut_at_the_limit(self, get: Get) -> None:
        data = get("/sql.json", params={"statement": "select a.id from score_count a"}).json()
        assert data["problem"]
        many = "select 1 as one from prompt a, prompt b"
        data = get("/sql.json", params={"statement": many}).json()
        assert (len(data["rows"]), data["is_cut"]) == (1000, True)

    def test_rows_are_cut_at_their_size(self, get: Get) -> None:
        large = "select hex(zeroblob(1000000)) as text from prompt"
        data = get("/sql.json", params={"statement": large}).json()
        assert (len(data["rows"]), data["is_cut"]) == (3, True)

    def test_few_statements_run_at_once(self, get: Get) -> None:
        with ExitStack() as stack:
            for _ in range(sql_console.MAX_STATEMENTS):
                stack.enter_context(sql_console._SLOTS)
            response = get("/sql.json", params={"statement": "select 1"})
            assert (response.status_code, "running already" in response.json()["problem"]) == (400, True)
        assert get("/sql.json", params={"statement": "select 1"}).status_code == 200
