"""Texts of the prompts beside judgments: the file question.jsonl of Arena-Hard, LiveBench and MT-Bench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tracker.ingest.files.json_files import iterate_json_lines
from tracker.ingest.files.json_values import mapping, text

NAME = "question.jsonl"
JUDGMENTS = "model_judgment"


def find_questions(path: Path) -> Sequence[Path]:
    """Return the question file of a judgment file, which is beside the folder ``model_judgment``; empty if missing."""
    folder = next((parent.parent for parent in path.absolute().parents if parent.name == JUDGMENTS), None)
    questions = None if folder is None else folder / NAME
    return (questions,) if questions is not None and questions.is_file() else ()


def read_questions(path: Path) -> Mapping[str, str]:
    """Return the text of each question by its identifier.

    A question with several turns has no text, since later turns depend on the responses.

    Args:
        path: the judgment file.

    Raises:
        BadInputError: the question file is invalid.
    """
    texts: dict[str, str] = {}
    for file in find_questions(path):
        for _, row in iterate_json_lines(file):
            question = mapping(row)
            key = text(question.get("uid")) or text(question.get("question_id"))
            turns = question.get("turns")
            turn = turns[0] if isinstance(turns, list) and len(turns) == 1 else question.get("prompt")
            content = text(turn.get("content") if isinstance(turn, dict) else turn)
            if key and content:
                texts[key] = content
    return texts
