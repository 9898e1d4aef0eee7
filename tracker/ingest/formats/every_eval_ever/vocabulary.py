"""Field names of Every Eval Ever, and the additional ones that our export writes and our reader reads.

The schema allows additional texts in several places; our names begin with ``suffrage_``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

VERSION = "0.3.0"
NAMESPACE = "every_eval_ever"
UNKNOWN = "unknown"
"""The schema's value for unknown; also the name of an unnamed extraction."""

# Of a run, in source_metadata.additional_details.
BENCHMARK, LABEL, CONDITION, VARIANT = (f"suffrage_{name}" for name in ("benchmark", "label", "condition", "variant"))
FEW_SHOT, LIMITED, SETTINGS, STARTED = (f"suffrage_{name}" for name in ("few_shot", "limited", "settings", "started"))
# Of a task, in source_data.additional_details; of a result over all tasks, in score_details.details.
TASK, SUMMARY = "suffrage_task", "suffrage_summary"
# Of a prompt, trial and answer, in the metadata of an instance.
TRIAL, NAMED_BY, SPLIT, ANSWERS, AS_JSON = (
    f"suffrage_{name}" for name in ("trial", "namespace", "split", "answers", "json")
)
PREFIX = "suffrage_"
ACCEPTED = "accepted_answers"
"""Detail of a prompt that lists its accepted answers if there are several."""


def sample_hash(raw: str, reference: Sequence[str]) -> str:
    """Return the schema's prompt hash: SHA-256 of the canonical JSON of text and references."""
    content = json.dumps({"raw": raw, "reference": list(reference)}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()
