"""What threads bring is handed on once, also when one of them fails."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tracker.errors import ServerError
from tracker.evaluating.prompt_templates.rendered_prompt import Question
from tracker.evaluating.responses import Reply
from tracker.evaluating.servers.address import Key, read_address
from tracker.evaluating.servers.connection import Connection
from tracker.evaluating.servers.prompt_requests import Outcome
from tracker.evaluating.servers.worker_pool import Crew, Work


def answered(question: Question) -> Outcome:
    return Outcome(replies=[Reply(prompt_id=question.prompt_id, text="yes")])


def unanswered(question: Question) -> Outcome:
    return Outcome(replies=[Reply(prompt_id=question.prompt_id, error="No.")], is_outage=True)


def handed_on(work: Work, n: int, n_threads: int) -> tuple[list[int], str]:
    """Keys of the prompts that were handed on, and what was raised."""
    crew = Crew(
        work=work, connect=lambda: Connection(read_address("http://localhost:9"), Key(""), 1), n_threads=n_threads
    )
    got: list[int] = []
    try:
        for portion in crew.outcomes([Question(prompt_id=at, question="?") for at in range(n)]):
            got += [outcome.replies[0].prompt_id for outcome in portion]
    except ServerError as error:
        return got, str(error)
    return got, ""


def in_turn(*steps: Callable[[Question], Outcome]) -> Work:
    def work(question: Question, connection: Connection, stop: threading.Event) -> Outcome:
        return steps[min(question.prompt_id, len(steps) - 1)](question)

    return work


def over(question: Question) -> Outcome:
    raise ServerError("over")


class TestHandingOn:
    def test_what_is_answered_while_everything_stops_is_handed_on(self) -> None:
        def work(question: Question, connection: Connection, stop: threading.Event) -> Outcome:
            if question.prompt_id:
                raise ServerError("over")
            assert stop.wait(10)
            return answered(question)

        assert handed_on(work, 2, 2) == ([0], "over")

    def test_prompts_without_an_answer_are_handed_on_when_another_is_answered(self) -> None:
        assert handed_on(in_turn(unanswered, answered, over), 5, 1) == ([0, 1], "over")

    def test_and_left_for_the_next_time_when_none_is(self) -> None:
        assert handed_on(in_turn(answered, unanswered, unanswered, over), 5, 1) == ([0], "over")

    def test_at_the_end_they_are_handed_on_too(self) -> None:
        assert handed_on(in_turn(answered, unanswered), 5, 1) == ([0, 1, 2, 3, 4], "")

    def test_an_error_of_ours_is_raised_where_it_is_seen(self) -> None:
        def work(question: Question, connection: Connection, stop: threading.Event) -> Outcome:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            handed_on(work, 3, 2)
