"""Program: mutate files of every format and reader, read each, and print what was measured as JSON.

Usage: fuzz_worker.py FOLDER SEED N_FILES SAMPLES
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import importlib.util
import io
import json
import multiprocessing
import random
import shutil
import sqlite3
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import yaml

sys.path.insert(0, str(Path(__file__).parent))
from mutations import mutated, with_other_bytes

from tracker.database import connect, find_file_damage, find_stray_rows, transaction
from tracker.errors import SuffrageError
from tracker.evaluating.judge import load_rubric
from tracker.evaluating.prompt_templates.template import load_template
from tracker.ingest.datasets.ingest_prompts import ingest_prompts
from tracker.ingest.files.vector_file import read_vectors
from tracker.ingest.format_registry import load_formats
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.write.checksums import verify_checksums
from tracker.settings.settings_file import read_settings_file

MAX_SAMPLE_BYTES = 2_000_000
MAX_BYTES = 16_000_000
"""Of a mutated file before it is packed: a larger one that is no bomb may take more memory than a bomb."""
MAX_SECONDS = 20
LONG = "n" * 3_000
CONTROLS = "\x1b[2J\x00\u202e\r\n\x9b"
Reader = Callable[[Any, Path], object]


def measure_memory(name: str = "VmHWM") -> float:
    """Peak of this process in megabytes."""
    return int(Path("/proc/self/status").read_text().partition(f"{name}:")[2].split()[0]) / 1024


def forget_peak() -> None:
    """Measure the peak from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def list_sources(samples: Path) -> list[tuple[str, dict[str, bytes], str]]:
    """Format, files by name, and the one to read, of the sound files of every format and of real samples."""
    sources = []
    for name in load_formats():
        path = Path(__file__).parent / "sound" / f"{name.replace('-', '_')}.py"
        if path.is_file():
            spec = importlib.util.spec_from_file_location(path.stem, path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            sources += [("results", module.FILES, file) for file in module.FILES]
    for path in sorted(samples.rglob("*")) if samples.is_dir() else ():
        if path.is_file() and path.stat().st_size < MAX_SAMPLE_BYTES:
            sources.append(("results", {path.name: path.read_bytes()}, path.name))
    return sources + list_texts()


def list_texts() -> list[tuple[str, dict[str, bytes], str]]:
    """Files that other commands read."""
    vectors, rng = io.BytesIO(), np.random.default_rng(0)
    np.savez(vectors, prompt_id=np.array(["a", "b"]), vector=rng.random((2, 3)))
    prompts = [{"question": f"q{i}", "choices": ["a", "b"], "answer": "a", "id": str(i)} for i in range(5)]
    texts = {
        ("prompts", "p.jsonl"): "".join(json.dumps(row) + "\n" for row in prompts).encode(),
        ("prompts", "p.json"): json.dumps(prompts).encode(),
        ("prompts", "p.csv"): b'id,question,choices,answer\n1,what,"[""a"", ""b""]",a\n2,why,,b\n',
        ("vectors", "v.npz"): vectors.getvalue(),
        ("settings", "suffrage.toml"): b'metric = "accuracy"\nseed = 1\nlimits = "value=1MB"\n',
        ("template", "t.jinja"): b"{# labels: letters #}\n{{ question }}\n{% for c in choices %}{{ c }}\n{% endfor %}",
        ("judge", "j.jinja"): b"{{ question }} {{ response }}",
    }
    return [(kind, {name: data}, name) for (kind, name), data in texts.items()]


def reshape(name: str, data: bytes, chance: random.Random) -> bytes:
    """Mutations that need the kind of file: tables, YAML, hostile names, repetition and expansion."""
    kind = chance.randrange(8)
    if name.endswith((".csv", ".tsv")) and kind < 5:
        return _other_table(data, "\t" if name.endswith(".tsv") else ",", chance)
    if name.endswith((".yaml", ".yml")) and kind < 3:
        with contextlib.suppress(yaml.YAMLError):
            value = yaml.safe_load(data)
            text = yaml.safe_dump({"a": value, chance.choice(["", CONTROLS, "results"]): value})
            return text.encode("utf-8", "replace")
    if kind == 5:
        lines = data.splitlines(keepends=True) or [b""]
        line = chance.choice(lines)
        return data + line * min(chance.choice((2, 100, 20_000)), 1 + MAX_SAMPLE_BYTES // max(1, len(line)))
    if kind == 6:
        packed = gzip.compress(mutated(name, data, chance), mtime=0)
        return packed[: chance.randrange(len(packed) + 1)] if chance.random() < 0.5 else packed
    if kind == 7:
        return gzip.compress(data + chance.choice((b" ", b"\0", b"[", b",", b"a\n")) * 12_000_000, 1, mtime=0)
    words = [CONTROLS.encode(), LONG.encode(), b"NaN", b"-Infinity", b"1e400", b"9" * 5_000, b"\xed\xa0\x80", b"\xff"]
    parts = data.split(b'"')
    if len(parts) > 2:
        parts[chance.randrange(len(parts))] = chance.choice(words)
        return b'"'.join(parts)
    return data.replace(chance.choice((b"1", b"a", b",", b"\n")), chance.choice(words), chance.choice((1, 3)))


def _other_table(data: bytes, mark: str, chance: random.Random) -> bytes:
    rows = list(csv.reader(io.StringIO(data.decode("utf-8", "replace")), delimiter=mark)) or [[""]]
    row = chance.choice(rows) or [""]
    kind = chance.randrange(6)
    if kind == 0:
        row[chance.randrange(len(row)) :] = []
    elif kind == 1:
        row.append(chance.choice((LONG, CONTROLS, "=1+1", "1e999", "")))
    elif kind == 2:
        row[chance.randrange(len(row))] = chance.choice((LONG, CONTROLS, "nan", "9" * 400, "", "-1", "½", "1,5"))
    elif kind == 3:
        rows += [list(row)] * chance.choice((1, 50))
    elif kind == 4:
        rows = [list(column) for column in zip(*rows, strict=False)]
    else:
        rows = [[*cells, *[str(i) for i in range(2_000)]] for cells in rows]
    out = io.StringIO()
    csv.writer(out, delimiter=mark).writerows(rows)
    return out.getvalue().encode("utf-8", "replace")


def count_commits(watcher: sqlite3.Connection) -> int:
    """A number that another connection changes when it commits a change."""
    n: int = watcher.execute("PRAGMA data_version").fetchone()[0]
    return n


def readers() -> dict[str, Reader]:
    """What reads a file of each kind."""
    return {
        "results": lambda engine, path: ingest_file(engine, path, ReadOptions(benchmark="b", model=None)),
        "prompts": lambda engine, path: ingest_prompts(engine, "b", path),
        "vectors": lambda _, path: read_vectors(path),
        "settings": lambda _, path: read_settings_file(path),
        "template": lambda _, path: load_template(str(path)),
        "judge": lambda _, path: load_rubric(str(path)),
    }


def cases(samples: Path, seed: int, n_files: int) -> Iterator[tuple[str, dict[str, bytes], str]]:
    """Kind, files by name, and the name of the mutated one."""
    sources, chance = list_sources(samples), random.Random(seed)
    by_kind = Counter(kind for kind, _, _ in sources)
    weights = [(0.75 if kind == "results" else 0.05) / by_kind[kind] for kind, _, _ in sources]
    for _ in range(n_files):
        kind, files, name = chance.choices(sources, weights)[0]
        change = mutated if chance.random() < 0.6 else reshape
        data = files[name]
        for _ in range(chance.choice((1, 1, 2))):
            try:
                data = change(name, data, chance)
            except Exception:  # noqa: BLE001 - what was mutated before has no structure any more
                data = with_other_bytes(data, chance)
            data = data[:MAX_BYTES]
        yield kind, {**files, name: data}, name


def send_cases(connection: Connection, samples: Path, seed: int, n_files: int) -> None:
    """Mutate files in a process of its own, whose memory is not that of reading them."""
    for case in cases(samples, seed, n_files):
        connection.send(case)
    connection.close()


def receive_cases(samples: Path, seed: int, n_files: int) -> Iterator[tuple[str, dict[str, bytes], str]]:
    """`cases` of another process."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=send_cases, args=(sender, samples, seed, n_files), daemon=True)
    process.start()
    sender.close()
    for _ in range(n_files):
        yield receiver.recv()
    process.join()


def main(folder: Path, seed: int, n_files: int, samples: Path) -> None:
    store = folder / "store.db"
    engine = connect(f"sqlite:///{store}")
    read, watcher = readers(), sqlite3.connect(store)
    outcomes: Counter[str] = Counter()
    faults, slowest, megabytes = [], 0.0, 0.0
    for number, (kind, files, name) in enumerate(receive_cases(samples, seed, n_files)):
        work = folder / "files"
        shutil.rmtree(work, ignore_errors=True)
        for file, data in files.items():
            (work / file).parent.mkdir(parents=True, exist_ok=True)
            (work / file).write_bytes(data)
        before, fault = count_commits(watcher), ""
        forget_peak()
        start = time.process_time()
        try:
            read[kind](engine, work / name)
            outcomes["accepted"] += 1
        except SuffrageError:
            outcomes["rejected"] += 1
            fault = "half stored" if count_commits(watcher) != before else ""
        except Exception:  # noqa: BLE001 - any of them is a fault
            fault = traceback.format_exc()[-1500:]
        slowest = max(slowest, spent := time.process_time() - start)
        megabytes = max(megabytes, used := measure_memory())
        slow = f"took {spent:.1f} s" if spent > MAX_SECONDS else ""
        is_changed = count_commits(watcher) != before
        fault = fault or slow or (_find_unsound(engine) if is_changed else "")
        print(json.dumps({"n": number + 1, **outcomes, "fault": fault}), flush=True)
        if fault or used > 500:
            kept = folder / "kept" / str(number)
            shutil.copytree(work, kept)
            faults.append(f"{kept / name} ({kind}): {fault or 'too much memory'}")
    faults += [f"in the end: {text}" for text in [_find_unsound(engine)] if text]
    watcher.close()
    engine.dispose()
    print(json.dumps({**outcomes, "megabytes": round(megabytes), "seconds": round(slowest, 1), "faults": faults}))


def _find_unsound(engine: Any) -> str:
    with transaction(engine, write=False) as session:
        return " ".join(map(str, [*verify_checksums(session), *find_file_damage(session), *find_stray_rows(session)]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
