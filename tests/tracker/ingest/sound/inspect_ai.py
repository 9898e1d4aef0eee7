"""Logs of Inspect AI: archives with both compressions, of finished and of broken-off evaluations, and JSON logs."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import zstandard

from tracker.ingest.measurement import ReadOptions

STORED, DEFLATED, ZSTD = 0, 8, 93


def compressed(data: bytes, method: int) -> bytes:
    if method == DEFLATED:
        machine = zlib.compressobj(wbits=-15)
        return machine.compress(data) + machine.flush()
    return zstandard.ZstdCompressor().compress(data) if method == ZSTD else data


def archive(members: Mapping[str, Any] | Sequence[tuple[str, Any]], method: int = DEFLATED) -> bytes:
    """A zip file; what is no bytes is written as JSON, NaN included."""
    entries = list(members.items()) if isinstance(members, Mapping) else list(members)
    body, table = bytearray(), bytearray()
    for name, content in entries:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        packed = compressed(data, method)
        common = struct.pack(
            "<HHHHHIIIHH", 63, 0, method, 0, 0x5C21, zlib.crc32(data), len(packed), len(data), len(name), 0
        )
        table += b"PK\x01\x02" + struct.pack("<H", 63) + common + struct.pack("<HHHII", 0, 0, 0, 0, len(body))
        table += name.encode()
        body += b"PK\x03\x04" + common + name.encode() + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(table), len(body), 0)
    return bytes(body + table + b"PK\x05\x06" + end)


def sample(
    number: int | str = 1, epoch: int = 1, value: Any = "C", scorer: str = "match", **more: Any
) -> dict[str, Any]:
    """A sample as summaries have it."""
    result = {
        "id": number,
        "epoch": epoch,
        "input": f"What is {number} + {number}?",
        "target": "2",
        "metadata": {"level": 1, "why": "x" * 300},
        "scores": {scorer: {"value": value, "answer": "2", "explanation": 'It is {2}, ["so"].'}},
        "uuid": f"u{number}-{epoch}-{value}",
        "completed": True,
    }
    return {name: part for name, part in {**result, **more}.items() if part is not None}


def whole(item: Mapping[str, Any]) -> dict[str, Any]:
    """The same sample with its transcript, as JSON logs have it."""
    transcript = [{"role": "user", "content": "attachment://0123"}, {"role": "assistant", "content": 'It is "2" }],'}]
    return {
        "id": item["id"],
        "messages": transcript,
        **item,
        "output": {"choices": [{"message": transcript[1], "stop_reason": "stop"}]},
        "events": [{"event": "model", "input": transcript, "n": [1, [2, {"scores": {}}]]}],
        "attachments": {"0123": "What?"},
    }


def reported(
    value: float, name: str = "accuracy", scorer: str = "match", error: float | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "name": scorer,
        "scorer": scorer,
        "params": {},
        "metrics": {name: {"name": name, "value": value}, "stderr": {"name": "stderr", "value": error}},
        **more,
    }


def header(*scores: Mapping[str, Any], status: str = "success", **result: Any) -> dict[str, Any]:
    """The head of a log; further keywords go into what was run."""
    spec = {
        "eval_id": "e1",
        "run_id": "r1",
        "created": "2026-01-02T03:04:05+02:00",
        "task": "package/sums",
        "task_args": {"fewshot": 5},
        "dataset": {"name": "sums", "samples": 3, "sample_ids": [1, 2, 3]},
        "model": "org/model",
        "model_args": {"device": "cpu", "api_key": "hidden"},
        "config": {"epochs": 1, "epochs_reducer": ["mean"]},
        "packages": {"inspect_ai": "0.3.285"},
        **result,
    }
    return {
        "version": 2,
        "status": status,
        "eval": spec,
        "plan": {"name": "plan", "steps": [{"solver": "generate", "params": {}}], "config": {"temperature": 0.5}},
        "results": {"total_samples": 3, "completed_samples": 3, "scores": list(scores)},
        "stats": {"started_at": "2026-01-02T03:04:06+02:00"},
    }


def start(**result: Any) -> dict[str, Any]:
    """What the journal of a log begins with."""
    return {name: part for name, part in header(**result).items() if name in ("version", "eval", "plan")}


SAMPLES = [
    sample(1, value="C"),
    sample(2, value="I", input=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2?"}]),
    sample("three", value=float("nan"), choices=["1", "2"], target="B"),
]
SEVERAL = [
    sample(1, 1, {"right": 1, "brief": 0.5}, "judge"),
    sample(1, 2, {"right": 0, "brief": [1]}, "judge"),
    sample(2, 1, None, error="Connection lost", scores=None),
]
LOG = header(reported(0.5))
FILES = {
    "new.eval": archive({"_journal/start.json": start(), "summaries.json": SAMPLES, "header.json": LOG}, ZSTD),
    "old.eval": archive(
        {
            "_journal/start.json": start(),
            "samples/1_epoch_1.json": whole(SAMPLES[0]),
            "_journal/summaries/1.json": SAMPLES,
            "summaries.json": SAMPLES,
            "header.json": LOG,
        }
    ),
    "stored.eval": archive({"summaries.json": SEVERAL, "header.json": header()}, STORED),
    "crashed.eval": archive(
        {
            "_journal/start.json": start(),
            "_journal/summaries/1.json": SAMPLES[:2],
            "_journal/summaries/2.json": [sample(2, value="C")],
        },
        ZSTD,
    ),
    "log.json": json.dumps({**LOG, "samples": [whole(item) for item in SAMPLES], "reductions": []}, indent=2).encode(),
    "first.json": json.dumps(
        {
            **{name: part for name, part in LOG.items() if name != "results"},
            "results": {"scorer": {"name": "match"}, "metrics": {"accuracy": {"name": "accuracy", "value": 1}}},
            "samples": [{**whole(sample(1, scores=None)), "score": {"value": "C", "answer": "2"}}],
        }
    ).encode(),
    "bare.json": json.dumps(header(reported(0.25, scored_samples=8))).encode(),
}
OPTIONS = [ReadOptions(), ReadOptions(errored="wrong", empty="missing", benchmark="b", model="m", metric="accuracy")]
