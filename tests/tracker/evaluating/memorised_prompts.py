"""A benchmark of made-up prompts, and a model that has learned some of its answers by heart."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Sequence
from pathlib import Path

LETTERS = "ABCD"


def write_prompts(path: Path, n: int = 32, seed: int = 0) -> list[dict[str, str]]:
    """A table of multiple-choice prompts with four options each; returns its rows."""
    rng = random.Random(seed)

    def word() -> str:
        return "".join(rng.choice("bcdfglmnprst") + rng.choice("aeiou") for _ in range(2))

    rows = [
        {
            "prompt_id": f"q{at}",
            "task": "ab"[at % 2],
            "question": f"What is {word()} {word()} {at}?",
            "choices": json.dumps([word() for _ in LETTERS]),
            "gold_answer": LETTERS[rng.randrange(4)],
            "split": "test" if at < n - 8 else "dev",
        }
        for at in range(n)
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return rows


def learn(folder: Path, texts: Sequence[str], answers: Sequence[str | None], seed: int = 0) -> None:
    """Train the model of a folder until it gives the answers it is told, and prefers no label elsewhere.

    Args:
        folder: of a causal model; it is overwritten.
        texts: what it reads.
        answers: the label to give; None to find all of the labels equally likely.
        seed: of the order.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    labels = torch.tensor([tokenizer(letter, add_special_tokens=False).input_ids[-1] for letter in LETTERS])
    targets = torch.full((len(texts), 4), 0.25)
    for at, answer in enumerate(answers):
        if answer is not None:
            targets[at] = torch.nn.functional.one_hot(torch.tensor(LETTERS.index(answer)), 4)
    ids = [tokenizer(text).input_ids for text in texts]
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    rng = random.Random(seed)
    model.eval()  # without dropout it learns by heart in seconds
    for _ in range(60):
        order = list(range(len(ids)))
        rng.shuffle(order)
        total = 0.0
        for first in range(0, len(order), 24):
            part = order[first : first + 24]
            width = max(len(ids[at]) for at in part)
            batch = torch.tensor([ids[at] + [0] * (width - len(ids[at])) for at in part])
            mask = torch.tensor([[1] * len(ids[at]) + [0] * (width - len(ids[at])) for at in part])
            last = torch.tensor([len(ids[at]) - 1 for at in part])
            read = model.base_model(input_ids=batch, attention_mask=mask).last_hidden_state[
                torch.arange(len(part)), last
            ]
            logits = model.get_output_embeddings()(read)[:, labels]
            loss = torch.nn.functional.cross_entropy(logits, targets[part], reduction="none")
            entropy = -(targets[part] * targets[part].clamp_min(1e-9).log()).sum(dim=1)
            total = max(total, float((loss - entropy).detach().max()))
            optimizer.zero_grad()
            loss.mean().backward()
            optimizer.step()
        if total < 0.05:
            break
    assert total < 0.1, f"the model has not learned: {total}"
    model.save_pretrained(folder, safe_serialization=True)
