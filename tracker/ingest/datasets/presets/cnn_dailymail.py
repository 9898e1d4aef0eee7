"""CNN/Daily Mail: news articles with highlights as reference summaries."""

from __future__ import annotations

from tracker.ingest.datasets.preset import Preset
from tracker.ingest.datasets.row import DatasetRow, PublishedPrompt


def read(row: DatasetRow) -> PublishedPrompt | str:
    """The article is the text, and the highlights are the reference answer."""
    if not str(row.value("article") or "").strip() and "article" in row.fields:
        return "without an article"
    return PublishedPrompt(
        text=row.text("article"), answer=row.text("highlights"), id=str(row.value("id") or "")
    )  # fmt: skip


PRESET = Preset(read=read, hub="abisee/cnn_dailymail", configs=("3.0.0",))
