"""What the tests of copies share with those of formats: stores filled by hand."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "ingest"))
