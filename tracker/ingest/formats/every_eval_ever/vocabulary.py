"""Words of Every Eval Ever, and ours for what its schema has no field for: our export writes them, our reader reads.

The schema lets texts be added under any name in several places; ours begin with ``suffrage_``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

VERSION = "0.3.0"
NAMESPACE = "every_eval_ever"
UNKNOWN = "unknown"
"""The schema's word for what is not known; an extraction without a name is called so."""

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
"""The detail of a prompt that lists its right answers, where there are several."""


def sample_hash(raw: str, reference: Sequence[str]) -> str:
    """The hash by which the schema's authors tell prompts: SHA-256 of canonical JSON of text and references."""
    content = json.dumps({"raw": raw, "reference": list(reference)}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()
