"""Disambiguation of prompts to which a harness gives the same name, by their numbers.

Such prompts of a task are named ``key``, ``key#1``, ``key#2``, … in the order of the file. A file with only some of
them numbers them differently than one with all.
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
    """Return a name without the number of a duplicate."""
    return name[0], name[1].partition(MARK)[0]


def disambiguate(numbers: Mapping[Name, Any], stored: Mapping[Name, Any]) -> dict[Name, Name]:
    """Return the stored names of prompts that a file numbers differently.

    A prompt whose number is stored gets the stored name. The others keep their names, or get the first free one. A name
    stored with another number is not free. Different prompts have different names.

    Args:
        numbers: numbers of the file's prompts by name, unique in their task; None if unknown.
        stored: numbers of the store's prompts by name; None if unknown.
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
