"""Tasks of lm-evaluation-harness, imported from its own files: the same texts, log-likelihoods and scores."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from harness_job import FILE_FAMILY, N_EXAMPLES, N_PROMPTS, load_harness_results, run_harness, write_file_job
from language_model_files import write_language_model
from lm_eval_task_files import N_DOCUMENTS, ORDINARY, TASKS, TEXTS, VARIATIONS, write_documents

import tracker
from tracker.database import connect
from tracker.evaluating.evaluation import evaluate
from tracker.evaluating.model_under_test import load_model_under_test
from tracker.evaluating.plan import Plan
from tracker.evaluating.preparation import PreparedEvaluation, prepare
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.response_scoring import ResponseScorer
from tracker.evaluating.responses import Response
from tracker.evaluating.scoring.score_response import score_response
from tracker.ingest.datasets.lm_eval.ingest_tasks import LmEvalOptions, ingest_lm_eval_tasks

CONTEXT, SIZE = 4_096, 64
TOLERANCE = 1e-3
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("lm_eval") is None, reason="lm-evaluation-harness is not installed"
)


class ImportedTask:
    """An imported task with the model's responses and scores, in the order of the documents."""

    def __init__(self, url: str, name: str, path: Path, model: Path) -> None:
        self.engine = connect(url)
        ingest_lm_eval_tasks(self.engine, [str(path)], LmEvalOptions(trust_code=True))
        self.plan = Plan.from_options(name, str(model), device="cpu", batch_size=4)
        self.prepared: PreparedEvaluation = prepare(self.engine, self.plan)
        rendered = self.prepared.rendered["full"].prompts
        numbers = dict(zip(self.prepared.prompts.prompt_ids.tolist(), self.prepared.prompts.details, strict=True))
        self.prompts: list[RenderedPrompt] = sorted(
            rendered, key=lambda prompt: numbers[prompt.prompt_id]["lm_eval_doc_id"]
        )
        under_test = load_model_under_test(self.plan, self.prepared, lambda _: None)
        blocks = under_test.backend.respond(rendered, lambda _: False)
        responses = {response.prompt_id: response for block in blocks for response in block}
        self.responses: list[Response] = [responses[prompt.prompt_id] for prompt in self.prompts]
        by_id = {prompt.prompt_id: prompt for prompt in self.prompts}
        scorer = ResponseScorer(prepared=self.prepared, model=under_test, prompts=by_id)
        failed: dict[int, Response] = {}
        rows = {row.prompt_id: row for row in scorer.score(self.responses, failed)}
        assert not failed
        self.scores = [dict(rows[prompt.prompt_id].scores) for prompt in self.prompts]

    def arguments(self, prompt: RenderedPrompt) -> list[list[str]]:
        """The texts that are sent, as pairs of context and continuation."""
        head = prompt.head()
        contexts = prompt.contexts or (prompt.question,) * len(prompt.options)
        return [[head + text, prompt.join + option] for text, option in zip(contexts, prompt.options, strict=True)]


def compare(name: str, task: ImportedTask, results: dict[str, Any]) -> dict[str, Any]:
    """Compare a task with what the harness found; returns a row for a table."""
    documents = results["documents"]
    assert len(task.prompts) == len(documents)
    largest = 0.0
    for prompt, response, scores, entry in zip(task.prompts, task.responses, task.scores, documents, strict=True):
        expected = dict(entry["scores"])
        if task.prepared.method == "generation":
            assert prompt.text() == entry["arguments"][0][0]
            assert response.text == entry["responses"][0]
        else:
            assert task.arguments(prompt) == entry["arguments"]
            assert response.logprobs is not None
            logprobs = [float(logprob) for logprob, _ in entry["responses"]]
            np.testing.assert_allclose(response.logprobs, logprobs, atol=TOLERANCE, rtol=0)
            largest = max(largest, float(np.abs(response.logprobs - logprobs).max()))
        if "perplexity" in expected:
            expected["loglikelihood"] = expected.pop("perplexity")
        assert set(expected) <= set(scores)
        for metric, value in expected.items():
            assert scores[metric] == pytest.approx(value, abs=TOLERANCE), metric
    means = {metric: float(np.mean([scores[metric] for scores in task.scores])) for metric in task.scores[0]}
    return {"task": name, "n": len(documents), "difference": largest, **means}


def compare_texts(task: ImportedTask, results: dict[str, Any]) -> None:
    """Compare the scores of some texts as responses to the first document."""
    prompt = task.prompts[0]
    texts = TEXTS if task.prepared.method == "generation" else ()
    for text, expected in zip(texts, results["texts"], strict=True):
        response = Response(prompt_id=prompt.prompt_id, text=text)
        assert dict(score_response(prompt, response, method="generation").scores) == expected, text


def answer_some_documents(folder: Path, model: Path) -> None:
    """Rewrite reference answers of three tasks, so that some are what the model generates."""
    for name, suffix, field in (("bbh_fewshot_boolean_expressions", "json", "target"), ("nq_open", "jsonl", "answer")):
        task = ImportedTask(f"sqlite:///{folder / name}.first.db", name, folder / f"{name}.yaml", model)
        texts = [response.text or "" for response in task.responses]
        (path,) = (path for split in ("test", "validation") if (path := folder / f"{name}_{split}.{suffix}").exists())
        rows = json.loads(path.read_text()) if suffix == "json" else list(map(json.loads, path.open()))
        for row, text in list(zip(rows, texts, strict=True))[:4]:
            row[field] = text if field == "target" else ["another", text.strip()]
        write_documents(path, rows)
    path = folder / "lambada_openai_test.jsonl"
    contexts = [json.loads(line)["text"] for line in path.open()]
    write_documents(path, [{"text": text} for text in extend_greedily(contexts, model)])


def extend_greedily(texts: list[str], folder: Path) -> list[str]:
    """Add the likeliest next token to texts; where it begins a word, greedy decoding generates the last word."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    extended = []
    for text in texts:
        ids = tokenizer(text).input_ids
        with torch.inference_mode():
            scores = model(input_ids=torch.tensor([ids])).logits[0, -1]
        extended.append(tokenizer.decode([*ids, int(scores.argmax())], skip_special_tokens=True))
    return extended


@pytest.fixture(scope="module")
def peer(folder_of_all_workers: Path, language_model_folders: dict[str, Path]) -> dict[str, Any]:
    results: dict[str, Any] = load_harness_results(folder_of_all_workers, language_model_folders)["files"]
    return results


@pytest.fixture(scope="module", params=ORDINARY)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def task(
    name: str,
    peer: dict[str, Any],
    folder_of_all_workers: Path,
    language_model_folders: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> ImportedTask:
    url = f"sqlite:///{tmp_path_factory.mktemp(name) / 'store.db'}"
    path = folder_of_all_workers / f"peer/tasks/{name}.yaml"
    return ImportedTask(url, name, path, language_model_folders[FILE_FAMILY])


class TestAgainstReference:
    def test_texts_log_likelihoods_and_scores_are_those_of_the_harness(
        self, name: str, task: ImportedTask, peer: dict[str, Any]
    ) -> None:
        assert compare(name, task, peer[name])["n"] == N_DOCUMENTS

    def test_generated_texts_are_scored_the_same(self, name: str, task: ImportedTask, peer: dict[str, Any]) -> None:
        compare_texts(task, peer[name])

    @pytest.mark.soak
    def test_all_tasks(self, tmp_path: Path) -> None:
        model = write_language_model(tmp_path / "model", FILE_FAMILY, size=SIZE, context=CONTEXT)
        files = write_file_job(tmp_path / "tasks", (*TASKS, *VARIATIONS), model)
        answer_some_documents(tmp_path / "tasks", model)
        run_harness(tmp_path, {"models": {}, "tasks": [], "files": files})
        results = json.loads((tmp_path / "found.json").read_text())["files"]
        assert results["bbh_fewshot_boolean_expressions"]["results"]["exact_match,none"] >= 0.5
        assert results["nq_open"]["results"]["exact_match,remove_whitespace"] > 0
        assert results["lambada_openai"]["results"]["acc,none"] > 0
        for name in (*TASKS, *VARIATIONS):
            task = ImportedTask(f"sqlite:///{tmp_path / name}.db", name, tmp_path / f"tasks/{name}.yaml", model)
            compare(name, task, results[name])
            compare_texts(task, results[name])

    def test_results_of_the_harness_have_the_same_prompts(
        self, peer: dict[str, Any], folder_of_all_workers: Path, tmp_path: Path
    ) -> None:
        """Of the tasks `texts` and `letters`, of which the harness has written its result files."""
        job = json.loads((folder_of_all_workers / "peer/job.json").read_text())
        url = f"sqlite:///{tmp_path / 'store.db'}"
        for settings in job["tasks"]:
            path = tmp_path / f"{settings['task']}.yaml"
            path.write_text(yaml.safe_dump(settings))
            (imported,) = ingest_lm_eval_tasks(connect(url), [str(path)])
            assert imported.result.changes.n_prompts_new == N_PROMPTS + N_EXAMPLES
        with tracker.open(url) as store:
            (result,) = store.ingest(folder_of_all_workers / "peer/written")
        assert "new prompts" not in result.summary()

    def test_an_evaluation_stores_the_means(self, name: str, task: ImportedTask, peer: dict[str, Any]) -> None:
        (outcome,) = evaluate(task.engine, task.plan)
        assert outcome.is_complete
        for key, value in peer[name]["results"].items():
            metric, _, filter_name = key.partition(",")
            stored = metric if filter_name == "none" else key
            if stored in outcome.means:
                assert outcome.means[stored] == pytest.approx(value, abs=TOLERANCE)
