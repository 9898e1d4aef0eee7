"""Options scored by ours and by lm-evaluation-harness: the same model, the same prompts, the same numbers."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness_job import (
    FAMILIES,
    LABELS,
    N_EXAMPLES,
    N_PROMPTS,
    ODD,
    load_harness_results,
    long_pair,
    make_rows,
)
from language_model_files import CONTEXT
from numpy.typing import NDArray
from stored_contents import contents

import tracker
from tracker.evaluating.local.loading import LanguageModel, load_language_model
from tracker.evaluating.local.option_scorer import OptionScorer
from tracker.evaluating.prompt_templates.rendered_prompt import FewShotExample, RenderedPrompt

TOLERANCE = 1e-4

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("lm_eval") is None, reason="lm-evaluation-harness is not installed"
)


def _format_question(row: dict[str, Any], with_options: bool) -> str:
    options = "".join(f"{label}. {option}\n" for label, option in zip(LABELS, row["options"], strict=True))
    return f"Question: {row['question']}\n{options if with_options else ''}Answer:"


def _questions(rows: list[dict[str, Any]], examples: list[dict[str, Any]], letters: bool) -> list[RenderedPrompt]:
    def list_options(row: dict[str, Any]) -> tuple[str, ...]:
        return LABELS if letters else tuple(row["options"])

    few_shot_examples = tuple(
        FewShotExample(question=_format_question(example, letters), answer=list_options(example)[example["gold"]])
        for example in examples
    )
    return [
        RenderedPrompt(
            prompt_id=i,
            examples=few_shot_examples,
            question=_format_question(row, letters),
            options=list_options(row),
            correct_option=row["gold"],
        )
        for i, row in enumerate(rows)
    ]


def _logprobs(scorer: OptionScorer, prompts: list[RenderedPrompt]) -> NDArray[np.float64]:
    results = {response.prompt_id: response for batch in scorer.respond(prompts, lambda _: False) for response in batch}
    return np.array([results[prompt.prompt_id].logprobs for prompt in prompts])


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return make_rows(N_PROMPTS + N_EXAMPLES)


@pytest.fixture(scope="module")
def peer(language_model_folders: dict[str, Path], folder_of_all_workers: Path) -> dict[str, Any]:
    """What the peer found: of each family the samples of both tasks, and the log-likelihoods of the odd requests."""
    results: dict[str, Any] = load_harness_results(folder_of_all_workers, language_model_folders)["families"]
    return results


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(family: str, language_model_folders: dict[str, Path]) -> LanguageModel:
    return load_language_model(str(language_model_folders[family]), device="cpu")


class TestAgainstReference:
    @pytest.mark.parametrize(("task", "method"), [("texts", "loglikelihood"), ("letters", "letters")])
    def test_it_reads_the_same_text(self, family: str, task: str, method: str, rows: Any, peer: Any) -> None:
        prompts = _questions(rows[N_EXAMPLES:], rows[:N_EXAMPLES], method == "letters")
        peer_values = peer[family]["samples"][task]
        assert [sample["text"] for sample in peer_values] == [prompt.text() for prompt in prompts]
        assert [sample["continuations"] for sample in peer_values] == [
            [prompt.join + option for option in prompt.options] for prompt in prompts
        ]

    @pytest.mark.parametrize(("task", "method"), [("texts", "loglikelihood"), ("letters", "letters")])
    def test_it_finds_the_same_log_likelihoods_and_choices(
        self, family: str, task: str, method: str, rows: Any, peer: Any, model: LanguageModel
    ) -> None:
        """The peer compares one spelling of each letter, as the method loglikelihood does with letters as options."""
        prompts = _questions(rows[N_EXAMPLES:], rows[:N_EXAMPLES], method == "letters")
        local_values = _logprobs(OptionScorer(model, method="loglikelihood"), prompts)
        samples = peer[family]["samples"][task]
        peer_values = np.array([sample["logprobs"] for sample in samples])
        assert peer_values.shape == (N_PROMPTS, 4)
        np.testing.assert_allclose(local_values, peer_values, atol=TOLERANCE, rtol=0)
        gold = np.array([prompt.correct_option for prompt in prompts])
        lengths = np.array([[len(option) for option in prompt.options] for prompt in prompts])
        assert (local_values.argmax(axis=1) == peer_values.argmax(axis=1)).all()
        assert [float(right) for right in local_values.argmax(axis=1) == gold] == [sample["acc"] for sample in samples]
        assert [float(right) for right in (local_values / lengths).argmax(axis=1) == gold] == [
            sample["acc_norm"] for sample in samples
        ]

    def test_it_reads_odd_texts_the_same_whatever_stands_beside_them(self, peer: Any, family: str, model: Any) -> None:
        """An empty text differs for T5: the peer gives its encoder <s>, ours </s>, as its tokenizer ends every text."""
        odd_prompts = [
            RenderedPrompt(prompt_id=i, question=text, join="", options=(option,))
            for i, (text, option) in enumerate(ODD.values())
            if family != "t5" or text
        ]
        peer_values = [peer[family]["requests"][prompt.prompt_id] for prompt in odd_prompts]
        scorer = OptionScorer(model, method="loglikelihood")
        together = _logprobs(scorer, odd_prompts)[:, 0]
        separately = [_logprobs(scorer, [prompt])[0, 0] for prompt in odd_prompts]
        np.testing.assert_allclose(together, peer_values, atol=TOLERANCE, rtol=0)
        np.testing.assert_allclose(separately, peer_values, atol=TOLERANCE, rtol=0)

    def test_it_cuts_a_prompt_that_is_too_long_at_the_same_place_where_that_is_chosen(
        self, family: str, peer: Any, model: LanguageModel
    ) -> None:
        text, option = long_pair()
        prompt = RenderedPrompt(prompt_id=1, question=text, join="", options=(option,))
        local_values = _logprobs(OptionScorer(model, method="loglikelihood", too_long="cut"), [prompt])
        np.testing.assert_allclose(local_values[0, 0], peer[family]["requests"][-1], atol=TOLERANCE, rtol=0)

    def test_that_prompt_is_longer_than_the_model_reads(self, model: LanguageModel) -> None:
        assert model.context == CONTEXT
        assert len(model.tokenizer(long_pair()[0])["input_ids"]) > CONTEXT + 1


class TestStoredResults:
    """What `tracker.integrations.lm_eval` stores of an evaluation by the peer."""

    @pytest.fixture
    def folder(self, peer: Any, folder_of_all_workers: Path) -> Path:
        return folder_of_all_workers / "peer"

    @staticmethod
    def imported(folder: Path, url: str) -> str:
        with tracker.open(url) as store:
            (result,) = store.ingest(folder)
        return result.summary()

    def test_it_equals_the_import_of_what_the_command_line_writes(self, folder: Path, tmp_path: Path) -> None:
        stored, by_hand = contents(f"sqlite:///{folder}/stored.db"), f"sqlite:///{tmp_path}/by_hand.db"
        summary = self.imported(folder / "written", by_hand)
        assert f"{2 * N_PROMPTS} new prompts" in summary
        assert len(stored["score"]) == 2 * N_PROMPTS * 3
        assert without_times(stored) == without_times(contents(by_hand))

    def test_a_later_import_of_its_files_changes_nothing(self, folder: Path, tmp_path: Path) -> None:
        url = f"sqlite:///{shutil.copy(folder / 'stored.db', tmp_path)}"
        before = contents(url)
        assert self.imported(folder / "kept", url).endswith("ingested before, nothing changed")
        assert contents(url) == before

    def test_results_are_stored_once(self, folder: Path) -> None:
        stored, again = (contents(f"sqlite:///{folder}/{name}.db") for name in ("stored", "again"))
        for table in ("run", "prompt", "score", "answer", "task_score"):
            assert stored[table] == again[table]


def without_times(stored: dict[str, list[str]]) -> dict[str, list[str]]:
    """Contents without what differs between two files of one evaluation: time stamps and digests."""
    times = r"\d{4}-\d\d-\d\dT[\d.-]+|\b[0-9a-f]{64}\b"
    return {table: [re.sub(times, "", row) for row in rows] for table, rows in stored.items()}
