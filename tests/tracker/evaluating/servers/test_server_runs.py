"""`suffrage evaluate --api-base`: runs of a model behind a server, whatever the server does wrong."""

from __future__ import annotations

import csv
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from protocol_server import MODEL, Faults, ProtocolServer

import tracker
from tracker.cli import suffrage
from tracker.errors import SuffrageError

N_PROMPTS = 30
KEY = "sk-never-to-be-seen-0123456789"


@pytest.fixture
def url(sqlite_url: str, tmp_path: Path) -> str:
    with (tmp_path / "quiz.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt_id", "question", "choices", "gold_answer"])
        writer.writerows([f"q{n}", f"Number {n}?", json.dumps(["one", "two", "six"]), "ABC"[n % 3]] for n in range(30))
    with tracker.open(sqlite_url) as store:
        store.ingest(tmp_path / "quiz.csv", benchmark="quiz")
    return sqlite_url


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits between tries."""
    from tracker.evaluating.servers import server_model
    from tracker.evaluating.servers.rate_limiter import BackOff

    real = server_model.open_server

    def open_quickly(model: str, settings: Any, **options: Any) -> Any:
        back_off = BackOff(tries=settings.tries, first_s=0.001, max_s=0.01)
        return real(model, settings, back_off=back_off, **options)

    monkeypatch.setattr(server_model, "open_server", open_quickly)


def run_evaluate(server: ProtocolServer, url: str, *more: object) -> Result:
    words = ("evaluate", "quiz", "--model", MODEL, "--api-base", server.url, "--timeout", 2, "--database", url, *more)
    result = CliRunner().invoke(suffrage, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit | SuffrageError):
        raise result.exception
    return result


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    with closing(sa.create_engine(url).raw_connection()) as connection:
        return connection.cursor().execute(query).fetchall()


SCORES = "SELECT run_id, metric_id, prompt_id, value FROM score ORDER BY 1, 2, 3"
ANSWERS = "SELECT run_id, prompt_id, trial, text, probability FROM answer ORDER BY 1, 2, 3"


@pytest.mark.usefixtures("quick")
class TestFaults:
    def test_every_prompt_is_answered_once_as_by_a_server_without_faults(self, url: str, tmp_path: Path) -> None:
        sound_url = f"sqlite:///{tmp_path / 'sound.db'}"
        Path(tmp_path / "sound.db").write_bytes(Path(url.removeprefix("sqlite:///")).read_bytes())
        with ProtocolServer() as sound, ProtocolServer(faults=Faults(share=0.3, seed=5)) as server:
            assert run_evaluate(sound, sound_url, "--tries", 12).exit_code == 0
            done = run_evaluate(server, url, "--tries", 12, "--timeout", 0.2)
        assert done.exit_code == 0, done.output
        assert "Some requests were retried" in done.stderr
        assert rows(url, SCORES) == rows(sound_url, SCORES)
        assert rows(url, ANSWERS) == rows(sound_url, ANSWERS)
        assert len(rows(url, ANSWERS)) == N_PROMPTS

    def test_the_same_command_retries_what_got_no_answer(self, url: str) -> None:
        def reject(request: Any) -> tuple[int, Any] | None:
            lost = broken and any(f"Number {n}?" in json.dumps(request.body) for n in (3, 17))
            return (400, {"error": {"message": "cannot do that one"}}) if lost else None

        broken = True
        with ProtocolServer(reject=reject) as server:
            first = run_evaluate(server, url)
            assert first.exit_code == 1
            assert "2 prompts have no answer. Run the command again to retry them" in first.stderr
            assert "cannot do that one" in first.stderr
            n_before = len(server.requests)
            broken = False
            again = run_evaluate(server, url)
            assert again.exit_code == 0, again.output
            assert "2 of 30 prompts evaluated now" in again.stdout
            assert len(server.requests) - n_before <= 4
        assert len(rows(url, ANSWERS)) == N_PROMPTS
        assert rows(url, "SELECT count(*), min(status) FROM run") == [(1, "complete")]

    @pytest.mark.parametrize(("errored", "n"), [("missing", 29), ("wrong", 30)])
    def test_it_can_be_ended_without_them(self, url: str, errored: str, n: int) -> None:
        def reject(request: Any) -> tuple[int, Any] | None:
            return (400, {"error": {"message": "no"}}) if "Number 3?" in json.dumps(request.body) else None

        with ProtocolServer(reject=reject) as server:
            ended = run_evaluate(server, url, "--errored", errored)
        assert ended.exit_code == 0, ended.output
        scored = rows(
            url, "SELECT prompt_id, value FROM score JOIN metric ON metric.id = metric_id WHERE name = 'accuracy'"
        )
        assert len(scored) == n
        assert rows(url, "SELECT status FROM run") == [("complete",)]


@pytest.mark.usefixtures("quick")
class TestKeyAndCost:
    def test_the_key_is_used_and_nowhere_kept_and_cost_is_counted(
        self, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MY_KEY", KEY)
        prices = ("--price-read", 1000000, "--price-written", 2000000)
        with ProtocolServer(key=KEY) as server:
            done = run_evaluate(server, url, "--key-env", "MY_KEY", *prices)
            assert done.exit_code == 0, done.output
            monkeypatch.setenv("MY_KEY", f"{KEY}wrong")
            refused = run_evaluate(server, url, "--key-env", "MY_KEY", "--again")
        assert refused.exit_code == 1
        usage = json.loads(rows(url, "SELECT settings FROM run")[0][0])["usage"]
        assert usage["cost"] == usage["tokens_read"] + 2 * usage["tokens_written"] > 0
        everything = Path(url.removeprefix("sqlite:///")).read_bytes() + (done.output + refused.output).encode()
        assert KEY.encode() not in everything
        assert KEY not in str(refused.exception)
