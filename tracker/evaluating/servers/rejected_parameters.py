"""Request parameters that a server rejects: dropped, or renamed, after the first rejection."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

from tracker.name_lists import join_names

DROPPABLE = ("temperature", "top_p", "seed", "stop")
"""Parameters without which a server still generates text."""
RENAMED = {"max_tokens": "max_completion_tokens"}
"""Parameters that newer models expect under another name."""
REJECTION_STATUSES = (400, 422)
REJECTION = re.compile(
    r"unsupported|not (be )?(supported|permitted|allowed|recogni[sz]ed)|unrecogni[sz]ed|unknown|unexpected"
    r"|does not support|doesn't support|extra (inputs|fields)|only the default|deprecated|use 'max_completion_tokens'",
    re.I,
)
"""A message that rejects a parameter itself, not only its value."""


class RequestParameters:
    """Turns request bodies into those that a server accepts; shared by all threads.

    Args:
        extra: fields that are added to each body, and replace those of the same name.

    Attributes:
        dropped: names of rejected parameters that are not sent any more, in the order of their rejection.
    """

    def __init__(self, extra: Mapping[str, Any] | None = None) -> None:
        self._extra = dict(extra or {})
        self._new_names: dict[str, str] = {}
        self._lock = threading.Lock()
        self.dropped: list[str] = []

    def adapt(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body to send."""
        kept = {self._new_names.get(name, name): value for name, value in body.items() if name not in self.dropped}
        return kept | self._extra

    def learn(self, sent: Mapping[str, Any], status: int, message: str, parameter: str) -> bool:
        """Learn from a rejection; return whether the request can be sent again without the rejected parameters.

        Args:
            sent: the rejected body, as adapted.
            status: HTTP status.
            message: the server's message.
            parameter: name of the rejected parameter, if the server states it; else ''.
        """
        if status not in REJECTION_STATUSES or not REJECTION.search(message):
            return False
        stated = parameter.rsplit(".", 1)[-1]
        possible = [name for name in (*DROPPABLE, *RENAMED) if name in sent and name not in self._extra]
        rejected = [name for name in possible if name == stated] or [
            name for name in possible if re.search(rf"\b{name}\b", message)
        ]
        with self._lock:
            for name in rejected:
                if name in RENAMED:
                    self._new_names[name] = RENAMED[name]
                elif name not in self.dropped:
                    self.dropped.append(name)
        return bool(rejected)

    def list_warnings(self, n_reported: int = 0) -> list[str]:
        """Return a warning about the dropped parameters, except those reported before."""
        names = self.dropped[n_reported:]
        if not names:
            return []
        return [
            f"The server rejects {join_names(names, len(names))}; requests are sent without, and the server's defaults "
            "apply."
        ]
