"""Small models for pages that evaluate and embed: their weights are computed, not trained."""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from doc_programs import ROOT, run_line, working_folder
from page_files import write_quiz

import tracker

sys.path += [str(ROOT / "tests/tracker")]

LETTERS = "ABCD"
PREFERENCE = 3.0
"""How much the logit of the chosen label exceeds the others."""


def write_quiz_models(folder: Path) -> None:
    """`one` and `two`: they choose the reference answers of twelve prompts without the question, and more with it."""
    from language_model_files import write_language_model

    from tracker.evaluating.plan import Plan
    from tracker.evaluating.preparation import prepare

    write_quiz(folder)
    with working_folder(folder), contextlib.redirect_stderr(io.StringIO()), tracker.open("sqlite:///quiz.db") as store:
        write_language_model(Path("one"), "llama", size=64)
        shutil.copytree("one", "two")
        store.ingest("questions.csv", benchmark="quiz")
        options = {"template": "smart", "conditions": ("full", "answer_only"), "device": "cpu"}
        rendered = prepare(store.engine, Plan.from_options("quiz", "one", **options)).rendered
        for number, name in enumerate(("one", "two")):
            texts, answers = [], []
            for condition, n_right in (("full", 16 + number), ("answer_only", 14 + number)):
                for position, prompt in enumerate(rendered[condition].prompts):
                    reference = prompt.correct_option or 0
                    known = position < 12 or (position + 5 * number) % 12 < n_right - 12
                    texts.append(prompt.text())
                    answers.append(reference if known else (reference + 1 + number) % len(LETTERS))
            choose_answers(Path(name), texts, answers)
    for path in folder.glob("quiz.db*"):
        path.unlink()


def choose_answers(folder: Path, texts: Sequence[str], answers: Sequence[int]) -> None:
    """Solve for the output weights of the labels with which a model chooses these options after these texts."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        for weight in model.model.layers.parameters():
            if weight.dim() > 1:
                weight.mul_(8.0)  # so that texts differ clearly in their last state
        model.model.embed_tokens.weight.mul_(30.0)
        states = torch.stack(
            [model.model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, -1] for text in texts]
        ).double()
        logits = PREFERENCE * torch.nn.functional.one_hot(torch.tensor(answers), len(LETTERS)).double()
        solved = torch.linalg.lstsq(states, logits, driver="gelsd").solution.T.float()
        output = model.get_output_embeddings().weight
        output.zero_()
        for letter, row in zip(LETTERS, solved, strict=True):
            output[tokenizer(letter, add_special_tokens=False).input_ids[-1]] = row
    model.save_pretrained(folder, safe_serialization=True)


def write_encoders(folder: Path) -> None:
    """Two encoders and a language model, benchmarks with texts and scores, and vectors of an encoder elsewhere."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from encoder_files import write_encoder
    from language_model_files import write_language_model

    words = ["river", "market", "engine", "garden", "letter", "winter", "bridge", "doctor"]
    n = 48
    rows = ["prompt_id,task,question,choices,answer,reason"]
    scores = ["prompt_id,org/model-A,org/model-B,org/model-C,org/model-D"]
    rng = np.random.default_rng(0)
    for at in range(n):
        word = words[at % len(words)]
        rows.append(
            f'q{at},{"law" if at % 2 else "physics"},Which {word} is number {at}?,"[""one"", ""two""]",A,a {word}'
        )
        values = (rng.random(4) < 0.3 + 0.1 * (at % len(words) / 2)).astype(int)
        scores.append(",".join([f"q{at}", *map(str, values)]))
    (folder / "prompts.csv").write_text("\n".join(rows) + "\n")
    (folder / "scores.csv").write_text("\n".join(scores) + "\n")
    with working_folder(folder), contextlib.redirect_stderr(io.StringIO()):
        write_encoder(Path("models/bge-small-en-v1.5"))
        write_language_model(Path("models/llama"), "llama", size=64)
        vectors = rng.normal(size=(n, 8)).astype("float32")
        names = [f"q{at}" for at in range(n)]
        pq.write_table(pa.table({"prompt_id": names, "vector": list(vectors)}), "ada.parquet")
        for benchmark in ("mmlu_pro", "anli"):
            run_line(f"suffrage ingest prompts.csv --benchmark {benchmark} --no-mlflow")
        run_line("suffrage ingest scores.csv --benchmark mmlu_pro --metric accuracy --no-mlflow")
        Path("prompts.csv").unlink()
        Path("scores.csv").unlink()
