"""Further fields of prompts, added file by file; the value of the first file is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tracker.name_lists import join_names

MAX_NAMES = 5


class DetailsMerger:
    """Details that one file adds to stored prompts, and those that differ."""

    def __init__(self) -> None:
        self.added: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()

    def merge(self, known: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the stored details with the missing fields; None if there are none."""
        self.kept.update(name for name in new if name in known and known[name] != new[name])
        lacking = {name: value for name, value in new.items() if name not in known}
        self.added.update(lacking.keys())
        return {**known, **lacking} if lacking else None

    @property
    def warnings(self) -> Iterator[str]:
        """Return warnings about added and kept fields, with the number of prompts of each."""
        for counted, event in (
            (self.added, "details added to stored prompts"),
            (self.kept, "details that differ from the stored ones, which were kept"),
        ):
            if counted:
                fields = join_names((f"{name} ({n:,})" for name, n in counted.most_common()), MAX_NAMES)
                yield f"{event}: {fields}"
