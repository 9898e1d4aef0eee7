"""Small files that expand to very much, or are shaped to cost time."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

MEGABYTE = 1_000_000
REFERENCES = "a: &a0 [x, x]\n" + "".join(f"b{i}: &a{i + 1} [*a{i}, *a{i}, *a{i}]\n" for i in range(30))


def packed(chunk: bytes, times: int, before: bytes = b"", after: bytes = b"") -> bytes:
    """A gzip file of a chunk repeated."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        file.write(before)
        for _ in range(times):
            file.write(chunk)
        file.write(after)
    return buffer.getvalue()


def inspect_archive(member: str, parts: Iterator[bytes], *, with_zstd: bool = False) -> bytes:
    """An archive of Inspect with one member, deflated or as one frame of zstd that calls itself stored."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED if with_zstd else zipfile.ZIP_DEFLATED) as archive:
        header = b'{"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}'
        with archive.open("header.json", "w") as file:
            file.write(header)
        with archive.open(member, "w", force_zip64=True) as file:
            if with_zstd:
                with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as writer:
                    for part in parts:
                        writer.write(part)
            else:
                for part in parts:
                    file.write(part)
    data = buffer.getvalue()
    if with_zstd:  # the compression method of the last member, in both of its headers
        for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            at = data.rindex(mark) + place
            data = data[:at] + (93).to_bytes(2, "little") + data[at + 2 :]
    return data


def long_string() -> Iterator[bytes]:
    """A list of one sample with a string of 600 MB."""
    yield b'[{"id": 1, "epoch": 1, "input": "'
    for _ in range(600):
        yield b"x" * MEGABYTE
    yield b'", "scores": {}}]'


def parquet_of_equal_texts(length: int = MEGABYTE, rows: int = 3_000) -> bytes:
    """A file whose one text of 1 MB is in every row."""
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * length]))
    table = pa.table({"model": texts, "prompt_id": [str(i) for i in range(rows)], "score": np.ones(rows)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", use_dictionary=["model"])
    return buffer.getvalue()


def parquet_of_constants(rows: int = 60_000_000) -> bytes:
    """A file of 60 million equal numbers in a few kilobytes."""
    buffer = io.BytesIO()
    block = pa.table({"model": np.zeros(5_000_000), "score": np.ones(5_000_000)})
    with pq.ParquetWriter(buffer, block.schema, compression="zstd") as writer:
        for _ in range(rows // len(block)):
            writer.write_table(block)
    return buffer.getvalue()


def npz_of_zeros(size: int = 100_000_000) -> bytes:
    """Vectors of zeros, deflated."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        array = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            array, {"descr": "<f4", "fortran_order": False, "shape": (size // 100, 100)}
        )
        with archive.open("vector.npy", "w", force_zip64=True) as file:
            file.write(array.getvalue())
            for _ in range(4 * size // MEGABYTE):
                file.write(bytes(MEGABYTE))
    return buffer.getvalue()


def ingested_bombs() -> dict[str, bytes]:
    """Files for `suffrage ingest`, by name."""
    table = b"model,prompt_id,score\n"
    return {
        "cell.csv.gz": packed(b"x" * MEGABYTE, 1000, table + b'm,"', b'",1\n'),
        "rows.csv.gz": packed(b"m,1,1\n" * 100_000, 500, table),
        "columns.csv": b"model," + b",".join(b"%d" % i for i in range(1_500_000)) + b"\nm" + b",1" * 1_500_000 + b"\n",
        "columns.csv.gz": packed(b"a," * 500_000, 100, b"model,", b"b\nm,1\n"),
        "zeros.gz": packed(bytes(MEGABYTE), 2000),
        "name.csv": table + b"m," + b"p" * 200_000 + b",1\n",
        "model.csv": table + b"m" * 100_000 + b",p,1\n",
        "lines.jsonl.gz": packed(b"{}\n" * 300_000, 300, b'{"doc_id": 0, "doc": {}, "acc": 1}\n'),
        "line.jsonl.gz": packed(b"x" * MEGABYTE, 900, b'{"doc_id": 0, "doc": "', b'"}\n'),
        "values.json.gz": packed(b"[]," * 300_000, 300, b'{"results": [', b"1]}"),
        "values.json": b'{"results": {"t": [' + b"[]," * 6_000_000 + b"1]}}",
        "deep.json": b'{"results": ' * 100_000 + b"1" + b"}" * 100_000,
        "deep_list.json": b"[" * 5_000_000,
        "deep.jsonl": b'{"doc_id": 0, "doc": ' + b"[" * 900 + b"]" * 900 + b', "acc": 1}\n',
        "string.eval": inspect_archive("summaries.json", long_string()),
        "zstd.eval": inspect_archive("summaries.json", long_string(), with_zstd=True),
        "journal.eval": inspect_archive("_journal/summaries/1.json", long_string()),
        "texts.parquet": parquet_of_equal_texts(),
        "constants.parquet": parquet_of_constants(),
        "aliases.yaml": b"description: x\nproviders: [a]\n" + REFERENCES.encode(),
        "deep.yaml": b"results: " + b"- " * 50_000 + b"x\n",
        "flow.yaml": b"results: " + b"[" * 100_000,
        "values.yaml": b"results: [" + b"[]," * 2_000_000 + b"1]\n",
        "head.tar.gz": packed(bytes(MEGABYTE), 1000, b"x" * 156 + b"x" + b"\0" * 100 + b"ustar"),
    }
