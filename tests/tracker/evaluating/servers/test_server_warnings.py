"""What a user is told of an evaluation beside its numbers: by a server, since that takes no model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from protocol_server import MODEL, ProtocolServer

import tracker
from tracker.errors import SelectionError, ServerError
from tracker.evaluating.evaluation import evaluate
from tracker.evaluating.plan import Plan
from tracker.evaluating.servers.protocol import Usage, get_usage
from tracker.evaluating.warnings import format_price, list_option_warnings

CHAT = frozenset({"chat", "max_tokens"})


@pytest.fixture(scope="module")
def filled(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("remarks")
    path = folder / "store.db"
    path.write_bytes(sqlite_template.read_bytes())
    rows = ({"id": str(n), "text": f"Which is {n}?", "choices": ["one", "two"], "answer": "A"} for n in range(6))
    (folder / "quiz.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with tracker.open(f"sqlite:///{path}") as store:
        store.prompts_from("quiz", folder / "quiz.jsonl")
    return path.read_bytes()


@pytest.fixture
def url(filled: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "store.db").write_bytes(filled)
    return f"sqlite:///{tmp_path / 'store.db'}"


def evaluated(url: str, server: ProtocolServer, **options: Any) -> tuple[Any, list[str]]:
    reported: list[str] = []
    with tracker.open(url) as store:
        plan = Plan.from_options("quiz", MODEL, api_base=server.url, tries=1, **options)
        (outcome,) = evaluate(store.engine, plan, report=reported.append)
    return outcome, [*reported, *outcome.warnings]


class TestWarnings:
    def test_answers_off_which_nothing_can_be_read_are_counted(self, url: str) -> None:
        with ProtocolServer(offers=CHAT) as server:
            outcome, warnings = evaluated(url, server)
        assert outcome.means == {"accuracy": 0.0}
        assert "6 of 6 answers are empty or could not be extracted, and score 0" in warnings

    def test_a_trial_is_warned_that_leaderboards_keep_the_whole_run(self, url: str) -> None:
        with ProtocolServer() as server:
            whole, warnings = evaluated(url, server)
            assert not any("leaderboards" in warning for warning in warnings)
            trial, warnings = evaluated(url, server, limit=2)
            assert f"leaderboards use run {whole.run_id} of the same model (6 prompts)" in " ".join(warnings)
            assert f"`suffrage runs hide {whole.run_id}`" in " ".join(warnings)
            with tracker.open(url) as store:
                assert [row.run_id for row in store.leaderboard("quiz", metric="accuracy").rows] == [whole.run_id]
            _, warnings = evaluated(url, server, limit=2, method="generation")
            assert not any("leaderboards" in warning for warning in warnings), "another metric is another leaderboard"
            second, warnings = evaluated(url, server)
            assert second.run_id == whole.run_id
            assert trial.run_id != whole.run_id
            assert not any("leaderboards" in warning for warning in warnings)

    def test_the_cost_of_a_server_is_reported_where_prices_are_known(self, url: str) -> None:
        with ProtocolServer() as server:
            outcome, warnings = evaluated(url, server, price_read=2.0, price_written=0.5)
        cost = (2 * outcome.usage["tokens_read"] + outcome.usage["tokens_written"] / 2) / 1e6
        assert outcome.usage["cost"] == pytest.approx(cost)
        assert f"cost {format_price(cost)} at the given prices" in " ".join(warnings)

    @pytest.mark.parametrize("n_read", [-5, 10**30, "12", None])
    def test_a_count_of_tokens_that_cannot_be_is_estimated(self, n_read: Any) -> None:
        counted = get_usage({"usage": {"prompt_tokens": n_read, "completion_tokens": 1}}, sent=400, received=4)
        assert counted == Usage(n_read=100, n_written=1, is_estimated=True)

    def test_a_run_that_was_ended_without_an_answer_was_not_all_stored_before(self, url: str) -> None:
        with ProtocolServer(reject=lambda r: (400, {"error": "no"}) if "is 3?" in str(r.body) else None) as server:
            assert "5 of 6 prompts evaluated now" in evaluated(url, server)[0].summary()
            ended = evaluated(url, server, errored="missing")[0]
        assert ended.is_complete
        assert "0 of 6 prompts evaluated now" in ended.summary()

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"metrics": ("f1",), "temperature": 0.5}, "--metric, --temperature ignored: --method letters"),
            ({"api": "chat"}, "--api ignored: without --api-base"),
            ({"api_base": "http://x/v1", "dtype": "float16"}, "--dtype ignored: with --api-base"),
            ({"api_base": "http://x/v1", "judge": "m"}, "--judge ignored: --method letters"),
            ({"price_read": 1.0, "few_shot": 2}, None),
        ],
    )
    def test_options_that_change_nothing_are_named(self, options: dict[str, Any], expected: str | None) -> None:
        reported = list_option_warnings(Plan.from_options("quiz", "m", **options), "letters")
        assert [sentence[: len(expected or "")] for sentence in reported] == ([expected] if expected else [])

    def test_small_costs_are_not_nothing(self) -> None:
        assert [format_price(cost) for cost in (0, 0.0018, 0.5, 1234.5)] == ["0.00", "0.0018", "0.5", "1,234.50"]


class TestErrors:
    def test_the_error_of_a_chat_server_does_not_blame_the_model(self, url: str) -> None:
        with ProtocolServer(offers=CHAT) as server, pytest.raises(ServerError, match="Use --method letters"):
            evaluated(url, server, method="loglikelihood")

    def test_the_error_of_a_failing_server_does_not_blame_the_model(self, url: str) -> None:
        with (
            ProtocolServer(reject=lambda _: (500, {"error": {"message": "boom"}})) as server,
            pytest.raises(ServerError, match=r"fails on every request \(.*boom.*Check its log"),
        ):
            evaluated(url, server)

    def test_an_empty_address_is_an_error(self) -> None:
        with pytest.raises(SelectionError, match="check that the variable is set"):
            Plan.from_options("quiz", "m", api_base="")
