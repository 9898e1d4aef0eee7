"""A budget that requests to servers never exceed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tracker.errors import ServerError
from tracker.evaluating.servers.protocol import Usage

MILLION = 1_000_000
LOOK_EVERY_S = 0.05


class Budget:
    """Reserves the largest possible cost of each request before it is sent, and corrects it by the counted tokens.

    A text has at most as many tokens as bytes, and a response as many as its request allows. Attempts without an
    answer count as free, since their cost is unknown.

    Args:
        amount: the budget, in the currency of the prices.
        currency: for messages; '' if unknown.
        price_read, price_written: per million input and output tokens.

    Attributes:
        spent: cost of all answered requests.
    """

    def __init__(self, amount: float, currency: str, price_read: float, price_written: float) -> None:
        self.amount, self.currency = amount, currency
        self._prices = price_read, price_written
        self._changed = threading.Condition()
        self._reserved = 0.0
        self._n_active = 0
        self.spent = 0.0

    def add(self, cost: float) -> None:
        """Count a cost of earlier attempts."""
        with self._changed:
            self.spent += cost

    @contextmanager
    def reserve(self, body: Mapping[str, Any], stop: threading.Event) -> Iterator[_Reservation]:
        """Hold the largest possible cost of a request while it is sent; wait for running requests if necessary.

        Raises:
            ServerError: the request could exceed the budget.
        """
        reservation = _Reservation()
        most = self._cost(len(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")), _get_limit(body))
        with self._changed:
            while self.spent + self._reserved + most > self.amount and self._n_active and not stop.is_set():
                self._changed.wait(LOOK_EVERY_S)
            if self.spent + self._reserved + most > self.amount and not stop.is_set():
                raise ServerError(self._explain())
            self._reserved += most
            self._n_active += 1
        try:
            yield reservation
        finally:
            with self._changed:
                self._reserved -= most
                self._n_active -= 1
                if reservation.usage is not None:
                    self.spent += self._cost(reservation.usage.n_read, reservation.usage.n_written)
                self._changed.notify_all()

    def _cost(self, n_read: int, n_written: int) -> float:
        return (n_read * self._prices[0] + n_written * self._prices[1]) / MILLION

    def _explain(self) -> str:
        unit = f" {self.currency}" if self.currency else ""
        return (
            f"The next request could exceed the budget: {self.spent:.4g} of {self.amount:.4g}{unit} are spent. "
            "Responses received so far are stored. Run the same command with a larger --budget to resume."
        )


class _Reservation:
    """A reserved cost.

    Attributes:
        usage: counted tokens; None without an answer.
    """

    usage: Usage | None = None


def _get_limit(body: Mapping[str, Any]) -> int:
    limits = [body[name] for name in ("max_tokens", "max_completion_tokens") if isinstance(body.get(name), int)]
    return max(limits, default=0)
