"""A fault at the n-th call of an operation: the store stays sound, and the next run gives the undisturbed result."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable

import pytest
from disturbance import Disturbance
from fingerprint import list_changes, take_fingerprint
from forked_process import fork
from injection import KINDS, Faults, Kind
from operations import OPERATIONS, Operation, Place, list_mlflow_runs
from store_state import Contents, read_state

from tracker.evaluating import evaluation

EVERY, SAMPLED = 300, 300
"""Every call up to the first number can fail in the soak, and as many later ones as the second, drawn at random."""
STEP = int(os.environ.get("SUFFRAGE_TEST_FAULT_STEP", "40"))
"""One in so many of them does: all of them take hours."""
ENGINES = ("sqlite", "postgres")
Disturb = Callable[[Operation, str], Disturbance]


def run_with_fault(disturbance: Disturbance, place: Place, kind: Kind, n: int) -> tuple[int | None, str, int]:
    """Run the operation with a fault; return its exit code, what it printed, and the number of calls."""
    log, counted = place.folder / "fault.log", place.folder / "n_calls.txt"

    def work() -> None:
        shorten_leases()
        faults = Faults(kind=kind, n=n, folder=place.folder, log=log)
        faults.install()
        try:
            disturbance.operation.run(place)
        finally:
            sys.setprofile(None)
            descriptor = os.open(counted, os.O_WRONLY | os.O_CREAT)
            os.write(descriptor, str(faults.n_calls).encode())
            os.close(descriptor)

    process = fork(work, place.folder / "disturbed.txt")
    output = process.wait()
    return process.returncode, output, int(counted.read_text()) if counted.exists() else 0


def shorten_leases() -> None:
    """Let a command that runs again take over the prompts of the disturbed one at once."""
    assert evaluation.evaluate.__kwdefaults__ is not None
    evaluation.evaluate.__kwdefaults__["lease_s"] = 0.5


def describe_fault(place: Place) -> str:
    """The place of the fault."""
    log = place.folder / "fault.log"
    return log.read_text() if log.exists() else ""


def check_fault(disturbance: Disturbance, kind: Kind, n: int) -> list[str]:
    """Let the n-th call fail, then run the operation again; return what is wrong.

    An evaluation asks from several threads, and may make a few calls fewer than the one that was counted.
    """
    operation, place = disturbance.operation, disturbance.new_place()
    code, output, n_calls = run_with_fault(disturbance, place, kind, n)
    wrong = [] if describe_fault(place) or (n_calls < n and operation.is_gradual) else ["no call failed"]
    if code not in (0, 1, 2):
        wrong.append(f"exit code {code}")
    if "Traceback" in output or "Exception ignored" in output:
        wrong.append("a traceback")
    if code == 1 and "Error: " not in output:
        wrong.append("no message")
    contents, sequences = list_changes(disturbance.fingerprint, take_fingerprint(place))
    if contents:
        wrong += check_changed(disturbance, place, code)
    else:
        wrong += ["success without a change"] if code == 0 else []
        wrong += check_again(disturbance, place) if sequences else []  # else the next run is the undisturbed one
    disturbance.drop_place(place)
    where = f"{operation.name}, {kind} at call {n}"
    return [f"{where}: {text}\n{output[-1500:]}" for text in wrong]


def check_changed(disturbance: Disturbance, place: Place, code: int | None) -> list[str]:
    """Return what is wrong with a place whose contents a disturbed operation changed, and with the next run there."""
    operation = disturbance.operation
    state = read_state(operation.result(place))
    wrong = list(state.faults)
    if operation.result(place) != place.url:
        wrong += read_state(place.url).faults
    now = state.contents
    is_done = now == disturbance.after
    is_halfway = place.url.startswith("postgresql") and now == {"version": [operation.halfway]}
    if not (is_done or is_halfway or is_untouched(disturbance, now) or operation.is_gradual):
        wrong.append(f"a part is stored: {differences(disturbance.before, now)}")
    if code == 0 and not is_done and not operation.is_gradual:
        wrong.append(f"success without the result: {differences(disturbance.after, now)}")
    if operation.is_repeatable or not is_done:
        wrong += check_again(disturbance, place)
    return wrong


def check_again(disturbance: Disturbance, place: Place) -> list[str]:
    """Run the operation again without a fault; return what is wrong."""
    operation = disturbance.operation

    def work() -> None:
        shorten_leases()
        operation.run(place)

    again = fork(work, place.folder / "again.txt")
    output = again.wait()
    wrong = [] if again.returncode == 0 else [f"the next run fails: {output[-600:]} after {describe_fault(place)}"]
    state = read_state(operation.result(place))
    wrong += state.faults
    if state.contents != disturbance.after:
        wrong.append(
            f"the next run differs: {differences(disturbance.after, state.contents)} after {describe_fault(place)}"
        )
    if state.n_failed_analyses > 1:
        wrong.append(f"one failure is recorded {state.n_failed_analyses} times: {describe_fault(place)}")
    if disturbance.published and (runs := list_mlflow_runs(place.mlflow)) != disturbance.published:
        wrong.append(f"MLflow has {len(runs)} runs instead of {len(disturbance.published)}: {describe_fault(place)}")
    return wrong


def is_untouched(disturbance: Disturbance, contents: Contents) -> bool:
    """Whether a store holds what it held at the start; empty tables may be all that a store without tables has got."""
    had_no_tables = disturbance.before == {"version": ["None"]}
    return contents == disturbance.before or (had_no_tables and not any(contents.values()))


def differences(expected: object, contents: object) -> str:
    """The first rows that differ."""
    assert isinstance(expected, dict)
    assert isinstance(contents, dict)
    lines = []
    for name in sorted({*expected, *contents}):
        first, second = expected.get(name, []), contents.get(name, [])
        if first != second:
            missing, added = sorted(set(first) - set(second)), sorted(set(second) - set(first))
            lines.append(
                f"{name}: -{len(missing)} {missing[:1]} +{len(added)} {added[:1]} of {len(first)}/{len(second)}"
            )
    return "; ".join(lines)


def count_calls(disturbance: Disturbance, kind: Kind) -> int:
    """The number of calls of an undisturbed run that a kind of fault can strike."""
    place = disturbance.new_place()
    code, output, n_calls = run_with_fault(disturbance, place, kind, 0)
    assert code == 0, output
    disturbance.drop_place(place)
    return n_calls


def numbers_of_soak(n_calls: int) -> list[int]:
    """Calls that fail in the soak; at least one."""
    later = range(EVERY + 1, n_calls + 1)
    sampled = sorted(random.Random(7).sample(later, min(SAMPLED, len(later))))
    numbers = [*range(1, min(EVERY, n_calls) + 1), *sampled]
    return numbers[min(STEP, len(numbers)) // 2 :: STEP]


def test_a_fault_within_an_import_leaves_nothing_or_everything(disturb: Disturb) -> None:
    """`make soak` lets calls of every operation fail, with every kind of fault and on both engines."""
    disturbance, wrong = disturb(OPERATIONS["import"], "sqlite"), []
    kinds: tuple[Kind, ...] = ("full", "answer_lost", "memory")
    for kind in kinds:
        wrong += check_fault(disturbance, kind, count_calls(disturbance, kind) * 2 // 3)
    assert wrong == []


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_no_fault_loses_or_doubles_anything(disturb: Disturb, name: str, engine: str, kind: Kind) -> None:
    disturbance = disturb(OPERATIONS[name], engine)
    n_calls = count_calls(disturbance, kind)
    numbers, wrong = numbers_of_soak(n_calls), []
    assert numbers
    for n in numbers:
        wrong += (problems := check_fault(disturbance, kind, n))
        print(f"{name}, {engine}, {kind}: call {n} of {n_calls}: {problems or 'sound'}", flush=True)
    print(f"{len(numbers)} of {n_calls} calls failed, {len(wrong)} wrong", flush=True)
    assert not wrong, f"{len(wrong)} wrong\n{''.join(wrong)[:20_000]}"
