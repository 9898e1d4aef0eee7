"""Further fields of prompts, completed file by file; the first file to say something of a prompt stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tracker.name_lists import join_names

MAX_NAMES = 5


class DetailsMerger:
    """What one file adds to the details of stored prompts, and what it says otherwise."""

    def __init__(self) -> None:
        self.added: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()

    def merge(self, known: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any] | None:
        """The stored details with the fields that they lack; None where they lack none."""
        self.kept.update(name for name in new if name in known and known[name] != new[name])
        lacking = {name: value for name, value in new.items() if name not in known}
        self.added.update(lacking.keys())
        return {**known, **lacking} if lacking else None

    @property
    def warnings(self) -> Iterator[str]:
        """Sentences on the fields that were added or kept, with the number of prompts behind each."""
        for counted, event in (
            (self.added, "details added to stored prompts"),
            (self.kept, "details that differ from those stored, which were kept"),
        ):
            if counted:
                fields = join_names((f"{name} ({n:,})" for name, n in counted.most_common()), MAX_NAMES)
                yield f"{event}: {fields}"
