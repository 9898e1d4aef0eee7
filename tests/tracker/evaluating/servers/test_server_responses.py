"""A server's responses are what a slow, obvious reader of its texts would find."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from protocol_server import (
    EVERYTHING,
    ProtocolServer,
    continuation_logprob,
    every,
    first_tokens,
    generate,
    label_logprob,
)

from tracker.errors import SelectionError, ServerError
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Sampling
from tracker.evaluating.servers.protocol import MalformedError, count_continuation_tokens, match_labels, parse_error
from tracker.evaluating.servers.server_model import ServerModel

Open = Callable[..., ServerModel]
NOTHING_STORED: Callable[[int], bool] = lambda prompt_id: False  # noqa: E731


class TestLetters:
    @pytest.mark.parametrize("api", ["completions", "chat"])
    def test_a_label_has_the_probability_of_all_its_spellings(
        self, prompts: list[RenderedPrompt], opened: Open, api: str
    ) -> None:
        import json

        with ProtocolServer() as server:
            backend = opened(server, api=api)
            responses = every(backend.respond(prompts, NOTHING_STORED))
        assert f"/{'chat/' if api == 'chat' else ''}completions" in backend.description
        assert sorted(response.prompt_id for response in responses) == [prompt.prompt_id for prompt in prompts]
        prompts_by_id = {prompt.prompt_id: prompt for prompt in prompts}
        for response in responses:
            prompt = prompts_by_id[response.prompt_id]
            text = prompt.text() if api == "completions" else json.dumps(prompt.messages())
            expected = [label_logprob(text, label) for label in prompt.options]
            np.testing.assert_allclose(response.logprobs, expected, rtol=0, atol=1e-12)
            assert (response.text, response.error, response.n_examples, response.trial) == (None, "", 2, 0)

    def test_labels_that_are_not_listed_are_impossible_and_counted_with_what_they_can_have_had(
        self, prompts: list[RenderedPrompt], opened: Open
    ) -> None:
        with ProtocolServer() as server:
            backend = opened(server, n_top=3)
            responses = every(backend.respond(prompts, NOTHING_STORED))
        prompts_by_id = {prompt.prompt_id: prompt for prompt in prompts}
        n_unlisted, largest, bounds, n_without = 0, 0.0, [], 0
        for response in responses:
            first = first_tokens(prompts_by_id[response.prompt_id].text())
            top = sorted(first, key=first.__getitem__)[-3:]
            bounds.append(1.0 - sum(math.exp(first[token]) for token in top))
            if response.logprobs is None:
                assert response.error == "None of its labels was among the 3 likeliest tokens that the server lists."
                assert not {token.strip() for token in top} & set("ABCD")
                n_without += 1
            for label, logprob in zip(
                "ABCD", np.full(4, -np.inf) if response.error else response.logprobs, strict=True
            ):
                spellings = [token for token in top if token.strip() == label]
                assert np.isneginf(logprob) == (not spellings)
                if not spellings:
                    n_unlisted += 1
                    largest = max(largest, sum(math.exp(first[token]) for token in (label, f" {label}")))
            if response.logprobs is not None:
                truth = np.array([label_logprob(prompts_by_id[response.prompt_id].text(), label) for label in "ABCD"])
                unlisted = np.exp(truth[np.isneginf(response.logprobs)]).sum() / np.exp(truth).sum()
                assert unlisted <= response.unlisted_share + 1e-9 <= 1
        assert backend.n_unlisted == n_unlisted > 4 * n_without > 0
        assert largest <= backend.unlisted_bound == pytest.approx(max(bounds))
        assert f"{n_unlisted:,} labels were not among the 3 likeliest" in " ".join(backend.list_warnings())

    def test_a_space_token_before_a_digit_is_read_on(self, opened: Open) -> None:
        def spaced(request: object) -> tuple[int, object] | None:
            text = request.body["prompt"]  # type: ignore[attr-defined]
            top = {"1": -0.2, "2": -2.0} if text.endswith(" ") else {" ": -0.1, "1": -4.0, "The": -5.0}
            return 200, {"choices": [{"text": " ", "logprobs": {"top_logprobs": [top]}}]}

        prompt = RenderedPrompt(prompt_id=5, question="Which?\nAnswer:", options=("1", "2"))
        with ProtocolServer(reject=spaced) as server:
            (response,) = every(opened(server).respond([prompt], NOTHING_STORED))
        both = [math.log(math.exp(-0.1 - 0.2) + math.exp(-4.0)), -2.1]
        np.testing.assert_allclose(response.logprobs, both)

    def test_where_no_probabilities_are_offered_the_model_writes_the_letter(
        self, prompts: list[RenderedPrompt], opened: Open
    ) -> None:
        with ProtocolServer(offers=frozenset({"chat", "max_tokens"})) as server:
            backend = opened(server)
            responses = every(backend.respond(prompts, NOTHING_STORED))
        assert "no probabilities" in backend.description
        assert backend.as_settings()["way"] == backend.description
        assert all(response.logprobs is None and response.text.startswith(" w") for response in responses)

    @pytest.mark.parametrize(
        ("offers", "described"),
        [
            (EVERYTHING, "label probabilities from /completions"),
            (EVERYTHING - {"logprobs"}, "label probabilities from /chat/completions"),
            (EVERYTHING - {"completions"}, "label probabilities from /chat/completions"),
            (EVERYTHING - {"chat"}, "label probabilities from /completions"),
            (EVERYTHING - {"logprobs", "chat"}, "no probabilities, from /completions"),
            (EVERYTHING - {"logprobs", "chat_logprobs"}, "no probabilities, from /chat/completions"),
            (EVERYTHING - {"completions", "max_tokens"}, "label probabilities from /chat/completions"),
        ],
    )
    def test_what_a_server_offers_is_found_out(self, opened: Open, offers: frozenset[str], described: str) -> None:
        with ProtocolServer(offers=offers) as server:
            assert described in opened(server).description
            assert len(server.requests) <= 3

    def test_one_request_is_enough_where_the_first_request_is_supported(self, opened: Open) -> None:
        with ProtocolServer() as server:
            opened(server)
            assert len(server.requests) == 1

    def test_fewer_likeliest_tokens_are_requested_where_the_server_lists_no_more(self, opened: Open) -> None:
        with ProtocolServer(most_top=5) as server:
            assert opened(server).as_settings()["n_top"] == 5

    @pytest.mark.parametrize(
        ("tops", "reason"),
        [({" A": -0.01, " B": -0.01}, "sum to more than 1"), ({}, "listed no tokens: the model ended")],
    )
    def test_invalid_or_missing_probabilities_of_a_prompt_are_its_error(
        self, prompts: list[RenderedPrompt], opened: Open, tops: dict[str, float], reason: str
    ) -> None:
        with ProtocolServer(first=lambda text: first_tokens(text) if "France" in text else tops) as server:
            backend = opened(server)
            responses = every(backend.respond(prompts[:3], NOTHING_STORED))
        assert [reason in response.error for response in responses] == [True] * 3


class TestLikelihoods:
    @pytest.mark.parametrize(
        "quirk",
        [
            {},
            {"first_marks": ("<|begin_of_text|>",)},
            {"spell": lambda token: token.replace(" ", "▁")},
            {"spell": lambda token: token.strip(" ")},
        ],
        ids=["plain", "begins with a mark", "spaces as bars", "spaces hidden"],
    )
    def test_they_are_the_sums_over_the_tokens_of_each_option(
        self, prompts: list[RenderedPrompt], opened: Open, quirk: dict[str, object]
    ) -> None:
        texts = ("a red fish", "a bird", "12", "fish")
        prompts_by_id = {prompt.prompt_id: replace(prompt, options=texts) for prompt in prompts[:12]}
        with ProtocolServer(**quirk) as server:  # type: ignore[arg-type]
            backend = opened(server, "loglikelihood")
            responses = every(backend.respond(list(prompts_by_id.values()), NOTHING_STORED))
        for response in responses:
            text = prompts_by_id[response.prompt_id].text()
            expected = [continuation_logprob(text, f" {option}") for option in texts]
            np.testing.assert_allclose(response.logprobs, expected, rtol=0, atol=1e-12)
            assert response.n_tokens_read > 4 * len(text.split())
        assert len(server.prompt_requests()) == 4 * 12

    def test_options_whose_tokens_do_not_spell_them_are_counted_off(self, opened: Open) -> None:
        prompt = RenderedPrompt(prompt_id=1, question="How long? π\nAnswer:", options=("2 π", "½"))
        with ProtocolServer(spell=lambda token: re_ascii(token)) as server:
            (response,) = every(opened(server, "loglikelihood").respond([prompt], NOTHING_STORED))
        expected = [continuation_logprob(prompt.text(), f" {option}") for option in prompt.options]
        np.testing.assert_allclose(response.logprobs, expected, rtol=0, atol=1e-12)
        assert len(server.prompt_requests()) == 3  # the text alone, once

    def test_spaces_at_the_end_of_the_text_go_to_the_option(self, opened: Open) -> None:
        prompt = RenderedPrompt(prompt_id=1, question="Which?\nAnswer: ", join="", options=("a fish", "birds"))
        with ProtocolServer() as server:
            (response,) = every(opened(server, "loglikelihood").respond([prompt], NOTHING_STORED))
        expected = [continuation_logprob("Which?\nAnswer:", f" {option}") for option in prompt.options]
        np.testing.assert_allclose(response.logprobs, expected, rtol=0, atol=1e-12)

    def test_probabilities_of_what_was_written_are_not_those_of_what_was_sent(self, opened: Open) -> None:
        def writes(request: object) -> tuple[int, object] | None:
            logprobs = {"tokens": [" Paris", " is", " Paris"], "token_logprobs": [-1.0, -1.0, -1.0]}
            return 200, {"choices": [{"text": " Paris is Paris", "logprobs": logprobs}]}

        with ProtocolServer(reject=writes) as server, pytest.raises(ServerError, match="--method letters"):
            opened(server, "loglikelihood")

    def test_a_server_that_does_not_echo_names_the_method_that_works(self, opened: Open) -> None:
        with (
            ProtocolServer(offers=EVERYTHING - {"echo"}) as server,
            pytest.raises(ServerError, match="--method letters"),
        ):
            opened(server, "loglikelihood")
        with ProtocolServer() as server, pytest.raises(SelectionError, match="--method letters"):
            opened(server, "loglikelihood", api="chat")

    def test_a_server_that_must_write_something_is_let_write_one_token(
        self, prompts: list[RenderedPrompt], opened: Open
    ) -> None:
        def at_least_one(request: object) -> tuple[int, object] | None:
            expected = request.body["max_tokens"]  # type: ignore[attr-defined]
            return None if expected else (400, {"message": "max_tokens must be at least 1"})

        with ProtocolServer(reject=at_least_one) as server:
            (response,) = every(opened(server, "loglikelihood").respond(prompts[:1], NOTHING_STORED))
        expected = [continuation_logprob(prompts[0].text(), f" {option}") for option in "ABCD"]
        np.testing.assert_allclose(response.logprobs, expected, rtol=0, atol=1e-12)


class TestGeneration:
    def test_each_trial_is_a_request_of_its_own_with_a_seed_of_its_own(
        self, prompts: list[RenderedPrompt], opened: Open
    ) -> None:
        sampling = Sampling(max_tokens=7, temperature=0.8, top_p=0.9, seed=5, n_trials=3)
        with ProtocolServer() as server:
            first = every(opened(server, "generation", sampling=sampling).respond(prompts, NOTHING_STORED))
            again = every(opened(server, "generation", sampling=sampling).respond(prompts, NOTHING_STORED))
        assert sorted((response.prompt_id, response.trial) for response in first) == [
            (prompt.prompt_id, trial) for prompt in prompts for trial in range(3)
        ]
        assert len({response.text for response in first}) == 180
        assert {(r.prompt_id, r.trial, r.text) for r in first} == {(r.prompt_id, r.trial, r.text) for r in again}
        assert all(request.body["top_p"] == 0.9 for request in server.prompt_requests())

    def test_text_ends_before_the_first_stop_string_however_many_there_are(
        self, prompts: list[RenderedPrompt], opened: Open
    ) -> None:
        whole = generate(prompts[0].text())
        stops = ("#", "@", "%", "~", whole.split()[4])  # a server is sent four
        with ProtocolServer() as server:
            backend = opened(server, "generation", sampling=Sampling(stop=stops))
            (response,) = every(backend.respond(prompts[:1], NOTHING_STORED))
            assert all(len(request.body["stop"]) == 4 for request in server.prompt_requests())
        assert response.text == whole.split(stops[4])[0]

    def test_examples_are_left_out_first_where_the_text_is_too_long(
        self, prompts: list[RenderedPrompt], opened: Open
    ) -> None:
        short = replace(prompts[0], prompt_id=1000, examples=())
        long = replace(prompts[0], prompt_id=1001, question="very " * 100)
        with ProtocolServer(context=20) as server:
            backend = opened(server, "generation")
            responses = every(backend.respond([*prompts[:5], short, long], NOTHING_STORED))
        by_prompt = {response.prompt_id: response for response in responses}
        assert [by_prompt[prompt.prompt_id].n_examples for prompt in prompts[:5]] == [1] * 5
        assert by_prompt[1].text == generate(prompts[0].text(1))
        assert by_prompt[1000].error == ""
        assert "maximum context length" in by_prompt[1001].error
        assert backend.n_shortened == 5
        assert any("5 prompts were too long" in warning for warning in backend.list_warnings())


class TestCosts:
    def test_tokens_are_those_the_server_counts(self, prompts: list[RenderedPrompt], opened: Open) -> None:
        with ProtocolServer() as server:
            backend = opened(server, "generation", sampling=Sampling(max_tokens=5), price_read=2, price_written=10)
            before = backend.n_tokens_read, backend.n_tokens_written
            responses = every(backend.respond(prompts, NOTHING_STORED))
        assert sum(response.n_tokens_written for response in responses) == 5 * 60
        assert backend.n_tokens_read == before[0] + sum(response.n_tokens_read for response in responses)
        assert backend.cost(1_000_000, 500_000) == pytest.approx(7.0)
        assert backend.list_warnings() == []

    def test_estimated_tokens_are_warned_of(self, prompts: list[RenderedPrompt], opened: Open) -> None:
        with ProtocolServer(counts=False) as server:
            backend = opened(server, "generation")
            responses = every(backend.respond(prompts, NOTHING_STORED))
        assert all(response.n_tokens_read == -(-len(prompts[0].text()) // 4) for response in responses[:1])
        assert "61 requests; they are estimated" in " ".join(backend.list_warnings())

    def test_without_both_prices_there_is_no_cost(self, opened: Open) -> None:
        with ProtocolServer() as server:
            assert opened(server, price_read=1.0).cost(10, 10) is None


class TestReading:
    def test_messages_of_servers_do_not_control_the_terminal(self) -> None:
        assert parse_error({"error": {"message": "a\x1b[2Jb\x00", "code": "x\n"}}) == ("a [2Jb ", "x ")

    def test_labels_are_matched_whole(self) -> None:
        matched = match_labels(
            [(" True", -1.0), ("True", -2.0), ("Tru", -0.9), ("▁False", -3.0)], ["True", "False", "Neither"]
        )
        np.testing.assert_allclose(matched.logprobs, [math.log(math.exp(-1) + math.exp(-2)), -3.0, -np.inf])
        assert matched.n_unlisted == 1
        assert matched.unlisted_bound == pytest.approx(max(0.0, 1 - sum(map(math.exp, (-1, -2, -0.9, -3)))))

    def test_probabilities_that_cannot_be_are_no_reply(self) -> None:
        with pytest.raises(MalformedError, match="sum to more than 1"):
            match_labels([("A", -0.001), ("B", -0.001)], ["A", "B"])

    def test_an_empty_list_leaves_everything_open(self) -> None:
        matched = match_labels([], ["A", "B"])
        assert (matched.n_unlisted, matched.unlisted_bound) == (2, 1.0)

    @pytest.mark.parametrize(
        ("spelt", "continuation", "n"),
        [
            (["Answer", ":", " A"], " A", 1),
            (["Answer", ":", " ", "A"], " A", 2),
            (["Answer", ":", "A"], " A", 1),
            (["An", "swer:A"], "A", 1),
            (["x", " a", " a"], " a a", 2),
            (["x", "\ufffd"], " π", None),
        ],
    )
    def test_a_continuation_is_found_from_the_end(self, spelt: list[str], continuation: str, n: int | None) -> None:
        assert count_continuation_tokens(spelt, continuation) == n


def re_ascii(token: str) -> str:
    return "".join(letter if letter.isascii() else "\ufffd" for letter in token)
