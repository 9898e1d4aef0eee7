"""Facts of models in cells: numbers of parameters and dates."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal

UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d{1,30})(?:\.\d{1,30})?(?:e\+?\d{1,2})?"
MIN_PARAMETERS, MAX_PARAMETERS = 1000, 2**63 - 1


def parse_parameters(cell: str) -> int | None:
    """Parse a count with an optional suffix K, M, B or T: 7000000000, 7,000,000,000, 7e9, 7B.

    Small numbers are rejected because their unit is probably different.
    """
    match = re.fullmatch(rf"({NUMBER})\s*([kmbt]?)", cell.strip().lower())
    if match is None:
        return None
    count = Decimal(match[1].replace(",", "")) * UNITS[match[2]]
    return int(count) if MIN_PARAMETERS <= count <= MAX_PARAMETERS and count == int(count) else None


def parse_release_date(cell: str) -> date | None:
    """Parse an ISO date or time; None if it is none."""
    try:
        return datetime.fromisoformat(cell).date()
    except ValueError:
        return None
