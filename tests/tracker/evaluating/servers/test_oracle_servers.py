"""A server that writes solutions of GSM8K: extraction, ends, reasoning, parameters, trials, judges and budgets."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from protocol_server import MODEL, ProtocolServer

import tracker
from tracker.errors import BadInputError, SelectionError, ServerError
from tracker.evaluating.evaluation import evaluate
from tracker.evaluating.judge import load_rubric
from tracker.evaluating.plan import Plan
from tracker.evaluating.preparation import prepare
from tracker.evaluating.responses import split_reasoning
from tracker.evaluating.servers.budget import Budget
from tracker.evaluating.servers.protocol import Usage

N_PROMPTS = 4
COMPLETIONS, CHAT = frozenset({"completions", "max_tokens"}), frozenset({"chat", "max_tokens"})


def solution(n: int) -> str:
    """An answer as GSM8K has them: blank lines, thousands separators and the number after its mark."""
    return f"Half of {2 * n} is {n}.\n\nTogether <<{n}+1000={n + 1000}>>{n + 1000:,}.\n#### {n + 1000:,}"


def sent_number(text: str) -> int:
    """The number of the prompt that a request ends with."""
    return int(re.findall(r"Number (\d+)\?", text)[-1])


def oracle(text: str, _: Any = None) -> dict[str, Any]:
    return {"content": solution(sent_number(text))}


def wrong(text: str, _: Any = None) -> dict[str, Any]:
    return {"content": solution(sent_number(text) + 1)}


@pytest.fixture(scope="module")
def filled(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("oracle")
    path = folder / "store.db"
    path.write_bytes(sqlite_template.read_bytes())
    rows = ({"question": f"Number {n}?", "answer": solution(n)} for n in range(N_PROMPTS))
    (folder / "test.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with tracker.open(f"sqlite:///{path}") as store:
        store.prompts_from("gsm8k", folder / "test.jsonl")
    return path.read_bytes()


@pytest.fixture
def url(filled: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "store.db").write_bytes(filled)
    return f"sqlite:///{tmp_path / 'store.db'}"


def evaluated(url: str, write: Callable[..., dict[str, Any]], *, benchmark: str = "gsm8k", **options: Any) -> Any:
    """The result, the messages and the requests of an evaluation by a server that writes so."""
    reported: list[str] = []
    server = {name: options.pop(name) for name in ("offers", "reject") if name in options}
    with ProtocolServer(write=write, **server) as model_server, tracker.open(url) as store:
        plan = Plan.from_options(benchmark, MODEL, api_base=model_server.url, tries=1, **options)
        (outcome,) = evaluate(store.engine, plan, report=reported.append)
        requests = model_server.prompt_requests()
    return outcome, [*reported, *outcome.warnings], requests


def stored(url: str, condition: str, column: str = "extraction") -> list[Any]:
    """A column of the stored answers for which the condition holds, by prompt."""
    with tracker.open(url) as store:
        table = store.sql(f"SELECT {column} AS value FROM answer WHERE {condition} ORDER BY prompt_id")
        return list(table["value"].to_pylist())


class TestReferences:
    @pytest.mark.parametrize(
        "rules", [{"preset": "gsm8k"}, {"extract": r"#### (-?[\d,.]+)", "ignore": "number-format"}]
    )
    def test_the_recipes_for_gsm8k_read_the_answer_out_of_the_reference_too(self, url: str, rules: Any) -> None:
        assert evaluated(url, oracle, offers=CHAT, **rules)[0].means == {"exact_match": 1.0}
        assert evaluated(url, wrong, offers=CHAT, again=True, **rules)[0].means == {"exact_match": 0.0}


class TestEndings:
    def test_a_conversation_has_no_default_stop_and_more_tokens(self, url: str) -> None:
        _, _, requests = evaluated(url, oracle, offers=CHAT, limit=1)
        assert "stop" not in requests[0].body
        assert requests[0].body["max_tokens"] == 1024
        _, _, requests = evaluated(url, oracle, offers=COMPLETIONS, limit=1)
        assert requests[0].body["stop"] == ["\n\n"]
        assert requests[0].body["max_tokens"] == 256
        _, _, requests = evaluated(url, oracle, offers=CHAT, limit=1, max_tokens=99)
        assert requests[0].body["max_tokens"] == 99

    def test_a_local_conversation_has_no_default_stop_either(self, url: str) -> None:
        with tracker.open(url) as store:
            plans = [Plan.from_options("gsm8k", "folder", **options) for options in ({}, {"chat": True})]
            assert [prepare(store.engine, plan).sampling.stop for plan in plans] == [("\n\n",), ()]

    @pytest.mark.parametrize("offers", [COMPLETIONS, CHAT], ids=["completions", "chat"])
    def test_stop_replaces_and_none_removes(self, url: str, offers: frozenset[str]) -> None:
        _, _, requests = evaluated(url, oracle, offers=offers, limit=1, stop=("Q:", "####"))
        assert requests[0].body["stop"] == ["Q:", "####"]
        outcome, _, requests = evaluated(url, oracle, offers=offers, stop="none", preset="gsm8k")
        assert "stop" not in requests[0].body
        assert outcome.means == {"exact_match": 1.0}
        with pytest.raises(SelectionError, match="--stop none removes all"):
            evaluated(url, oracle, stop=("none", "Q:"))

    def test_truncated_responses_are_a_status_of_their_own_with_bounds(self, url: str) -> None:
        def write(text: str, _: Any) -> dict[str, Any]:
            content = f"{solution(sent_number(text))}" + " and so on" * 100 * (sent_number(text) == 2)
            return {"content": content}

        outcome, warnings, _ = evaluated(url, write, offers=CHAT, preset="gsm8k", max_tokens=100)
        assert (outcome.means, outcome.n_truncated) == ({"exact_match": 0.75}, 1)
        assert outcome.at_most == {"exact_match": 1.0}
        assert "exact_match 0.7500 (at most 1.0000), 1 truncated" in outcome.summary()
        assert any("1 of 4 responses were truncated" in warning and "--max-tokens" in warning for warning in warnings)
        assert stored(url, "status = 'truncated'") == [""]
        assert sorted(stored(url, "extraction = 'finish_reason'", "text")) == ["length", "stop", "stop", "stop"]

    def test_other_finish_reasons_are_stored(self, url: str) -> None:
        def write(text: str, _: Any) -> dict[str, Any]:
            return {"content": "", "finish_reason": "content_filter"}

        outcome, warnings, _ = evaluated(url, write, offers=CHAT)
        assert stored(url, "extraction = 'finish_reason'", "text") == ["content_filter"] * N_PROMPTS
        assert outcome.n_truncated == 0
        assert any("4 of 4 answers are empty" in warning for warning in warnings)
        assert "the server's content filter ended 4 of 4 responses" in warnings


class TestReasoning:
    @pytest.mark.parametrize(
        "reason",
        [
            lambda text, wrong: {"content": f"<think>{wrong}</think>\n\n{text}"},
            lambda text, wrong: {"content": f"{wrong}</think>{text}"},
            lambda text, wrong: {"content": text, "reasoning_content": wrong},
            lambda text, wrong: {"content": text, "reasoning": wrong},
            lambda text, wrong: {
                "content": [{"type": "thinking", "thinking": [{"text": wrong}]}, {"type": "text", "text": text}]
            },
        ],
        ids=["think", "opened by the template", "reasoning_content", "reasoning", "parts"],
    )
    def test_reasoning_is_stored_and_never_scored(self, url: str, reason: Callable[[str, str], Any]) -> None:
        for write, distractor, mean in ((oracle, wrong, 1.0), (wrong, oracle, 0.0)):

            def think(text: str, _: Any, write: Any = write, distractor: Any = distractor) -> dict[str, Any]:
                return reason(write(text)["content"], distractor(text)["content"])

            outcome, _, _ = evaluated(url, think, offers=CHAT, preset="gsm8k", again=True)
            assert outcome.means == {"exact_match": mean}
        condition = f"run_id = {outcome.run_id} AND extraction = 'reasoning'"
        assert stored(url, condition, "text") == [solution(n) for n in range(N_PROMPTS)]
        assert not stored(url, "extraction IN ('', 'regex') AND text LIKE '%think%'")

    def test_reasoning_that_does_not_end_is_no_answer(self, url: str) -> None:
        def write(text: str, _: Any) -> dict[str, Any]:
            return {"content": f"<think>{oracle(text)['content']}" + " hm" * 300}

        outcome, _, _ = evaluated(url, write, offers=CHAT, preset="gsm8k", max_tokens=200)
        assert (outcome.means, outcome.n_truncated) == ({"exact_match": 0.0}, N_PROMPTS)

    @pytest.mark.parametrize(
        ("text", "reasoning", "answer"),
        [("B", "", "B"), ("<think>A?</think>B", "A?", "B"), ("A?</think> B", "A?", "B"), ("<think>A?", "A?", ""),
         ("<think>\n\n</think>\n\nB", "", "B"), ("<think>a</think>b<think>c</think>d", "a\nc", "bd"),
         ("I think> B", "", "I think> B")],
    )  # fmt: skip
    def test_marks_separate_reasoning_from_the_answer(self, text: str, reasoning: str, answer: str) -> None:
        assert split_reasoning(text) == (reasoning, answer)


class TestParameters:
    @staticmethod
    def reject(request: Any) -> tuple[int, Any] | None:
        """Rejects what reasoning models reject, one at a time, as OpenAI's API does."""
        body = request.body
        for name, value in body.items():
            if name in ("stop", "logprobs", "seed") or (name == "temperature" and value != 1):
                message = f"Unsupported value: '{name}' does not support {value!r} with this model."
                return 400, {"error": {"message": message, "param": name, "code": "unsupported_value"}}
        if "max_tokens" in body:
            message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
            return 400, {"error": {"message": message, "param": "max_tokens"}}
        return None

    @pytest.mark.parametrize("late", [False, True], ids=["at the probe", "at a prompt"])
    def test_parameters_that_a_server_rejects_are_dropped_with_one_warning(self, url: str, late: bool) -> None:
        def reject(request: Any) -> tuple[int, Any] | None:
            return None if late and "capital of France" in str(request.body) else self.reject(request)

        options = {"offers": CHAT, "reject": reject, "stop": "@@@", "temperature": 0.5, "concurrency": 1}
        outcome, warnings, requests = evaluated(url, oracle, preset="gsm8k", **options)
        assert outcome.means == {"exact_match": 1.0}
        (warning,) = [warning for warning in warnings if "rejects" in warning]
        assert all(name in warning for name in ("temperature", "stop", "seed"))
        assert set(requests[-1].body) == {"model", "messages", "max_completion_tokens"}
        assert len(requests) == N_PROMPTS + 4 * late

    def test_what_is_no_rejection_of_a_parameter_stays_an_error(self, url: str) -> None:
        message = "max_tokens is too large: 256. This model supports at most 128 completion tokens."
        reject = lambda request: (400, {"error": {"message": message, "param": "max_tokens"}})  # noqa: E731
        with pytest.raises(ServerError, match="too large"):
            evaluated(url, oracle, offers=CHAT, reject=reject)

    def test_further_fields_system_prompt_and_examples_are_sent(self, url: str) -> None:
        outcome, _, requests = evaluated(
            url, oracle, api="chat", preset="gsm8k", system_prompt="Reason briefly.", limit=1,
            extra_body='{"reasoning_effort": "low"}', template_arguments=("enable_thinking=false", "style=short"),
        )  # fmt: skip
        assert outcome.means == {"exact_match": 1.0}
        body = requests[-1].body
        assert [turn["role"] for turn in body["messages"]] == ["system", "user"]
        assert body["messages"][0]["content"] == "Reason briefly."
        assert body["reasoning_effort"] == "low"
        assert body["chat_template_kwargs"] == {"enable_thinking": False, "style": "short"}

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"extra_body": "{"}, "--extra-body is not JSON"),
            ({"extra_body": "[1]"}, "not a JSON object"),
            ({"extra_body": '{"messages": []}'}, "cannot set messages"),
            ({"template_arguments": "thinking", "api": "chat"}, "write NAME=VALUE"),
            ({"system_prompt": "Be brief."}, "Add --chat"),
        ],
    )
    def test_options_that_cannot_be_sent_are_errors(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(SelectionError, match=message):
            Plan.from_options("gsm8k", MODEL, api_base="http://localhost/v1", **options)


class TestTrials:
    def test_pass_at_k_is_computed_from_the_trials(self, url: str) -> None:
        """Of five responses to prompt n, n are correct."""
        n_sent: Counter[int] = Counter()

        def write(text: str, _: Any) -> dict[str, Any]:
            n = sent_number(text)
            n_sent[n] += 1
            return {"content": solution(n if n_sent[n] <= n else n + 1)}

        rules = {"preset": "gsm8k", "metrics": ("pass@1", "pass@2"), "trials": 5, "temperature": 1.0}
        outcome, _, _ = evaluated(url, write, offers=CHAT, **rules)
        subsets = [list(combinations([1] * n + [0] * (5 - n), 2)) for n in range(N_PROMPTS)]
        by_hand = [sum(map(any, pairs)) / len(pairs) for pairs in subsets]
        assert outcome.means == pytest.approx({"exact_match": 0.3, "pass@1": 0.3, "pass@2": sum(by_hand) / N_PROMPTS})

    def test_k_needs_as_many_trials_and_a_metric_of_correct_answers(self, url: str) -> None:
        with pytest.raises(SelectionError, match="pass@5 needs at least 5 responses: raise --trials"):
            evaluated(url, oracle, metrics=("pass@5",), trials=4)
        with pytest.raises(SelectionError, match="--metric exact_match"):
            evaluated(url, oracle, metrics=("f1", "pass@1"))


class TestJudge:
    @staticmethod
    def write(text: str, body: dict[str, Any]) -> dict[str, Any]:
        """The model knows even numbers; the judge compares the two solutions."""
        if "Verdict:" not in text:
            n = sent_number(text)
            return {"content": solution(n) if n % 2 == 0 else "Something else."}
        prompt = body["messages"][0]["content"]
        right = prompt.split("Reference answer:\n")[1].split("\n\nAnswer to grade:\n")
        is_right = right[1].startswith(right[0])
        verdict = ("CORRECT" if is_right else "INCORRECT") if "CORRECT" in prompt else 9 if is_right else 2
        return {"content": f"<think>Verdict: INCORRECT</think>I compared both.\nVerdict: {verdict}"}

    @pytest.mark.parametrize(
        ("template", "metric", "mean"), [("correct", "judge_correct", 0.5), ("score", "judge_score", 5.5)]
    )
    def test_a_judge_grades_and_its_text_and_cost_are_kept(
        self, url: str, template: str, metric: str, mean: float
    ) -> None:
        options = {"judge": MODEL, "judge_template": template, "price_read": 1.0, "price_written": 1.0}
        outcome, _, requests = evaluated(url, self.write, offers=CHAT, **options)
        assert outcome.means[metric] == mean
        assert len(requests) == 2 * N_PROMPTS
        verdicts = stored(url, "extraction = 'judge'", "text")
        texts = stored(url, "extraction = 'judge_prompt'", "text")
        assert len(texts) == len(verdicts)
        assert all("Reference answer:" in text and "####" in text for text in texts), "as the judge received it"
        assert len(verdicts) == N_PROMPTS
        assert all(text.startswith("I compared both.") for text in verdicts)
        counted = sum(
            outcome.usage[f"{judge}tokens_{side}"] for judge in ("", "judge_") for side in ("read", "written")
        )
        assert outcome.usage["judge_tokens_read"] > 0
        assert outcome.usage["cost"] == pytest.approx(counted / 1e6)
        with tracker.open(url) as store:
            settings = json.loads(store.sql("SELECT settings FROM run")["settings"][0].as_py())
        assert settings["judge"]["model"] == MODEL
        assert "Reference answer:" in settings["judge"]["template"]["source"]

    def test_a_judge_without_a_verdict_leaves_the_prompt_without_an_answer(self, url: str) -> None:
        def write(text: str, _: Any) -> dict[str, Any]:
            return {"content": "I cannot tell." if "Verdict:" in text else "Something."}

        outcome, warnings, _ = evaluated(url, write, offers=CHAT, judge=MODEL)
        assert not outcome.is_complete
        assert any("has no verdict: 'I cannot tell.'" in warning for warning in warnings)

    def test_rubrics_of_users_are_checked(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.jinja"
        path.write_text('{% set scale = "score" %}\n{{ question }} {{ answer }}', encoding="utf-8")
        rubric = load_rubric(str(path))
        assert (rubric.metric, rubric.read_verdict("Verdict: 10"), rubric.read_verdict("7")) == ("judge_score", 10, 7)
        assert rubric.read_verdict("Verdict: 11") is None
        path.write_text("{{ questions }}", encoding="utf-8")
        with pytest.raises(BadInputError, match="unknown name 'questions'"):
            load_rubric(str(path))
        path.write_text("{{ " + "(" * 5_000, encoding="utf-8")
        with pytest.raises(BadInputError, match="nested too deeply"):
            load_rubric(str(path))
        with pytest.raises(BadInputError, match="Built in: correct, score"):
            load_rubric("fair")
        with pytest.raises(SelectionError, match="--judge-api-base"):
            Plan.from_options("gsm8k", "folder", judge="m")


PRICES: Any = {"price_read": 1000.0, "price_written": 1000.0, "max_tokens": 200}


class TestBudget:
    def test_the_evaluation_stops_before_its_budget_is_exceeded_and_resumes(self, url: str) -> None:
        whole, _, _ = evaluated(url, oracle, offers=CHAT, variant="whole", **PRICES)
        budget = round(whole.usage["cost"] / 2 + 0.4, 2)
        spent, n_before = 0.0, 0
        for allowed in (budget, 3 * budget):
            options = {"budget": f"{allowed:.2f} EUR", "concurrency": 1, **PRICES}
            if allowed == budget:
                with pytest.raises(ServerError, match=rf"of {allowed:.4g} EUR are spent.*larger --budget"):
                    evaluated(url, oracle, offers=CHAT, **options)
                with tracker.open(url) as store:
                    table = store.sql("SELECT settings FROM run WHERE variant = ''")
                usage = json.loads(table["settings"][0].as_py())["usage"]
                spent, n_before = usage["cost"], usage["n_prompts"]
                assert 0 < spent <= budget
                assert 0 < n_before < N_PROMPTS
            else:
                outcome, _, _ = evaluated(url, oracle, offers=CHAT, **options)
                assert outcome.is_complete
                assert outcome.n_new == N_PROMPTS - n_before
                assert outcome.usage["cost"] == pytest.approx(whole.usage["cost"])

    def test_no_sequence_of_concurrent_requests_exceeds_it(self) -> None:
        budget, stop = Budget(1.0, "", 1000.0, 1000.0), threading.Event()
        exhausted = []

        def send() -> None:
            try:
                for _ in range(30):
                    with budget.reserve({"max_tokens": 40}, stop) as reservation:
                        reservation.usage = Usage(n_read=18, n_written=20)
            except ServerError:
                exhausted.append(True)

        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 1.0 - 0.06 < budget.spent <= 1.0
        assert exhausted

    @pytest.mark.parametrize(
        ("budget", "message"), [("five", "must be an amount"), ("-1", "must be an amount"), ("5", "--price-read")]
    )
    def test_a_budget_needs_an_amount_and_prices(self, budget: str, message: str) -> None:
        with pytest.raises(SelectionError, match=message):
            Plan.from_options("gsm8k", MODEL, api_base="http://localhost/v1", budget=budget)
