"""Whatever a server does wrong, every prompt is answered once: none lost, none twice, none swapped."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protocol_server import EVERYTHING, MODEL, Faults, ProtocolServer, every

from tracker.errors import ServerError
from tracker.evaluating.plan_settings import ServerSettings
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response, Sampling
from tracker.evaluating.servers.rate_limiter import BackOff, RateLimiter, parse_retry_after
from tracker.evaluating.servers.server_model import ServerModel, open_server

Open = Callable[..., ServerModel]
QUICK = BackOff(tries=12, first_s=0.001, max_s=0.01)


def nothing_stored(prompt_id: int) -> bool:
    return False


def request_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("request-")]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C works, which it does not in a process that was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def contents(responses: list[Response]) -> dict[tuple[int, int], Any]:
    """Each response once, by what the model did."""
    contents_by_key = {
        (r.prompt_id, r.trial): (r.text, None if r.logprobs is None else r.logprobs.tobytes(), r.n_examples, r.error)
        for r in responses
    }
    assert len(contents_by_key) == len(responses)
    return contents_by_key


class TestFaults:
    @pytest.mark.parametrize("method", ["letters", "loglikelihood", "generation"])
    def test_with_three_in_ten_requests_failing_all_are_answered_once_as_without_faults(
        self, prompts: list[RenderedPrompt], opened: Open, method: str
    ) -> None:
        sampling = Sampling(max_tokens=6, temperature=1.0, n_trials=2)
        prompts = prompts[:: 2 if method == "loglikelihood" else 1]
        with ProtocolServer() as server:
            sound = every(opened(server, method, sampling=sampling).respond(prompts, nothing_stored))
        with ProtocolServer(faults=Faults(share=0.3, seed=len(method)), stall_s=0.25) as server:
            backend = opened(server, method, sampling=sampling, timeout=0.15)
            faulty = every(backend.respond(prompts, nothing_stored))
            met = {request.fault for request in server.requests} - {""}
        assert contents(faulty) == contents(sound)
        assert all(response.error == "" for response in faulty)
        assert len(met) >= 6
        assert "Some requests were retried (HTTP 429: " in " ".join(backend.list_warnings())

    @settings(max_examples=8, deadline=None)
    @given(share=st.floats(0, 0.6), seed=st.integers(0, 10**6), concurrency=st.integers(1, 9), n=st.integers(0, 20))
    def test_so_they_are_for_any_schedule_and_any_number_of_threads(
        self, share: float, seed: int, concurrency: int, n: int
    ) -> None:
        sent_prompts = [RenderedPrompt(prompt_id=7 * at, question=f"{at}?", options=("A", "B")) for at in range(n)]
        kinds = ("429", "500", "503", "cut", "closed", "broken", "empty")
        with ProtocolServer(faults=Faults(share=share, seed=seed, kinds=kinds)) as server:
            settings = ServerSettings(api_base=server.url, concurrency=concurrency, key_env="NO_KEY")
            backend = open_server(MODEL, settings, method="generation", back_off=replace(QUICK, tries=60))
            faulty = contents(every(backend.respond(sent_prompts, nothing_stored)))
            server.faults = Faults()
            assert faulty == contents(every(backend.respond(sent_prompts, nothing_stored)))
        assert len(faulty) == n

    @pytest.mark.soak
    @pytest.mark.parametrize("seed", range(20))
    def test_so_they_are_a_thousand_times(self, opened: Open, seed: int) -> None:
        sent_prompts = [RenderedPrompt(prompt_id=at, question=f"{at}?", options=("A", "B", "C")) for at in range(1_000)]
        with ProtocolServer(faults=Faults(share=0.3, seed=seed), stall_s=0.1) as server:
            backend = opened(server, timeout=0.08, concurrency=16, back_off=replace(QUICK, tries=40))
            faulty = contents(every(backend.respond(sent_prompts, nothing_stored)))
            server.faults = Faults()
            assert faulty == contents(every(opened(server).respond(sent_prompts, nothing_stored)))

    @pytest.mark.parametrize("kind", ["429", "500", "503", "stall", "cut", "closed", "broken", "empty"])
    def test_after_so_many_tries_a_prompt_has_an_error_and_others_go_on(
        self, prompts: list[RenderedPrompt], opened: Open, kind: str
    ) -> None:
        with ProtocolServer(stall_s=1.0) as server:
            timeout = 0.5 if kind == "stall" else 30.0  # so that a busy machine is not taken for a fault
            backend = opened(server, back_off=replace(QUICK, tries=3), timeout=timeout, concurrency=1)
            server.faults = _Only("Number 5?", kind, server)
            responses = {
                response.prompt_id: response for response in every(backend.respond(prompts[:10], nothing_stored))
            }
        assert len(responses) == 10
        assert [response.prompt_id for response in responses.values() if response.error] == [prompts[5].prompt_id]
        assert "did not answer after 3 attempts" in responses[prompts[5].prompt_id].error
        assert sum("Number 5?" in str(request.body) for request in server.prompt_requests()) == 3

    def test_a_rejected_prompt_is_sent_once_and_others_go_on(self, prompts: list[RenderedPrompt], opened: Open) -> None:
        def reject(request: Any) -> tuple[int, Any] | None:
            bad = "Number 7?" in str(request.body)
            return (400, {"error": {"message": "content is not allowed"}}) if bad else None

        with ProtocolServer(reject=reject) as server:
            responses = every(opened(server).respond(prompts, nothing_stored))
        failed = [response for response in responses if response.error]
        assert [(response.prompt_id, response.error) for response in failed] == [
            (prompts[7].prompt_id, "The server rejects the request: content is not allowed (HTTP 400).")
        ]
        assert len(responses) == len(server.prompt_requests()) == 60

    def test_a_prompt_without_options_has_an_error(self, opened: Open) -> None:
        with ProtocolServer() as server:
            (response,) = every(opened(server).respond([RenderedPrompt(prompt_id=1, question="Why?")], nothing_stored))
        assert "no options" in response.error


class TestStopping:
    def test_a_server_that_answers_nothing_is_not_hammered(self, prompts: list[RenderedPrompt], opened: Open) -> None:
        with ProtocolServer() as server:
            backend = opened(server, back_off=replace(QUICK, tries=2), concurrency=2)
            server.faults = Faults(share=1.0, kinds=("500",))
            with pytest.raises(ServerError, match=r"10 consecutive prompts got no answer.*Run the same command again"):
                every(backend.respond(prompts, nothing_stored))
        assert len(server.prompt_requests()) < 60

    def test_so_is_a_server_that_rejects_the_first_ten(self, prompts: list[RenderedPrompt], opened: Open) -> None:
        with ProtocolServer() as server:
            backend = opened(server, concurrency=1)
            server.reject = lambda request: (400, {"error": "no"})
            with pytest.raises(ServerError, match="10 consecutive prompts"):
                every(backend.respond(prompts, nothing_stored))
        assert 10 <= len(server.prompt_requests()) < 60

    def test_when_it_stops_halfway_all_answers_are_handed_on_and_the_rest_waits(
        self, prompts: list[RenderedPrompt], opened: Open
    ) -> None:
        got: list[Response] = []
        with ProtocolServer() as server:
            backend = opened(server, back_off=replace(QUICK, tries=2), concurrency=1)
            server.reject = lambda request: (503, {}) if len(server.requests) > 31 else None
            with pytest.raises(ServerError, match="10 consecutive prompts"):
                got.extend(response for portion in backend.respond(prompts, nothing_stored) for response in portion)
            assert len(got) == 30
            assert not any(response.error for response in got)
            server.reject = lambda request: None
            done = {response.prompt_id for response in got}
            got += every(backend.respond(prompts, done.__contains__))
            assert contents(got) == contents(every(backend.respond(prompts, nothing_stored)))

    @pytest.mark.parametrize(
        ("status", "error", "words"),
        [
            (401, "bad key", "OPENAI_API_KEY.*--key-env"),
            (403, "not for you", "does not allow the request.*not for you"),
            (402, "pay", "no credit is left"),
            (404, "model gone", "no longer provides the model"),
            (307, "", "redirects"),
        ],
    )
    def test_what_concerns_every_prompt_stops_everything(
        self, prompts: list[RenderedPrompt], opened: Open, status: int, error: str, words: str
    ) -> None:
        with ProtocolServer() as server:
            backend = opened(server, concurrency=2)
            server.reject = lambda request: (status, {"error": {"message": error}})
            with pytest.raises(ServerError, match=words):
                every(backend.respond(prompts, nothing_stored))
        assert len(server.prompt_requests()) <= 2
        assert request_threads() == []

    def test_no_credit_left_is_not_waited_for(self, opened: Open) -> None:
        quota_error = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
        with (
            ProtocolServer(reject=lambda request: (429, quota_error)) as server,
            pytest.raises(ServerError, match="no credit"),
        ):
            opened(server)
        assert len(server.requests) == 1

    def test_killed_halfway_and_run_again_it_ends_as_an_uninterrupted_run(
        self, prompts: list[RenderedPrompt], opened: Open, interruptible: None
    ) -> None:
        prompts = prompts[:40]
        with ProtocolServer(faults=Faults(share=0.2, kinds=("500", "cut"))) as server:
            whole = contents(every(opened(server).respond(prompts, nothing_stored)))
        stored: dict[int, Response] = {}
        n_killed = n_requests = 0
        while len(stored) < len(prompts):
            with ProtocolServer() as server:
                running = opened(server, concurrency=2).respond(prompts, stored.__contains__)
                server.reject = _Killer(at=12, over=server.over)
                try:
                    for portion in running:
                        stored |= {response.prompt_id: response for response in portion}
                except KeyboardInterrupt:
                    n_killed += 1
                    assert request_threads() == []
            n_requests += len(server.prompt_requests())
        assert contents(list(stored.values())) == whole
        assert n_killed >= 3
        assert n_requests <= 40 + 3 * n_killed  # what was under way, and at most one that was just being handed on

    def test_closed_it_ends_at_once_during_requests(self, prompts: list[RenderedPrompt], opened: Open) -> None:
        with ProtocolServer() as server:
            backend = opened(server, timeout=60.0, concurrency=8)
            server.reject = _slow
            running = backend.respond(prompts, nothing_stored)
            first = next(running)
            began = time.monotonic()
            running.close()
            assert time.monotonic() - began < 8  # a request under way would take 15
        assert first
        assert request_threads() == []


class TestWaiting:
    def test_a_wait_that_the_server_requests_is_kept_by_all_threads(
        self, prompts: list[RenderedPrompt], opened: Open
    ) -> None:
        with ProtocolServer(faults=_At(20, retry_after="0.5")) as server:
            every(opened(server, concurrency=4).respond(prompts, nothing_stored))
        assert [request.fault for request in server.requests].count("429") == 1
        gaps = np.diff([request.at for request in server.requests])
        assert gaps.max() > 0.25  # requests on their way may come late
        assert len(gaps) - gaps.argmax() > 20  # all wait, not only the thread that was told to

    def test_a_wait_of_hours_ends_the_run(self, opened: Open) -> None:
        with (
            ProtocolServer(faults=Faults(share=1.0, kinds=("429",), retry_after="7200")) as server,
            pytest.raises(ServerError, match=r"requests a wait of 7,200 s.*Run the same command again"),
        ):
            opened(server)
        assert len(server.requests) == 1

    def test_the_header_holds_seconds_or_a_date(self) -> None:
        from datetime import UTC, datetime, timedelta

        date = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
        assert 95 < (parse_retry_after(date) or 0) <= 100
        assert parse_retry_after(format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)) == 0.0
        assert [parse_retry_after(header) for header in ("3", "0.5", "-1", "soon", "", None, "inf", "nan")] == [
            3.0, 0.5, 0.0, None, None, None, None, None,
        ]  # fmt: skip

    def test_waits_double_up_to_the_longest(self) -> None:
        import random

        back_off, draws = BackOff(first_s=1.0, max_s=10.0), random.Random(1)
        waits = np.array([[back_off.draw_seconds(n, draws) for n in range(1, 9)] for _ in range(200)])
        longest = np.array([1, 2, 4, 8, 10, 10, 10, 10])
        assert ((waits >= longest / 2) & (waits <= longest)).all()
        assert waits[:, 0].std() > 0.1


class TestLimits:
    def test_never_more_requests_at_a_time_than_allowed(self, prompts: list[RenderedPrompt], opened: Open) -> None:
        with ProtocolServer(delay_s=0.01) as server:
            every(opened(server, concurrency=3).respond(prompts, nothing_stored))
        assert 2 <= server.most_active <= 3

    def test_never_more_requests_a_minute_than_allowed(self, prompts: list[RenderedPrompt], opened: Open) -> None:
        minute, limit = 0.4, 40
        with ProtocolServer(faults=Faults(share=0.2, kinds=("500",))) as server:
            began = time.monotonic()
            every(opened(server, requests_per_minute=limit, minute_s=minute).respond(prompts, nothing_stored))
        times = np.array([request.at for request in server.requests])
        assert len(times) > 61  # tries that failed count
        assert (times >= began + np.arange(len(times)) * minute / limit).all()

    @settings(max_examples=30, deadline=None)
    @given(limit=st.integers(1, 50), budget=st.integers(100, 5_000), sizes=st.lists(st.integers(0, 500), max_size=100))
    def test_no_minute_wherever_it_begins_holds_more_than_either_limit(
        self, limit: int, budget: int, sizes: list[int]
    ) -> None:
        limiter = RateLimiter(limit, budget)
        moments = np.array([time.monotonic() + limiter.reserve(size) for size in sizes])
        for first in range(len(sizes)):
            within = [size for at, size in zip(moments, sizes, strict=True) if 0 <= at - moments[first] < 59.9]
            assert len(within) <= limit
            assert sum(within[:-1]) <= budget  # the last may be written into the next minute

    def test_never_more_tokens_a_minute_than_allowed(self, prompts: list[RenderedPrompt], opened: Open) -> None:
        with ProtocolServer() as server:
            backend = opened(server, tokens_per_minute=4_000, minute_s=0.5)
            began = time.monotonic()
            responses = every(backend.respond(prompts, nothing_stored))
            took = time.monotonic() - began
        tokens = sum(response.n_tokens_read + response.n_tokens_written for response in responses[:-8])
        assert took >= 0.5 * tokens / 4_000

    @pytest.mark.parametrize(("more", "seconds"), [(590, 60), (290, 30), (-10, 0)])
    def test_tokens_that_were_not_foreseen_are_made_up_for(self, more: int, seconds: float) -> None:
        limiter = RateLimiter(None, 600)
        assert limiter.reserve(10) == 0.0
        limiter.correct(more)
        assert seconds - 5 < limiter.reserve(0) <= seconds

    def test_more_at_a_time_where_more_are_allowed(self, prompts: list[RenderedPrompt], opened: Open) -> None:
        with ProtocolServer(delay_s=0.2) as server:
            every(opened(server, concurrency=30).respond(prompts, nothing_stored))
        assert server.most_active > 8


class TestPortions:
    def test_responses_come_while_others_are_pending(self, opened: Open) -> None:
        sent_prompts = [RenderedPrompt(prompt_id=at, question=f"{at}?") for at in range(150)]
        with ProtocolServer() as server:
            portions = list(opened(server, "generation").respond(sent_prompts, nothing_stored))
        assert len(portions) >= 3
        assert max(len(portion) for portion in portions) <= 64 + 8

    def test_stored_prompts_are_not_sent(self, prompts: list[RenderedPrompt], opened: Open) -> None:
        with ProtocolServer(offers=EVERYTHING) as server:
            responses = every(opened(server).respond(prompts, lambda prompt_id: prompt_id > 10))
            assert every(opened(server).respond(prompts, lambda prompt_id: True)) == []
        assert sorted(response.prompt_id for response in responses) == [1, 4, 7, 10]
        assert len(server.prompt_requests()) == 4


class _At(Faults):
    """One fault, at one request."""

    def __init__(self, n: int, retry_after: str) -> None:
        super().__init__(retry_after=retry_after)
        object.__setattr__(self, "n", n)

    def kind(self, n: int) -> str:
        return "429" if n == self.n else ""  # type: ignore[attr-defined]


class _Only(Faults):
    """One kind of fault, whenever a text is asked."""

    def __init__(self, text: str, kind: str, server: ProtocolServer) -> None:
        super().__init__()
        object.__setattr__(self, "of", (text, kind, server))

    def kind(self, n: int) -> str:
        text, kind, server = self.of  # type: ignore[attr-defined]
        return kind if text in str(server.coming.body) else ""


def _slow(request: Any) -> None:
    time.sleep(15 if "Number 5" in str(request.body) else 0)


class _Killer:
    """Interrupts the test at a request, and lets nothing through from then on."""

    def __init__(self, at: int, over: threading.Event) -> None:
        self._left, self._over, self._lock = at, over, threading.Lock()

    def __call__(self, request: Any) -> None:
        with self._lock:
            self._left -= 1
            left = self._left
        if left == 0:
            _thread.interrupt_main()
        if left <= 0:
            self._over.wait(15)
