"""What the tests of exports share with those of formats: archives made by hand."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "ingest"))
