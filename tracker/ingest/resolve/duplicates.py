"""Prompts to which a harness gives the same name: disambiguated by their numbers, where file and store have them.

Such prompts of a task are called ``key``, ``key#1``, ``key#2``, … in the order in which a file has them. A file that
has only some of them counts otherwise than one that has all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain, count
from typing import Any

Name = tuple[int, str]
"""Task and key."""
MARK = "#"


def strip_count(name: Name) -> Name:
    """Remove the count of a duplicate name."""
    return name[0], name[1].partition(MARK)[0]


def disambiguate(numbers: Mapping[Name, Any], stored: Mapping[Name, Any]) -> dict[Name, Name]:
    """Return what the store calls prompts that a file counts otherwise.

    A prompt whose number is stored has the name that is stored with it. The others keep theirs, or take the first that
    is free; where the numbers of some are stored, a name that is stored with another number is not free. Different
    prompts have different names.

    Args:
        numbers: of the file's prompts, by name; each once in its task, None where unknown.
        stored: of the store's prompts, by name; None where unknown.
    """
    members: dict[Name, list[Name]] = defaultdict(list)
    for name in numbers:
        members[strip_count(name)].append(name)
    stored_names: dict[Name, dict[Any, Name]] = defaultdict(dict)
    for name, number in stored.items():
        if number is not None:
            stored_names[strip_count(name)].setdefault(number, name)
    renamed: dict[Name, Name] = {}
    for group, names in members.items():
        known = stored_names[group]
        certain = {name: known[numbers[name]] for name in names if numbers[name] in known}
        used = set(known.values()) if certain else set()
        renamed |= certain
        for name in names:
            if name not in certain:
                renamed[name] = next(free for free in chain([name], _counted_names(group)) if free not in used)
                used.add(renamed[name])
    return renamed


def _counted_names(group: Name) -> Iterator[Name]:
    yield group
    yield from ((group[0], f"{group[1]}{MARK}{place}") for place in count(1))
