"""What `suffrage evaluate --dry-run` foretells of a server, which is not asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tracker
from tracker.evaluating.estimate import LETTERS_PER_TOKEN, EvaluationEstimate, estimate
from tracker.evaluating.judge import MAX_TOKENS
from tracker.evaluating.plan import Plan
from tracker.evaluating.preparation import prepare

SERVER = {"api_base": "http://127.0.0.1:9/v1", "price_read": 1_000_000.0, "price_written": 0.0}


@pytest.fixture(scope="module")
def url(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("estimate")
    path = folder / "store.db"
    path.write_bytes(sqlite_template.read_bytes())
    lines = [
        f'{{"id": "{n}", "text": "Which of these {"is it " * n}?", "choices": ["one", "two", "three"], "answer": "A"}}'
        for n in range(1, 9)
    ]
    (folder / "quiz.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with tracker.open(f"sqlite:///{path}") as store:
        store.prompts_from("quiz", folder / "quiz.jsonl")
    return f"sqlite:///{path}"


def estimate_one(url: str, **plan_options: Any) -> tuple[EvaluationEstimate, list[Any]]:
    plan = Plan.from_options("quiz", "m", **SERVER, **plan_options)
    with tracker.open(url) as store:
        return estimate(store.engine, plan)[0], list(prepare(store.engine, plan).rendered["full"].prompts)


class TestServers:
    def test_the_likelihood_of_each_option_has_the_whole_text_read(self, url: str) -> None:
        estimated, prompts = estimate_one(url, template="cloze")
        sent = sum(len(prompt.text() + prompt.join + option) for prompt in prompts for option in prompt.options)
        assert estimated.n_tokens_read == sent // LETTERS_PER_TOKEN
        assert estimated.cost == pytest.approx(estimated.n_tokens_read)

    @pytest.mark.parametrize("trials", [1, 3])
    def test_every_trial_reads_the_text(self, url: str, trials: int) -> None:
        estimated, prompts = estimate_one(url, template="written", trials=trials, max_tokens=7)
        assert estimated.n_tokens_read == trials * sum(len(prompt.text()) for prompt in prompts) // LETTERS_PER_TOKEN
        assert estimated.n_tokens_written == trials * 7 * len(prompts)

    def test_labels_are_read_once_and_what_is_estimated_is_no_bound(self, url: str) -> None:
        estimated, prompts = estimate_one(url)
        assert estimated.n_tokens_read == sum(len(prompt.text()) for prompt in prompts) // LETTERS_PER_TOKEN
        assert "about" in estimated.summary()
        assert "at most" not in estimated.summary().split(";")[-1]

    def test_a_judge_reads_each_response_and_its_cost_counts(self, url: str) -> None:
        options = {"template": "written", "trials": 2, "max_tokens": 50}
        alone, prompts = estimate_one(url, **options)
        with_judge, _ = estimate_one(url, judge="j", **options)
        assert (alone.n_judge_tokens_read, alone.n_judge_tokens_written) == (0, 0)
        assert with_judge.n_judge_tokens_written == 2 * len(prompts) * MAX_TOKENS
        questions = sum(len(prompt.question) for prompt in prompts) // LETTERS_PER_TOKEN
        assert with_judge.n_judge_tokens_read > 2 * (questions + 50 * len(prompts))
        assert with_judge.cost == pytest.approx((alone.cost or 0) + with_judge.n_judge_tokens_read)
        assert f"the judge about {with_judge.n_judge_tokens_read:,} input tokens" in with_judge.summary()
