"""Two commands on one evaluation: each prompt is sent once, and the prompts of one that was killed are taken over."""

from __future__ import annotations

import csv
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from forked_process import fork
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from protocol_server import MODEL, ProtocolServer, Request

import tracker
from tracker.database import connect, transaction
from tracker.evaluating.evaluation import evaluate
from tracker.evaluating.evaluation_result import EvaluationOutcome
from tracker.evaluating.plan import Plan
from tracker.evaluating.sharing.run_claims import RunClaims
from tracker.ingest.write.live import leases
from tracker.ingest.write.live.live_runs import LiveRun, ScoredResponse, open_run
from tracker.run_fields import RunFields

N_PROMPTS = 60
LEASES = "SELECT count(*) FROM evaluation_lease"
PATIENCE_S = 20.0


@pytest.fixture
def url(store_url: str, tmp_path: Path) -> str:
    """A store with the prompts of a quiz, on each engine in turn."""
    return fill(store_url, tmp_path)


@pytest.fixture
def file_url(sqlite_url: str, tmp_path: Path) -> str:
    return fill(sqlite_url, tmp_path)


def fill(url: str, folder: Path) -> str:
    with (folder / "quiz.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt_id", "question", "choices", "gold_answer"])
        choices = json.dumps(["one", "two", "six"])
        writer.writerows([f"q{n}", f"Number {n}?", choices, "ABC"[n % 3]] for n in range(N_PROMPTS))
    with tracker.open(url) as store:
        store.ingest(folder / "quiz.csv", benchmark="quiz")
    return url


def run_command(url: str, server: ProtocolServer, **options: Any) -> EvaluationOutcome:
    """Evaluate as one command does, with a connection of its own."""
    words = {name: options.pop(name) for name in ("lease_s", "report", "progress") if name in options}
    engine = connect(url)
    try:
        plan = Plan.from_options("quiz", MODEL, api_base=server.url, concurrency=2, **options)
        (outcome,) = evaluate(engine, plan, **words)
        return outcome
    finally:
        engine.dispose()


def count_requests(server: ProtocolServer) -> Counter[str]:
    """How often each prompt was sent."""
    texts = (json.dumps(request.body) for request in server.prompt_requests())
    return Counter(re.findall(r"Number \d+\?", text)[-1] for text in texts)


def query(url: str, words: str) -> Any:
    engine = connect(url)
    with transaction(engine) as session:
        result: Any = session.execute(sa.text(words))
        rows = result.fetchall() if result.returns_rows else []
    engine.dispose()
    return rows


class Gate:
    """Holds back the responses to prompts until enough requests run at once, or until it is opened."""

    def __init__(self, n_active: int) -> None:
        self.n_active, self.is_open, self.server = n_active, threading.Event(), ProtocolServer(reject=self.hold)

    def hold(self, request: Request) -> None:
        if "Number" in json.dumps(request.body):
            if self.server.n_active >= self.n_active:
                self.is_open.set()
            self.is_open.wait(PATIENCE_S)


class TestTwoCommands:
    def test_each_prompt_is_sent_once_and_both_end_with_the_whole_run(self, url: str) -> None:
        gate = Gate(n_active=3)  # more than one command sends at once, so that both are at work
        with gate.server as server, ThreadPoolExecutor(2) as commands:
            outcomes = list(commands.map(lambda _: run_command(url, server), range(2)))
        assert count_requests(server) == {f"Number {n}?": 1 for n in range(N_PROMPTS)}
        assert [outcome.is_complete for outcome in outcomes] == [True, True]
        assert outcomes[0].run_id == outcomes[1].run_id
        assert sum(outcome.n_new for outcome in outcomes) == N_PROMPTS
        assert min(outcome.n_new for outcome in outcomes) > 0
        assert outcomes[0].means == pytest.approx(outcomes[1].means, rel=1e-12)  # databases add in any order
        assert outcomes[0].usage["n_prompts"] == N_PROMPTS
        assert query(url, LEASES) == [(0,)]

    def test_a_prompt_without_an_answer_is_tried_at_most_once_by_each(self, file_url: str) -> None:
        lock, first = threading.Lock(), Counter[str]()

        def reject(request: Request) -> tuple[int, Any] | None:
            number = re.findall(r"Number \d+\?", json.dumps(request.body))
            if not number:
                return None
            gate.hold(request)
            with lock:
                first[number[-1]] += number[-1].endswith("7?")
                return (400, {"error": {"message": "not now"}}) if first[number[-1]] == 1 else None

        gate = Gate(n_active=3)
        gate.server.reject = reject
        with gate.server as server, ThreadPoolExecutor(2) as commands:
            outcomes = list(commands.map(lambda _: run_command(file_url, server, errored="wrong"), range(2)))
        assert [outcome.is_complete for outcome in outcomes] == [True, True]
        counts = count_requests(server)
        rejected = {f"Number {n}?" for n in range(7, N_PROMPTS, 10)}
        assert {text for text, n in counts.items() if n > 1} <= rejected
        assert max(counts.values()) <= 2
        n_wrong = query(file_url, "SELECT count(*) FROM answer WHERE status = 'error'")[0][0]
        assert n_wrong == sum(counts[text] == 1 for text in rejected), "those that neither command got an answer to"
        assert query(file_url, "SELECT count(DISTINCT prompt_id) FROM score") == [(N_PROMPTS,)]


class TestStopped:
    def test_the_prompts_of_a_killed_command_are_claimed_by_the_next(self, url: str, tmp_path: Path) -> None:
        gate = Gate(n_active=1_000)
        with gate.server as server:
            killed = fork(lambda: run_command(url, server), tmp_path / "out.txt")
            deadline = time.monotonic() + PATIENCE_S
            while len(server.prompt_requests()) < 2 and time.monotonic() < deadline:
                time.sleep(0.005)
            killed.kill()
            killed.wait()
            gate.is_open.set()
            n_leased = query(url, LEASES)[0][0]
            outcome = run_command(url, server)
        assert n_leased > 0
        assert (outcome.is_complete, outcome.n_new) == (True, N_PROMPTS)
        counts = count_requests(server)
        assert len(counts) == N_PROMPTS
        assert sum(counts.values()) == N_PROMPTS + 2, "only those on their way when it was killed are sent again"
        assert query(url, LEASES) == [(0,)]

    def test_those_of_another_machine_are_claimed_when_their_lease_expires(self, url: str) -> None:
        reported: list[str] = []
        with ProtocolServer() as server:
            with pytest.raises(KeyboardInterrupt):
                run_command(url, server, progress=interrupt)
            assert query(url, LEASES) == [(0,)], "an interrupted command leaves none"
            columns = "INSERT INTO evaluation_lease (run_id, prompt_id, holder, expires)"
            query(url, f"{columns} SELECT 1, id, 'elsewhere/1/x', {time.time() + 3_600} FROM prompt WHERE id <= 5")

            def expire(text: str) -> None:
                reported.append(text)
                if "another command" in text:
                    query(url, "UPDATE evaluation_lease SET expires = 0")

            outcome = run_command(url, server, lease_s=0.4, report=expire)
        assert [text for text in reported if "another command" in text] == [
            "another command evaluates 5 prompts of this run; waiting for it"
        ]
        assert (outcome.is_complete, outcome.n_new) == (True, N_PROMPTS)
        assert set(count_requests(server).values()) == {1}

    def test_a_command_that_lost_its_lease_stores_nothing_twice(self, file_url: str) -> None:
        engine = connect(file_url)
        run = make_run(engine)
        with RunClaims(engine, run.id, n_trials=1) as slow, RunClaims(engine, run.id, n_trials=1) as quick:
            assert slow.claim([1, 2, 3], together=True) == [1, 2, 3]
            assert quick.claim([3, 4], together=True) == []
            assert quick.claim([3, 4], together=False) == [4]
            query(file_url, "UPDATE evaluation_lease SET expires = 0 WHERE prompt_id = 3")
            assert quick.claim([3], together=True) == [3]
            quick.store([scored(3, 1.0)], {3})
            slow.store([scored(2, 1.0), scored(3, 0.0)], {2, 3})
            assert (slow.evaluated, quick.evaluated) == ({2}, {3})
            assert slow.claim([3, 1], together=True) == [1]
            assert 3 in slow.stored
        assert query(file_url, "SELECT prompt_id, value FROM score ORDER BY 1") == [(2, 1.0), (3, 1.0)]
        engine.dispose()

    def test_leases_are_renewed_while_it_computes(self, file_url: str) -> None:
        engine = connect(file_url)
        with RunClaims(engine, make_run(engine).id, n_trials=1, lease_s=0.2) as claims:
            claims.claim([1], together=True)
            first = query(file_url, "SELECT expires FROM evaluation_lease")
            deadline = time.monotonic() + PATIENCE_S
            while query(file_url, "SELECT expires FROM evaluation_lease") == first and time.monotonic() < deadline:
                time.sleep(0.01)
            assert query(file_url, "SELECT expires FROM evaluation_lease") > first
        engine.dispose()


def interrupt(n_done: int, *_: int) -> None:
    """Stop before anything is stored, as Ctrl-C does."""
    raise KeyboardInterrupt


def make_run(engine: sa.Engine) -> LiveRun:
    with transaction(engine, exclusive=True) as session:
        return open_run(session, benchmark_id=1, model="m", fields=RunFields(condition="full"), identity="0" * 64)


def scored(prompt_id: int, value: float) -> ScoredResponse:
    return ScoredResponse(prompt_id=prompt_id, scores={"accuracy": value})


@pytest.fixture
def empty_leases(file_url: str) -> Iterator[Callable[[], tuple[sa.Engine, int]]]:
    """Deletes all leases, for each example of a property."""
    engine = connect(file_url)
    run = make_run(engine)

    def clear() -> tuple[sa.Engine, int]:
        with transaction(engine) as session:
            session.execute(sa.text("DELETE FROM evaluation_lease"))
        return engine, run.id

    yield clear
    engine.dispose()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["claim", "claim some", "renew", "release"]),
        st.integers(0, 2),
        st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True),
        st.sampled_from([0.0, 3.0, 11.0]),
    ),
    max_size=12,
)


class TestAgainstReference:
    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(steps=STEPS)
    def test_claims_are_those_of_a_dictionary_of_owners(self, steps: Any, empty_leases: Any) -> None:
        """The slow, obvious version: number owns each prompt, and until when."""
        engine, run_id = empty_leases()
        holders = [leases.LeaseHolder(run_id=run_id, name=f"m/1/{n}", n_trials=1, seconds=10.0) for n in range(3)]
        owners: dict[int, tuple[int, float]] = {}
        clock = 0.0
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(leases, "_read_clock", lambda session: clock)
            for action, number, requested, elapsed in steps:
                clock += elapsed
                free = [at for at in requested if at not in owners or owners[at][0] == number or owners[at][1] <= clock]
                with transaction(engine, exclusive=True) as session:
                    if action.startswith("claim"):
                        together = action == "claim"
                        expected = [] if together and len(free) < len(requested) else free
                        state = leases.claim_prompts(session, holders[number], requested, together=together)
                        assert list(state.free) == expected
                        owners |= dict.fromkeys(expected, (number, clock + 10.0))
                    elif action == "renew":
                        leases.renew_leases(session, holders[number])
                        owners |= {at: (number, clock + 10.0) for at, (owner, _) in owners.items() if owner == number}
                    else:
                        leases.release_leases(session, holders[number], requested)
                        owners = {at: o for at, o in owners.items() if not (at in requested and o[0] == number)}
                    leased = leases.find_leased(session, holders[number], range(1, 6))
                    assert leased == {at for at, (owner, _) in owners.items() if owner == number}
