"""`suffrage evaluate --show-prompt` and `--dry-run` of a server: neither needs a model, nor the extra."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import tracker
from tracker.cli import suffrage

COMMAND = ("evaluate", "sums", "--model", "none-of-that-name", "--few-shot", "1", "--few-shot-split", "dev")
FIRST = "Two and two?\nA. 3\nB. 4\nAnswer:"
SHOT = "One and one?\nA. 2\nB. 5\nAnswer:"


@pytest.fixture
def url(sqlite_url: str) -> str:
    rows = [
        {"q": "One and one?", "o": ["2", "5"], "a": "A", "s": "dev"},
        {"q": "Two and two?", "o": ["3", "4"], "a": "B", "s": "test"},
    ]
    Path("sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with tracker.open(sqlite_url) as store:
        fields = {"text": "q", "choices": "o", "answer": "a", "split": "s"}
        store.prompts_from("sums", "sums.jsonl", fields=fields, answer_is="letter")
    return sqlite_url


def print_prompt(url: str, *more: str) -> str:
    result = CliRunner().invoke(suffrage, [*COMMAND, "--show-prompt", *more, "--database", url])
    assert result.exit_code == 0, result.output
    return result.stdout


class TestShown:
    def test_text_options_and_the_gold_one(self, url: str) -> None:
        assert print_prompt(url) == (
            f"--- full, letters, template multiple_choice\n{SHOT} A\n\n{FIRST}\n"
            "--- option 1: ' A'\n--- option 2 (gold): ' B'\n"
        )

    def test_in_a_conversation_turns(self, url: str) -> None:
        assert print_prompt(url, "--chat") == (
            f"--- full, letters, template multiple_choice\n--- user\n{SHOT}\n--- assistant\nA\n--- user\n{FIRST}\n"
            "--- option 1: 'A'\n--- option 2 (gold): 'B'\n"
        )

    def test_nothing_of_the_extra_is_imported_for_it_nor_to_estimate_a_server(self, url: str) -> None:
        arguments = [*COMMAND, "--database", url]
        script = (
            "import sys; from click.testing import CliRunner; from tracker.cli import suffrage\n"
            f"for more in (['--show-prompt'], ['--dry-run', '--api-base', 'http://127.0.0.1:9/v1']):\n"
            f"    result = CliRunner().invoke(suffrage, {arguments!r} + more)\n"
            "    assert not result.exit_code, result.output\n"
            "print([one for one in ('torch', 'transformers', 'rouge_score', 'datasets') if one in sys.modules])"
        )
        completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert completed.stdout.strip() == "[]"
