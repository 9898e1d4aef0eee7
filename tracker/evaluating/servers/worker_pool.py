"""Several threads that ask a server, and one that collects what they bring."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tracker.errors import ServerError
from tracker.evaluating.prompt_templates.rendered_prompt import Question
from tracker.evaluating.responses import Reply
from tracker.evaluating.servers.connection import Connection
from tracker.evaluating.servers.prompt_requests import Outcome
from tracker.evaluating.servers.retrying_client import HaltedError

PORTION = 64
"""Prompts after which replies are handed on, if not before."""
SECONDS = 1.0
"""Seconds after which they are."""
LOOK_EVERY_S = 0.2
HOPELESS = 10
"""Prompts in a row without an answer after which one stops."""
SECONDS_TO_END = 2.0

Brought: TypeAlias = "queue.SimpleQueue[Outcome | BaseException | None]"
"""What threads bring: outcomes, what they raised, and None when they end."""
Work = Callable[[Question, Connection, threading.Event], Outcome]


@dataclass(kw_only=True)
class Crew:
    """Threads that ask.

    Attributes:
        work: what one does with one prompt.
        connect: a connection of its own for each.
        n_threads: how many.
        hopeless: so many prompts in a row without an answer end it.
    """

    work: Work
    connect: Callable[[], Connection]
    n_threads: int
    hopeless: int = HOPELESS

    def outcomes(self, questions: Sequence[Question]) -> Iterator[list[Outcome]]:
        """What became of each prompt, each exactly once, in the order in which they end.

        Closed, interrupted or failing, it ends the threads first: requests under way are cut. What had been answered
        when an interrupt or an error came is handed on before it is raised.

        Raises:
            ServerError: nothing more will be answered. Prompts that the server did not answer at the end are not
                handed on, so that they are asked when it is run again.
        """
        stop = threading.Event()
        brought: Brought = queue.SimpleQueue()
        waiting: queue.SimpleQueue[Question] = queue.SimpleQueue()
        for question in questions:
            waiting.put(question)
        connections = [self.connect() for _ in range(min(self.n_threads, len(questions)))]
        threads = [
            threading.Thread(target=self._ask, args=(one, waiting, brought, stop), daemon=True, name=f"asking-{n}")
            for n, one in enumerate(connections)
        ]
        collected = _Collected(self.hopeless)
        failure: BaseException | None = None
        try:
            for thread in threads:
                thread.start()
            try:
                yield from self._gathered(brought, len(threads), collected)
                collected.release()
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - raised again below
                failure = error
            if failure is not None:
                _end(stop, connections, threads)
                while not brought.empty():
                    if isinstance(came := brought.get(), Outcome):
                        collected.keep(came)
            if collected.ready:
                yield collected.taken()
        finally:
            _end(stop, connections, threads)
        if failure is not None:
            raise failure

    def _gathered(self, brought: Brought, n_threads: int, collected: _Collected) -> Iterator[list[Outcome]]:
        """Portions of what the threads bring, until all have ended; raises what one of them raised."""
        until = time.monotonic() + SECONDS
        while n_threads:
            with contextlib.suppress(queue.Empty):
                came = brought.get(timeout=LOOK_EVERY_S)
                if came is None:
                    n_threads -= 1
                elif isinstance(came, Outcome):
                    collected.add(came)
                else:
                    raise came
            if collected.ready and (len(collected.ready) >= PORTION or time.monotonic() >= until):
                yield collected.taken()
                until = time.monotonic() + SECONDS

    def _ask(
        self,
        connection: Connection,
        waiting: queue.SimpleQueue[Question],
        brought: Brought,
        stop: threading.Event,
    ) -> None:
        try:
            while not stop.is_set():
                brought.put(self.work(waiting.get_nowait(), connection, stop))
        except (queue.Empty, HaltedError):
            pass
        except BaseException as error:  # noqa: BLE001 - raised where all is collected
            brought.put(error)
        finally:
            connection.close()
            brought.put(None)


class _Collected:
    """Outcomes to be handed on; those of a server that does not answer are held back until it does again."""

    def __init__(self, hopeless: int) -> None:
        self.ready: list[Outcome] = []
        self._held: list[Outcome] = []
        self._hopeless = hopeless
        self._n_in_row = 0
        self._any_answer = False

    def add(self, outcome: Outcome) -> None:
        """Raises `ServerError` where there is no hope."""
        failed = all(reply.error for reply in outcome.replies)
        if not failed:
            self._any_answer, self._n_in_row = True, 0
            self.release()
            self.ready.append(outcome)
            return
        if outcome.is_outage or not self._any_answer:
            self._held.append(outcome)
            self._n_in_row += 1
        else:
            self.ready.append(outcome)
        if self._n_in_row >= self._hopeless:
            raise ServerError(
                f"{self._n_in_row} prompts in a row got no answer; the last: {outcome.replies[0].error} "
                "What was answered before is stored; run the same command again when this is mended."
            )

    def keep(self, outcome: Outcome) -> None:
        """The same once it is over: what was not answered is left for the next time."""
        if not all(reply.error for reply in outcome.replies):
            self.ready.append(outcome)

    def release(self) -> None:
        """What was held back is handed on after all."""
        self.ready += self._held
        self._held = []

    def taken(self) -> list[Outcome]:
        """All that is ready."""
        taken, self.ready = self.ready, []
        return taken


def _end(stop: threading.Event, connections: Sequence[Connection], threads: Sequence[threading.Thread]) -> None:
    stop.set()
    until = time.monotonic() + SECONDS_TO_END
    for connection, thread in zip(connections, threads, strict=True):
        if thread.is_alive():
            connection.cut()
    for thread in threads:
        if thread.ident is not None:
            thread.join(max(0.0, until - time.monotonic()))


def replies_of(outcomes: Sequence[Outcome]) -> list[Reply]:
    """The replies of several prompts."""
    return [reply for outcome in outcomes for reply in outcome.replies]
