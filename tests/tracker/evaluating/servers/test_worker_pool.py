"""What threads bring is handed on once, also when one of them fails."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tracker.errors import ServerError
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response
from tracker.evaluating.servers.address import ApiKey, read_address
from tracker.evaluating.servers.connection import Connection
from tracker.evaluating.servers.prompt_requests import PromptOutcome
from tracker.evaluating.servers.worker_pool import Work, WorkerPool


def answered(prompt: RenderedPrompt) -> PromptOutcome:
    return PromptOutcome(responses=[Response(prompt_id=prompt.prompt_id, text="yes")])


def unanswered(prompt: RenderedPrompt) -> PromptOutcome:
    return PromptOutcome(responses=[Response(prompt_id=prompt.prompt_id, error="No.")], is_outage=True)


def handed_on(work: Work, n: int, n_threads: int) -> tuple[list[int], str]:
    """Keys of the prompts that were handed on, and what was raised."""
    pool = WorkerPool(
        work=work, connect=lambda: Connection(read_address("http://localhost:9"), ApiKey(""), 1), n_threads=n_threads
    )
    got: list[int] = []
    try:
        for portion in pool.process([RenderedPrompt(prompt_id=at, question="?") for at in range(n)]):
            got += [outcome.responses[0].prompt_id for outcome in portion]
    except ServerError as error:
        return got, str(error)
    return got, ""


def in_turn(*steps: Callable[[RenderedPrompt], PromptOutcome]) -> Work:
    def work(prompt: RenderedPrompt, connection: Connection, stop: threading.Event) -> PromptOutcome:
        return steps[min(prompt.prompt_id, len(steps) - 1)](prompt)

    return work


def over(prompt: RenderedPrompt) -> PromptOutcome:
    raise ServerError("over")


class TestHandingOn:
    def test_what_is_answered_while_everything_stops_is_handed_on(self) -> None:
        def work(prompt: RenderedPrompt, connection: Connection, stop: threading.Event) -> PromptOutcome:
            if prompt.prompt_id:
                raise ServerError("over")
            assert stop.wait(10)
            return answered(prompt)

        assert handed_on(work, 2, 2) == ([0], "over")

    def test_prompts_without_an_answer_are_handed_on_when_another_is_answered(self) -> None:
        assert handed_on(in_turn(unanswered, answered, over), 5, 1) == ([0, 1], "over")

    def test_and_left_for_the_next_time_when_none_is(self) -> None:
        assert handed_on(in_turn(answered, unanswered, unanswered, over), 5, 1) == ([0], "over")

    def test_at_the_end_they_are_handed_on_too(self) -> None:
        assert handed_on(in_turn(answered, unanswered), 5, 1) == ([0, 1, 2, 3, 4], "")

    def test_an_error_of_ours_is_raised_where_it_is_seen(self) -> None:
        def work(prompt: RenderedPrompt, connection: Connection, stop: threading.Event) -> PromptOutcome:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            handed_on(work, 3, 2)
