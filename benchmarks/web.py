"""Pages of `suffrage serve` in a separate process: time, memory, and 50 readers at once, on SQLite and PostgreSQL.

The store is that of SUFFRAGE_BENCHMARK_STORE; else MMLU-Pro with the predictions of 29 models, if the folder of real
data is there; else a simulated benchmark of 12,032 prompts and 29 models. Without such an address, prompts have random
vectors of 384 dimensions. Each page is requested 51 times, with other keys, options or words each time: the time is the
median after the first view, and the details have the first and the worst. Nothing is left out of the worst. Bars: pages
take 300 ms after the first view, searches 200 ms; the process holds 400 MB.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote_plus

import numpy as np
import requests
import sqlalchemy as sa

from benchmarks._stores import ENGINES, empty_store
from benchmarks._web_store import fill_store
from tracker.copying.store_copy import copy_store
from tracker.database import connect, transaction
from tracker.queries.sql import tables

N_VIEWS = 50
N_READERS = 50
PAGES_PER_READER = 8
PAGE_BAR, SEARCH_BAR, MEMORY_BAR = 0.3, 0.2, 400
ORDERS = ("ascending", "descending")
LOOKUP = "select id, text from prompt where id ="


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Keys and words of a store, to make addresses of.

    Attributes:
        benchmark: the key of its largest benchmark.
        prompts, models, runs, findings: keys.
        names: of the models with scores.
        artifacts: key of the finding and name of each table and figure.
        words: frequent and rare words of the questions.
    """

    benchmark: int
    prompts: Sequence[int]
    models: Sequence[int]
    runs: Sequence[int]
    findings: Sequence[int]
    names: Sequence[str]
    artifacts: Sequence[tuple[int, str]]
    words: Sequence[str]


def measurements() -> Iterator[dict[str, Any]]:
    """One line per engine and page; further lines for readers at once and memory."""
    for engine in ENGINES:
        yield from measure_engine(engine)


def measure_engine(engine: str) -> Iterator[dict[str, Any]]:
    """The lines of an engine; none if the machine lacks it."""
    address = os.environ.get("SUFFRAGE_BENCHMARK_STORE")
    try:
        with empty_store(engine) as store:
            if address is None:
                fill_store(store)
            else:
                copy_store(connect(address, create=False), store)
            yield from _measure_store(store)
    except (ImportError, sa.exc.OperationalError) as error:
        print(f"{engine} was not measured: {error}", file=sys.stderr, flush=True)


def _measure_store(store: sa.Engine) -> Iterator[dict[str, Any]]:
    contents, engine = _read_contents(store), store.dialect.name
    with _serving(store) as (server, site), requests.Session() as session:
        memory = {"idle_mb": _memory(server, "VmRSS"), "process_of_the_verdict_mb": 0}
        addresses = _make_addresses(contents)
        session.get(f"{site}/benchmark/{contents.benchmark}").raise_for_status()
        while session.get(f"{site}/benchmark/{contents.benchmark}/verdict.json").json().get("state") == "computing":
            largest = max((_memory(key, "VmHWM") for key in _list_children(server)), default=0)
            memory["process_of_the_verdict_mb"] = max(memory["process_of_the_verdict_mb"], largest)
            time.sleep(0.2)
        for name, views in addresses.items():
            spent = [_view(session, site + views[i % len(views)]) for i in range(N_VIEWS + 1)]
            bar = SEARCH_BAR if "search" in name else PAGE_BAR
            yield {
                "name": f"{engine}: {name}", "ours_s": round(median(spent[1:]), 4), "worst_s": round(max(spent[1:]), 4),
                "first_s": round(spent[0], 4), "bar_s": bar,
            }  # fmt: skip
        memory["after_all_pages_mb"] = _memory(server, "VmRSS")
        yield _measure_readers(engine, site, addresses)
        memory["with_readers_mb"] = _memory(server, "VmRSS")
        yield {
            "name": f"{engine}: memory of the server", "value": _memory(server, "VmHWM"), **memory,
            "bar_mb": MEMORY_BAR,
            "unit": "MB, the largest amount; the details have the amount held when idle, after all pages and after "
            "the readers",
        }  # fmt: skip


def _measure_readers(engine: str, site: str, addresses: dict[str, list[str]]) -> dict[str, Any]:
    """Readers at once, each on some of the pages."""
    names, spent, problems = list(addresses), [], []

    def read(number: int) -> None:
        with requests.Session() as session:
            for step in range(PAGES_PER_READER):
                views = addresses[names[(number + step) % len(names)]]
                try:
                    spent.append(_view(session, site + views[(7 * number + step) % len(views)]))
                except requests.RequestException as error:
                    problems.append(str(error))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(N_READERS)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for problem in sorted(set(problems))[:3]:
        print(problem, file=sys.stderr)
    return {
        "name": f"{engine}: {N_READERS} readers at once, each on {PAGES_PER_READER} pages",
        "ours_s": round(time.perf_counter() - start, 3), "note": "the time of all of them together",
        "median_s": round(median(spent), 4), "worst_s": round(max(spent), 4), "errors": len(problems),
    }  # fmt: skip


def _view(session: requests.Session, address: str) -> float:
    start = time.perf_counter()
    response = session.get(address, timeout=60)
    response.raise_for_status()
    return time.perf_counter() - start


def _make_addresses(contents: Contents) -> dict[str, list[str]]:
    """Addresses of every kind of page, by name."""
    top, words = f"/benchmark/{contents.benchmark}", contents.words
    sorts = [f"sort={name}&order={order}" for name in ("mean", "task", "spread", "prompt") for order in ORDERS]
    pairs = [(a, b) for a in contents.names for b in contents.names if a < b]
    pages = {
        "home": ["/"],
        "search for a word": [f"/search?q={word}" for word in words],
        "search for the beginning of a word": [f"/search?q={word[:2]}" for word in words],
        "search for two words": [f"/search?q={a}+{b}" for a, b in zip(words, words[::-1], strict=True)],
        "search for Chinese characters": [f"/search?q={quote_plus(chr(0x4E00 + i) * 2)}" for i in range(51)],
        "leaderboard by an order": [f"{top}?order={b}&sort={a}" for a in ("mean", "model") for b in ORDERS],
        "leaderboard of another selection": [f"{top}?min_coverage={0.5 + n / 128}" for n in range(51)],
        "verdict": [f"{top}/verdict"],
        "tasks": [f"{top}/tasks"],
        "history": [f"{top}/history"],
        "runs": [f"{top}/runs"],
        "prompts by an order": [f"{top}/prompts?{sort}&page={n}" for n in range(1, 8) for sort in sorts],
        "prompts with a word": [f"{top}/prompts?q={word}&sort=spread&order=descending" for word in words],
        "comparison of two models": [f"{top}/compare?a={quote_plus(a)}&b={quote_plus(b)}" for a, b in pairs[::7]],
        "prompt": [f"/prompt/{key}" for key in contents.prompts],
        "model": [f"/model/{key}" for key in contents.models],
        "relatives of a model": [f"/model/{key}/relatives" for key in contents.models],
        "run": [f"/run/{key}" for key in contents.runs],
        "responses of a run": [f"/run/{key}/responses?page={n}" for n in (1, 2) for key in contents.runs],
        "findings": ["/findings"],
        "finding": [f"/finding/{key}" for key in contents.findings],
        "table of a finding": _find_artifacts(contents, ".parquet", "table/{}"),
        "figure of a finding": _find_artifacts(contents, ".png", "figure/{}.png"),
        "SQL": [f"/sql?statement={quote_plus(f'{LOOKUP} {key}')}" for key in contents.prompts],
    }
    return {name: views for name, views in pages.items() if views}


def _find_artifacts(contents: Contents, suffix: str, path: str) -> list[str]:
    return [
        f"/finding/{key}/{path.format(name.removesuffix(suffix))}"
        for key, name in contents.artifacts
        if name.endswith(suffix)
    ]


def _read_contents(store: sa.Engine) -> Contents:
    rng = np.random.default_rng(2)
    with transaction(store, write=False) as session:

        def read(column: sa.ColumnElement[Any], condition: Any = True) -> list[Any]:
            return list(session.scalars(sa.select(column).where(condition).distinct().order_by(column)))

        prompt, task, run, artifact = tables.prompt.c, tables.task.c, tables.run.c, tables.finding_artifact.c
        size = sa.func.count()
        largest = sa.select(task.benchmark_id).join(tables.prompt, prompt.task_id == task.id)
        [benchmark] = session.scalars(largest.group_by(task.benchmark_id).order_by(size.desc()).limit(1))
        in_benchmark = prompt.task_id.in_(sa.select(task.id).where(task.benchmark_id == benchmark))
        keys = np.array(read(prompt.id, in_benchmark))
        texts = session.scalars(sa.select(prompt.text).where(in_benchmark, prompt.text.is_not(None)))
        words = sorted({word for text in texts for word in text.lower().split() if word.isascii() and word.isalpha()})
        models = read(run.model_id, run.benchmark_id == benchmark)
        return Contents(
            benchmark=benchmark,
            prompts=rng.choice(keys, N_VIEWS + 1).tolist(),
            models=models,
            runs=read(run.id, run.benchmark_id == benchmark),
            names=read(tables.model.c.name, tables.model.c.id.in_(models)),
            findings=read(tables.finding.c.id),
            artifacts=[(key, name) for key, name in session.execute(sa.select(artifact.finding_id, artifact.name))],
            words=["the", "of", *rng.choice([word for word in words if len(word) > 2], N_VIEWS - 1).tolist()],
        )


@contextmanager
def _serving(store: sa.Engine) -> Iterator[tuple[int, str]]:
    """Run `suffrage serve` on a store; yields the number of its process, and its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = store.url.set(drivername=store.url.get_backend_name()).render_as_string(hide_password=False)
    command = [sys.executable, "-m", "tracker.cli", "serve", "--port", str(port), "--database", address]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    site = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                requests.get(f"{site}/sql", timeout=60)
                break
            except requests.ConnectionError:
                if server.poll() is not None:
                    raise
                time.sleep(0.05)
        yield server.pid, site
    finally:
        server.terminate()
        server.wait()


def _list_children(process: int) -> list[int]:
    """Numbers of the processes that a process has started, and that run."""
    children = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            children += [int(folder.name)] * (int(parent) == process)
    return children


def _memory(process: int, kind: str) -> int:
    """MB that a process holds (VmRSS), or the largest amount that it held (VmHWM); 0 if it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return 0
    _, is_present, amount = status.partition(f"{kind}:")
    return round(int(amount.split()[0]) / 1024) if is_present else 0


if __name__ == "__main__":
    for measurement in measurements():
        print(json.dumps(measurement), flush=True)
