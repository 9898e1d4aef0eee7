"""YAML of others: parsed within the limits on nesting and size, aliases included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.settings.input_limits import current_limits, explain_limit


def parse_yaml(path: Path, data: bytes | str, loader: type | None = None) -> Any:
    """Parse a YAML document.

    Args:
        path: the file, for messages.
        data: its text.
        loader: a safe loader, by default PyYAML's.

    Raises:
        BadInputError: the text is not YAML, or is nested too deeply, too large, or too large with its aliases expanded.
    """
    import yaml

    loader = loader or getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_events(path, data, loader)
        return yaml.load(data, Loader=loader)
    except BadInputError:
        raise
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark is not None else ""
        reason = getattr(error, "problem", None) or " ".join(str(error).split())[:200]
        raise BadInputError(path, f"{line}is not valid YAML ({reason}).") from None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        # Constructors of numbers, times and booleans let Python's own errors through.
        raise BadInputError(path, f"is not valid YAML (a value cannot be read: {str(error)[:200]}).") from None


def _check_events(path: Path, data: bytes | str, loader: type) -> None:
    """Reject a document by its events, before anything of it is in memory.

    Raises:
        BadInputError: it is nested too deeply, or has too many nodes.
    """
    import yaml

    limits = current_limits()
    sizes: dict[str, int] = {}  # number of nodes of each anchor with its aliases expanded
    open_nodes: list[tuple[str | None, int]] = []  # anchor and number of the nodes before it
    n = 0
    for event in yaml.parse(data, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            n += sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.NodeEvent):
            n += 1
            if isinstance(event, yaml.ScalarEvent) and event.anchor:
                sizes[event.anchor] = 1
            elif isinstance(event, yaml.CollectionStartEvent):
                open_nodes.append((event.anchor, n - 1))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor:
                sizes[anchor] = n - before
        if len(open_nodes) > limits.nesting:
            text = f"the YAML has more than {limits.nesting} levels of nesting"
            raise BadInputError(path, explain_limit("nesting", text))
        if n > limits.members:
            raise BadInputError(path, explain_limit("members", f"the YAML has more than {limits.members:,} values"))
