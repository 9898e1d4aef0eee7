"""What the settings of a run say of its evaluation; runs that were made here, not read from a file, are known by it."""

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
"""Settings that describe an evaluation and decide none of its answers; `identity` sums up those that do."""

SHA256 = re.compile(r"[0-9a-f]{64}")


def evaluation_identity(settings: object) -> str | None:
    """SHA-256 of all that decided the answers of a run that was evaluated here; None for runs from files."""
    identity = settings.get(IDENTITY) if isinstance(settings, Mapping) else None
    return identity if isinstance(identity, str) and SHA256.fullmatch(identity) else None


def remove_evaluation(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a file gives them, who may tell of an evaluation, but cannot be the run that it made."""
    return {
        name: value for name, value in settings.items() if name != IDENTITY or evaluation_identity(settings) is None
    }


def describe_progress(settings: object) -> str:
    """How far an evaluation came: '132 of 500 prompts'."""
    values = settings if isinstance(settings, Mapping) else {}
    usage, n_prompts = values.get(USAGE), values.get(N_PROMPTS)
    answered = usage.get("n_prompts", 0) if isinstance(usage, Mapping) else 0
    return f"{answered:,} of {n_prompts:,} prompts" if isinstance(n_prompts, int) else f"{answered:,} prompts"


def get_command(settings: object, benchmark: str, model: str) -> str:
    """The command that goes on with an evaluation."""
    command = settings.get(COMMAND) if isinstance(settings, Mapping) else None
    if isinstance(command, str) and command:
        return command
    return f"{shlex.join(['suffrage', 'evaluate', benchmark, '--model', model])}, with the options of then"
