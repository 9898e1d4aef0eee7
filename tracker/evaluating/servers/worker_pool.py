"""Threads that send prompts to a server, and one that collects their outcomes."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tracker.errors import ServerError
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response
from tracker.evaluating.servers.connection import Connection
from tracker.evaluating.servers.prompt_requests import PromptOutcome
from tracker.evaluating.servers.request_errors import HaltedError

PORTION = 64
"""Maximum number of prompts per block of responses."""
SECONDS = 1.0
"""Maximum seconds between blocks."""
LOOK_EVERY_S = 0.2
MAX_FAILURES_IN_ROW = 10
"""Consecutive prompts without an answer after which the evaluation stops."""
SECONDS_TO_END = 2.0

Results: TypeAlias = "queue.SimpleQueue[PromptOutcome | BaseException | None]"
"""Items from the threads: outcomes, exceptions, and None when a thread ends."""
Work = Callable[[RenderedPrompt, Connection, threading.Event], PromptOutcome]
Claim = Callable[[Sequence[int]], Sequence[int]]
PROMPTS_PER_CLAIM = 16
"""Least number of prompts that are claimed at once."""


@dataclass(kw_only=True)
class WorkerPool:
    """Threads that send prompts to a server.

    Attributes:
        work: sends one prompt.
        connect: opens a connection per thread.
        n_threads: number of threads.
        max_failures: consecutive prompts without an answer after which the evaluation stops.
    """

    work: Work
    connect: Callable[[], Connection]
    n_threads: int
    max_failures: int = MAX_FAILURES_IN_ROW

    def process(
        self, prompts: Sequence[RenderedPrompt], claim: Claim = lambda prompt_ids: prompt_ids
    ) -> Iterator[list[PromptOutcome]]:
        """Yield the outcome of each claimed prompt exactly once, in order of completion.

        If the iterator is closed, interrupted or fails, it first stops the threads and closes running requests.
        Outcomes received before an interrupt or error are yielded before it is raised.

        Args:
            prompts: the prompts.
            claim: returns those of some prompts that are to be sent, by key; called by the threads, a few prompts at a
                time.

        Raises:
            ServerError: no request will succeed. Final prompts that the server did not answer are not yielded, so that
                a later run sends them again.
        """
        stop = threading.Event()
        results: Results = queue.SimpleQueue()
        n_threads = min(self.n_threads, len(prompts))
        queued = _PromptQueue(prompts, claim, max(PROMPTS_PER_CLAIM, n_threads))
        connections = [self.connect() for _ in range(n_threads)]
        threads = [
            threading.Thread(
                target=self._run_thread, args=(connection, queued, results, stop), daemon=True, name=f"request-{n}"
            )
            for n, connection in enumerate(connections)
        ]
        buffer = _OutcomeBuffer(self.max_failures)
        failure: BaseException | None = None
        try:
            for thread in threads:
                thread.start()
            try:
                yield from self._collect(results, len(threads), buffer)
                buffer.release()
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - raised again below
                failure = error
            if failure is not None:
                _stop_threads(stop, connections, threads)
                while not results.empty():
                    if isinstance(result := results.get(), PromptOutcome):
                        buffer.keep(result)
            if buffer.ready:
                yield buffer.pop_ready()
        finally:
            _stop_threads(stop, connections, threads)
        if failure is not None:
            raise failure

    def _collect(self, results: Results, n_threads: int, buffer: _OutcomeBuffer) -> Iterator[list[PromptOutcome]]:
        """Yield blocks of the threads' items until all threads have ended; raise what a thread raised."""
        until = time.monotonic() + SECONDS
        while n_threads:
            with contextlib.suppress(queue.Empty):
                result = results.get(timeout=LOOK_EVERY_S)
                if result is None:
                    n_threads -= 1
                elif isinstance(result, PromptOutcome):
                    buffer.add(result)
                else:
                    raise result
            if buffer.ready and (len(buffer.ready) >= PORTION or time.monotonic() >= until):
                yield buffer.pop_ready()
                until = time.monotonic() + SECONDS

    def _run_thread(
        self,
        connection: Connection,
        queued: _PromptQueue,
        results: Results,
        stop: threading.Event,
    ) -> None:
        try:
            while not stop.is_set():
                prompt = queued.pop()
                if prompt is None:
                    break
                results.put(self.work(prompt, connection, stop))
        except HaltedError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised where results are collected
            results.put(error)
        finally:
            connection.close()
            results.put(None)


class _PromptQueue:
    """Prompts to send, claimed in small portions by the thread that finds none."""

    def __init__(self, prompts: Sequence[RenderedPrompt], claim: Claim, n_per_claim: int) -> None:
        self._prompts, self._claim, self._n_per_claim = prompts, claim, n_per_claim
        self._n_looked_at = 0
        self._claimed: deque[RenderedPrompt] = deque()
        self._lock = threading.Lock()

    def pop(self) -> RenderedPrompt | None:
        """Remove and return the next prompt; None if there is none."""
        with self._lock:
            while not self._claimed and self._n_looked_at < len(self._prompts):
                part = self._prompts[self._n_looked_at : self._n_looked_at + self._n_per_claim]
                self._n_looked_at += len(part)
                chosen = set(self._claim([prompt.prompt_id for prompt in part]))
                self._claimed += [prompt for prompt in part if prompt.prompt_id in chosen]
            return self._claimed.popleft() if self._claimed else None


class _OutcomeBuffer:
    """Buffers outcomes; those of a server that does not answer are held back until it answers again."""

    def __init__(self, max_failures: int) -> None:
        self.ready: list[PromptOutcome] = []
        self._delayed: list[PromptOutcome] = []
        self._max_failures = max_failures
        self._n_in_row = 0
        self._any_answer = False

    def add(self, outcome: PromptOutcome) -> None:
        """Add an outcome; raise `ServerError` after too many consecutive failures."""
        failed = all(response.error for response in outcome.responses)
        if not failed:
            self._any_answer, self._n_in_row = True, 0
            self.release()
            self.ready.append(outcome)
            return
        if outcome.is_outage or not self._any_answer:
            self._delayed.append(outcome)
            self._n_in_row += 1
        else:
            self.ready.append(outcome)
        if self._n_in_row >= self._max_failures:
            raise ServerError(
                f"{self._n_in_row} consecutive prompts got no answer. The last error: {outcome.responses[0].error} "
                "Responses received before are stored. Run the same command again to resume once the problem is "
                "solved."
            )

    def keep(self, outcome: PromptOutcome) -> None:
        """Add an outcome after the end; a prompt without an answer is left to the next run."""
        if not all(response.error for response in outcome.responses):
            self.ready.append(outcome)

    def release(self) -> None:
        """Release the outcomes that were held back."""
        self.ready += self._delayed
        self._delayed = []

    def pop_ready(self) -> list[PromptOutcome]:
        """Remove and return the outcomes that are ready."""
        ready, self.ready = self.ready, []
        return ready


def _stop_threads(
    stop: threading.Event, connections: Sequence[Connection], threads: Sequence[threading.Thread]
) -> None:
    stop.set()
    until = time.monotonic() + SECONDS_TO_END
    for connection, thread in zip(connections, threads, strict=True):
        if thread.is_alive():
            connection.cut()
    for thread in threads:
        if thread.ident is not None:
            thread.join(max(0.0, until - time.monotonic()))


def flatten_responses(outcomes: Sequence[PromptOutcome]) -> list[Response]:
    """Return the responses of several prompts."""
    return [response for outcome in outcomes for response in outcome.responses]
