"""Leases on the prompts of a run, by which several commands evaluate it together.

A lease is one prompt, its holder, and the time at which it expires. The holder renews its leases until it stores the
responses. Those of a holder that ended without releasing them are free when they expire, or at once if its process ran
on this machine and does not run any more.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.database import split_keys
from tracker.ingest.write.bulk_rows import fetch_raw_rows
from tracker.ingest.write.live.live_portions import get_live_run
from tracker.schema import metadata

LEASE = metadata.tables["evaluation_lease"]
SCORE = metadata.tables["score"].c
MACHINE_FILES = ("/etc/machine-id", "/proc/sys/kernel/random/boot_id")
PROCESS_NAMESPACE = "/proc/self/ns/pid"


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseHolder:
    """A command that evaluates a run.

    Attributes:
        run_id: key of the run.
        name: machine, process and a random number.
        n_trials: responses per prompt.
        seconds: how long a lease is valid without renewal.
    """

    run_id: int
    name: str
    n_trials: int
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseState:
    """State of some prompts of a run.

    Attributes:
        is_open: whether the run is unfinished.
        stored: prompts with all of their responses stored.
        busy: prompts leased by other commands.
        free: the rest, in order.
    """

    is_open: bool
    stored: frozenset[int]
    busy: frozenset[int]
    free: tuple[int, ...]


def make_holder_name() -> str:
    """Return a new name for a holder in this process."""
    return f"{_describe_machine()}/{os.getpid()}/{secrets.token_hex(8)}"


def load_lease_state(session: Session, holder: LeaseHolder, prompt_ids: Sequence[int]) -> LeaseState:
    """Return which prompts are stored, leased by other commands, or free.

    Args:
        session: an open transaction.
        holder: the command.
        prompt_ids: keys of the prompts.

    Raises:
        NotFoundError: the run was deleted.
    """
    run = get_live_run(session, holder.run_id)
    stored = _find_stored(session, holder, prompt_ids)
    claimed_elsewhere = _load_other_leases(session, holder)
    missing = [prompt_id for prompt_id in prompt_ids if prompt_id not in stored]
    return LeaseState(
        is_open=run.status == "partial",
        stored=frozenset(stored),
        busy=frozenset(missing) & claimed_elsewhere,
        free=tuple(prompt_id for prompt_id in missing if prompt_id not in claimed_elsewhere),
    )


def has_other_leases(session: Session, holder: LeaseHolder) -> bool:
    """Return whether other commands evaluate prompts of the run at this moment."""
    return bool(_load_other_leases(session, holder))


def claim_prompts(session: Session, holder: LeaseHolder, prompt_ids: Sequence[int], *, together: bool) -> LeaseState:
    """Lease free prompts; return the state before, with the leased prompts as free ones.

    Args:
        session: an exclusive write transaction.
        holder: the command.
        prompt_ids: keys of the prompts.
        together: whether to lease all missing prompts or none.

    Raises:
        NotFoundError: the run was deleted.
    """
    state = load_lease_state(session, holder, prompt_ids)
    claimed = () if not state.is_open or (together and state.busy) else state.free
    if claimed:
        _delete(session, holder.run_id, claimed)
        expires = _read_clock(session) + holder.seconds
        session.execute(
            sa.insert(LEASE),
            [
                {"run_id": holder.run_id, "prompt_id": prompt_id, "holder": holder.name, "expires": expires}
                for prompt_id in claimed
            ],
        )
    return LeaseState(is_open=state.is_open, stored=state.stored, busy=state.busy, free=tuple(claimed))


def find_leased(session: Session, holder: LeaseHolder, prompt_ids: Collection[int]) -> set[int]:
    """Return the prompts whose leases the holder still has; another command may have taken over expired ones."""
    leased: set[int] = set()
    for part in split_keys(prompt_ids):
        query = sa.select(LEASE.c.prompt_id).where(
            LEASE.c.run_id == holder.run_id, LEASE.c.holder == holder.name, LEASE.c.prompt_id.in_(part)
        )
        leased.update(prompt_id for (prompt_id,) in fetch_raw_rows(session, query))
    return leased


def renew_leases(session: Session, holder: LeaseHolder) -> None:
    """Extend all leases of the holder."""
    session.execute(
        sa.update(LEASE)
        .where(LEASE.c.run_id == holder.run_id, LEASE.c.holder == holder.name)
        .values(expires=_read_clock(session) + holder.seconds)
    )


def release_leases(session: Session, holder: LeaseHolder, prompt_ids: Collection[int] | None = None) -> None:
    """Delete leases of the holder: of some prompts, or all."""
    if prompt_ids is not None:
        _delete(session, holder.run_id, prompt_ids, holder.name)
        return
    session.execute(sa.delete(LEASE).where(LEASE.c.run_id == holder.run_id, LEASE.c.holder == holder.name))


def _delete(session: Session, run_id: int, prompt_ids: Iterable[int], name: str | None = None) -> None:
    for part in split_keys(list(prompt_ids)):
        query = sa.delete(LEASE).where(LEASE.c.run_id == run_id, LEASE.c.prompt_id.in_(part))
        session.execute(query if name is None else query.where(LEASE.c.holder == name))


def _find_stored(session: Session, holder: LeaseHolder, prompt_ids: Sequence[int]) -> set[int]:
    stored: set[int] = set()
    n_trials = sa.func.count(sa.distinct(SCORE.trial))
    of_holder = in_partitions_of_runs(session, metadata.tables["score"], [holder.run_id])
    for part in split_keys(prompt_ids):
        query = (
            sa.select(SCORE.prompt_id)
            .where(SCORE.run_id == holder.run_id, SCORE.prompt_id.in_(part), of_holder)
            .group_by(SCORE.prompt_id)
            .having(n_trials >= holder.n_trials)
        )
        stored.update(prompt_id for (prompt_id,) in fetch_raw_rows(session, query))
    return stored


def _load_other_leases(session: Session, holder: LeaseHolder) -> set[int]:
    """Return the prompts that living commands lease."""
    query = sa.select(LEASE.c.prompt_id, LEASE.c.holder, LEASE.c.expires).where(
        LEASE.c.run_id == holder.run_id, LEASE.c.holder != holder.name
    )
    rows = list(fetch_raw_rows(session, query))
    if not rows:
        return set()
    clock = _read_clock(session)
    ended = {name for name in {row[1] for row in rows} if _has_ended(name)}
    return {prompt_id for prompt_id, name, expires in rows if expires > clock and name not in ended}


def _read_clock(session: Session) -> float:
    """Return the time in seconds since 1970, by the clock that all commands share."""
    if session.get_bind().dialect.name == "postgresql":
        return float(session.scalar(sa.text("SELECT extract(epoch FROM clock_timestamp())::float8")) or 0.0)
    return time.time()


@cache
def _describe_machine() -> str:
    """Return 16 digits that identify this machine, since it was started, and its space of process numbers."""
    parts = [socket.gethostname()]
    for name in MACHINE_FILES:
        try:
            parts.append(Path(name).read_text(encoding="ascii").strip())
        except OSError:
            parts.append("")
    try:
        parts.append(os.readlink(PROCESS_NAMESPACE))
    except OSError:
        parts.append("")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _has_ended(name: str) -> bool:
    """Return whether a holder's process ran on this machine and has ended; False if unknown."""
    machine, _, rest = name.partition("/")
    number = rest.partition("/")[0]
    if machine != _describe_machine() or os.name != "posix" or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
