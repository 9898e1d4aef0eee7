"""Settings by which a run describes its evaluation; they identify runs evaluated here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

IDENTITY = "identity"
USAGE = "usage"
SKIPPED = "left_out"
COMMAND = "command"
N_PROMPTS = "n_prompts"

BOOKKEEPING = (IDENTITY, USAGE, SKIPPED, COMMAND)
"""Settings that describe an evaluation without deciding its responses; `identity` is the hash of those that do."""

SHA256 = re.compile(r"[0-9a-f]{64}")


def evaluation_identity(settings: object) -> str | None:
    """SHA-256 of everything that decided the responses of a run evaluated here; None for runs from files."""
    identity = settings.get(IDENTITY) if isinstance(settings, Mapping) else None
    return identity if isinstance(identity, str) and SHA256.fullmatch(identity) else None


def remove_evaluation(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as a file has them, which may describe an evaluation, but cannot be the run that it created."""
    return {
        name: value for name, value in settings.items() if name != IDENTITY or evaluation_identity(settings) is None
    }


def describe_progress(settings: object) -> str:
    """Describe the progress of an evaluation: '132 of 500 prompts'."""
    values = settings if isinstance(settings, Mapping) else {}
    usage, n_prompts = values.get(USAGE), values.get(N_PROMPTS)
    answered = usage.get("n_prompts", 0) if isinstance(usage, Mapping) else 0
    return f"{answered:,} of {n_prompts:,} prompts" if isinstance(n_prompts, int) else f"{answered:,} prompts"


def get_command(settings: object, benchmark: str, model: str) -> str:
    """Return the command that resumes an evaluation."""
    command = settings.get(COMMAND) if isinstance(settings, Mapping) else None
    if isinstance(command, str) and command:
        return command
    return f"{shlex.join(['suffrage', 'evaluate', benchmark, '--model', model])}, with the same options as before"
