"""Run every benchmark: ours beside its peer, in one run, one JSON line each.

`python -m benchmarks [MODULE ...]` prints the lines and writes them to benchmarks/results.json and docs/performance.md;
`python -m benchmarks page` writes docs/performance.md from the last results.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import platform
import sys
from pathlib import Path

import benchmarks
from benchmarks._page import PAGE, write_page
from benchmarks._peers import DeviceMissingError, PeerMissingError
from tracker.version import __version__

RESULTS = Path(__file__).parent / "results.json"


def main(names: list[str]) -> None:
    if names == ["page"]:
        PAGE.write_text(write_page(json.loads(RESULTS.read_text())))
        return
    chosen = names or sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.name.startswith("_"))
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in chosen:
        lines = []
        try:
            for line in importlib.import_module(f"benchmarks.{name}").measurements():
                print(json.dumps(line), flush=True)
                lines.append(line)
        except (DeviceMissingError, PeerMissingError) as error:
            print(f"{name} was not measured: {error}", file=sys.stderr, flush=True)
            continue
        kept[name] = {
            "suffrage": __version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "measurements": lines,
        }
        RESULTS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
        PAGE.write_text(write_page(kept))


if __name__ == "__main__":
    main(sys.argv[1:])
