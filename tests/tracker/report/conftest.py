"""What the tests of the report share with those of exports: stores filled for both."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "exporting"))
