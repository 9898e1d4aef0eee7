"""Find tasks, groups and tags of lm-evaluation-harness by name or path."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError, NotFoundError
from tracker.ingest.datasets.lm_eval.yaml_files import load_task_file, parse_task_file

SUFFIX = ".yaml"
GROUP_FIELDS = ("group", "group_alias", "task", "aggregate_metric_list", "metadata", "tag")
"""Fields of a group; its other fields apply to its tasks."""
IGNORED_FOLDERS = ("__pycache__", ".ipynb_checkpoints")
_INCLUDE = re.compile(rb"^\W*include\W*:\s*(.*)$", re.MULTILINE)
_NAME = re.compile(rb"[^\s\"'/\[\],]+")
MAX_DEPTH = 20


@dataclass(frozen=True, kw_only=True)
class FoundTask:
    """A task with its settings, as in its file and the files that it includes.

    Attributes:
        name: name of the task.
        path: its file.
        settings: by name; not validated.
    """

    name: str
    path: Path
    settings: Mapping[str, Any]


def find_installed_tasks() -> Path | None:
    """Return the folder with the tasks of the installed harness; None if it is not installed."""
    spec = importlib.util.find_spec("lm_eval")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "tasks"
    return folder if folder.is_dir() else None


@dataclass(frozen=True)
class TaskFolder:
    """A folder of task files; files are parsed only if they hold the name that is searched.

    Attributes:
        path: the folder; None without one.
    """

    path: Path | None
    _parsed: dict[Path, dict[str, Any]] = field(default_factory=dict)

    def find(self, name: str) -> list[FoundTask]:
        """Return the task of a name or YAML file, or the tasks of a group or tag, in the harness's order.

        Raises:
            NotFoundError: there is no such task.
            BadInputError: a file is invalid.
        """
        path = Path(os.path.expanduser(name))
        if path.suffix in (SUFFIX, ".yml") or path.is_file():
            settings = load_task_file(path)
            return self._expand(settings, path, {}, 0)
        return self._find_named(name, {}, 0)

    def _find_named(self, name: str, overrides: Mapping[str, Any], depth: int) -> list[FoundTask]:
        if depth > MAX_DEPTH:
            raise BadInputError(self.path or Path(name), f"the group {name!r} contains itself.")
        tagged: list[tuple[str, Path, dict[str, Any]]] = []
        for path in self._list_candidates(name):
            settings = self._load(path)
            if settings.get("group") == name or (settings.get("task") == name and "group" not in settings):
                return self._expand(settings, path, overrides, depth)
            tags = settings.get("tag") or []
            task = settings.get("task")
            if isinstance(task, str) and name in (tags if isinstance(tags, list) else [tags]):
                tagged.append((task, path, settings))
        if not tagged:
            where = f"in {self.path}" if self.path else "(lm-evaluation-harness is not installed)"
            hint = f"Searched {where}. Use the path of a YAML file, or --lm-eval-tasks FOLDER."
            raise NotFoundError("task of lm-evaluation-harness", name, (), hint)
        return [
            tasks
            for _, path, settings in sorted(tagged, key=lambda member: member[0])
            for tasks in self._expand(settings, path, overrides, depth)
        ]

    def _expand(
        self, settings: Mapping[str, Any], path: Path, overrides: Mapping[str, Any], depth: int
    ) -> list[FoundTask]:
        """Return the task itself, or the tasks of a group."""
        members = settings.get("task")
        if "group" not in settings or not isinstance(members, list):
            if not isinstance(members, str):
                raise BadInputError(path, "is not a task of lm-evaluation-harness: it has no field `task`.")
            merged = {**settings, **overrides}
            return [FoundTask(name=str(merged["task"]), path=path, settings=merged)]
        shared = {name: value for name, value in settings.items() if name not in GROUP_FIELDS} | dict(overrides)
        tasks: list[FoundTask] = []
        for member in members:
            if isinstance(member, str):
                tasks += self._find_named(member, shared, depth + 1)
                continue
            if not isinstance(member, dict) or not ({"task", "group"} & set(member)):
                raise BadInputError(path, f"a member of the group is neither a task nor a group: {member!r}.")
            explicit = shared | {name: value for name, value in member.items() if name not in ("task", "group")}
            if "group" in member and isinstance(member.get("task"), list):
                tasks += self._expand(member, path, shared, depth + 1)
            else:
                tasks += self._find_named(str(member.get("task") or member["group"]), explicit, depth + 1)
        return tasks

    def _load(self, path: Path) -> dict[str, Any]:
        if path not in self._parsed:
            self._parsed[path] = load_task_file(path)
        return self._parsed[path]

    def _list_candidates(self, name: str) -> list[Path]:
        """Return the task files that contain a name, themselves or in a file that they include.

        Files that define the task or group of that name come first.
        """
        fresh = {path for path, content in self._contents.items() if name.encode() in content}
        holders: set[Path] = set()
        while fresh:
            holders |= fresh
            included = {path.name.encode() for path in fresh}
            fresh = {
                path
                for path, content in self._contents.items()
                if path not in holders and _find_includes(content) & included
            }
        candidates = sorted(path for path in holders if path.suffix == SUFFIX)
        return sorted(candidates, key=lambda path: not self._defines(path, name))

    def _defines(self, path: Path, name: str) -> bool:
        content = self._contents[path]
        if not re.search(rb"\b(?:task|group)\b", content):
            return False
        try:
            settings = parse_task_file(content, path)
        except BadInputError:
            return False
        return name in (settings.get("group"), settings.get("task"))

    @cached_property
    def _contents(self) -> dict[Path, bytes]:
        if self.path is None:
            return {}
        if not self.path.is_dir():
            raise BadInputError(self.path, "is not a folder.")
        return {
            path: path.read_bytes()
            for path in sorted(self.path.rglob("*yaml"))
            if path.is_file() and not set(IGNORED_FOLDERS) & set(path.parts)
        }


def _find_includes(content: bytes) -> set[bytes]:
    """Return the names of included files."""
    return {part for line in _INCLUDE.findall(content) for part in _NAME.findall(line)}
