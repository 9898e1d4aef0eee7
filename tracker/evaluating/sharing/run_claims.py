"""Claim the prompts of a run before they are computed, so that commands which share the run compute each once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from types import TracebackType

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import transaction
from tracker.errors import SuffrageError
from tracker.ingest.write.live.leases import (
    LeaseHolder,
    claim_prompts,
    find_leased,
    has_other_leases,
    load_lease_state,
    make_holder_name,
    release_leases,
    renew_leases,
)
from tracker.ingest.write.live.live_runs import ScoredResponse, add_responses

LEASE_SECONDS = 60.0
"""Seconds after which another command takes over the prompts of a command that has stopped."""
BEATS_PER_LEASE = 4
MAX_SECONDS_BETWEEN_LOOKS = 1.0


class RunClaims:
    """The prompts of a run that this command evaluates; a context manager that renews its leases in a thread.

    Args:
        engine: the store.
        run_id: key of the run.
        n_trials: responses per prompt.
        stored: prompts with all of their responses stored.
        lease_s: seconds after which another command takes over the prompts of this one if it does not renew them.
        report: called with messages for the user.

    Attributes:
        stored: prompts with all of their responses stored, by any command, as far as is known.
        failed: prompts to which this command got no answer; it does not try them again.
        evaluated: prompts whose responses this command has stored.
        is_open: whether the run was unfinished at the last look.
        n_claimed: number of claims of prompts by this command.
    """

    def __init__(
        self,
        engine: sa.Engine,
        run_id: int,
        *,
        n_trials: int,
        stored: Collection[int] = (),
        lease_s: float = LEASE_SECONDS,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._engine, self._report, self._lease_s = engine, report, lease_s
        self._holder = LeaseHolder(run_id=run_id, name=make_holder_name(), n_trials=n_trials, seconds=lease_s)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True, name="lease")
        self._has_reported = False
        self.stored, self.failed, self.evaluated = set(stored), set[int](), set[int]()
        self.is_open, self.n_claimed = True, 0

    @property
    def n_known(self) -> int:
        """Return the number of prompts that are stored, or failed."""
        return len(self.stored | self.failed)

    def __enter__(self) -> RunClaims:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        try:
            with transaction(self._engine, exclusive=True) as session:
                release_leases(session, self._holder)
        except SuffrageError:
            if error is None:
                raise

    def __call__(self, prompt_id: int) -> bool:
        """Return whether a prompt needs no response from this command: it is stored, or has failed."""
        return prompt_id in self.stored or prompt_id in self.failed

    def claim(self, prompt_ids: Sequence[int], *, together: bool) -> list[int]:
        """Claim prompts, and return those to compute, as `tracker.evaluating.responses.Claims` requires."""
        missing = [prompt_id for prompt_id in prompt_ids if not self(prompt_id)]
        if not missing or not self.is_open:
            return []
        with transaction(self._engine, exclusive=True) as session:
            state = claim_prompts(session, self._holder, missing, together=together)
        self.stored |= state.stored
        self.is_open = state.is_open
        self.n_claimed += len(state.free)
        return list(state.free)

    def store(self, rows: Sequence[ScoredResponse], prompt_ids: Collection[int]) -> None:
        """Store responses and release their prompts; responses whose lease another command took over are dropped.

        Args:
            rows: scored responses.
            prompt_ids: all prompts of the portion, including those without an answer.
        """
        if not prompt_ids:
            return
        with transaction(self._engine, exclusive=True) as session:
            leased = find_leased(session, self._holder, {row.prompt_id for row in rows})
            if kept := [row for row in rows if row.prompt_id in leased]:
                add_responses(session, self._holder.run_id, kept)
            release_leases(session, self._holder, prompt_ids)
        self.stored |= leased
        self.evaluated |= leased

    def wait(self, prompt_ids: Sequence[int]) -> bool:
        """Wait while other commands evaluate prompts; return whether this one can claim missing prompts.

        Args:
            prompt_ids: all prompts of the run.
        """
        while True:
            with transaction(self._engine, write=False) as session:
                state = load_lease_state(session, self._holder, [prompt for prompt in prompt_ids if not self(prompt)])
                is_shared = has_other_leases(session, self._holder)
            self.stored |= state.stored
            self.is_open = state.is_open
            if not state.is_open or not is_shared or state.free:
                return state.is_open and bool(state.free)
            if not self._has_reported:
                self._has_reported = True
                self._report(f"another command evaluates {len(state.busy):,} prompts of this run; waiting for it")
            time.sleep(min(MAX_SECONDS_BETWEEN_LOOKS, self._lease_s / BEATS_PER_LEASE))

    def is_shared(self, session: Session) -> bool:
        """Return whether other commands evaluate prompts of the run at this moment."""
        return has_other_leases(session, self._holder)

    def _renew(self) -> None:
        """Renew the leases until the evaluation ends; a failed renewal is tried again."""
        while not self._ended.wait(self._lease_s / BEATS_PER_LEASE):
            try:
                with transaction(self._engine, exclusive=True) as session:
                    renew_leases(session, self._holder)
            except SuffrageError:
                continue
