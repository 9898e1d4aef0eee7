"""Python functions of task files. They run only if the user trusts them."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError, first_line
from tracker.ingest.datasets.lm_eval.yaml_files import CodeReference


def load_code(code: CodeReference) -> Any:
    """Import the function of a task file: from a module beside the file, else from an installed one.

    Raises:
        BadInputError: there is no such function, or its module cannot be imported.
    """
    module_name, _, function = code.name.rpartition(".")
    path = code.folder / f"{module_name.replace('.', '/')}.py"
    try:
        module = _load_file(path, path.stat().st_mtime_ns) if path.is_file() else importlib.import_module(module_name)
        return getattr(module, function)
    except Exception as error:  # the module is foreign code
        raise BadInputError(path, f"the function {code.name} cannot be loaded: {first_line(error)}.") from error


@lru_cache(maxsize=64)
def _load_file(path: Path, changed: int) -> Any:
    """Import a file under a unique name; again only if it has changed."""
    unique = f"suffrage_lm_eval_{hashlib.sha256(f'{path} {changed}'.encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(unique, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    spec.loader.exec_module(module)
    return module
