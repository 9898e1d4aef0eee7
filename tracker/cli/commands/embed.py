"""The command `suffrage embed`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracker.cli.help_text import Command
from tracker.cli.options import database_option, limits_option
from tracker.cli.output import inform, warn
from tracker.cli.progress import progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sqlalchemy import Engine

    from tracker.evaluating.embeddings.text_encoder import TextEncoder
    from tracker.ingest.write.vectors import EncoderName
    from tracker.queries.resolution import BenchmarkKey


@click.command(cls=Command)
@click.argument("benchmark")
@click.option(
    "--encoder",
    metavar="NAME",
    help=(
        "Encoder: minilm, a folder with a sentence-transformers model or a language model, or a "
        "name on the model hub. last-token:NAME forces a language model. With --from-file, the "
        "name of the encoder that made the vectors."
    ),
    show_default="minilm",
)
@click.option(
    "--revision", default="", metavar="TEXT", help="Revision of the encoder on the hub.", show_default="the latest"
)
@click.option(
    "--template",
    default="question+choices",
    show_default=True,
    metavar="question|question+choices|details:FIELD",
    help="Text to embed: the question, the question with its options, or another stored field.",
)
@click.option(
    "--from-file",
    type=click.Path(path_type=Path, readable=False),
    metavar="PATH",
    help="Parquet or npz file with columns prompt_id and vector to import in place of embedding.",
)
@click.option(
    "--batch-size", type=click.IntRange(min=1), default=32, show_default=True, help="Number of texts embedded at once."
)
@click.option(
    "--device", metavar="NAME", help="Device to compute on, such as cpu or cuda.", show_default="the fastest available"
)
@limits_option
@database_option
def command(
    benchmark: str,
    encoder: str | None,
    revision: str,
    template: str,
    from_file: Path | None,
    batch_size: int,
    device: str | None,
    database: str | None,
) -> None:
    """Embed the prompts of a benchmark as vectors.

    Semantic analyses and filters use the vectors. Only prompts without a vector of this encoder, revision and template
    are embedded, so an interrupted command can be run again to resume. Encoders need the extra `models`.

    Examples:
        suffrage embed mmlu_pro
        suffrage embed mmlu_pro --encoder ./bge-small --batch-size 64
        suffrage embed mmlu_pro --from-file vectors.parquet --encoder bge-small
    """
    from tracker.database import connect
    from tracker.evaluating.embeddings.encoders import DEFAULT_ENCODER
    from tracker.evaluating.embeddings.texts import check_template
    from tracker.ingest.write.vectors import EncoderName

    check_template(template)
    if from_file is not None:
        if not encoder:
            raise click.UsageError("--from-file needs --encoder NAME: what made these vectors.")
        encoder_name = EncoderName(name=encoder, revision=revision, template=template)
        ingest_vector_file(connect(database, create=False), benchmark, from_file, encoder_name)
        return
    embed(
        connect(database, create=False),
        benchmark,
        encoder or DEFAULT_ENCODER,
        revision=revision,
        template=template,
        batch_size=batch_size,
        device=device,
    )


def ingest_vector_file(engine: Engine, benchmark: str, path: Path, encoder: EncoderName) -> None:
    """Store the vectors of a file, all or none, and print the result."""
    from tracker.database import transaction
    from tracker.ingest.files.vector_file import read_vectors
    from tracker.ingest.write.vectors import ingest_vectors
    from tracker.queries.embeddings import list_embedded_prompts
    from tracker.queries.resolution import find_benchmark, select_tasks
    from tracker.queries.scores import read_prompts
    from tracker.queries.selection import Selection

    with transaction(engine, write=False) as session:
        key = find_benchmark(session, benchmark)
    file = read_vectors(path)
    with transaction(engine, exclusive=True) as session:
        result = ingest_vectors(session, file, key.id, key.label, encoder)
    stored = f", {result.n_unchanged:,} stored before" if result.n_unchanged else ""
    inform(f"{path}: {result.n_new:,} new vectors of {result.dimensions:,} numbers by {encoder.label}{stored}")
    with transaction(engine, write=False) as session:
        n_prompts = len(read_prompts(session, select_tasks(session, key, Selection(benchmark=benchmark)))[0])
        n_with = len(list_embedded_prompts(session, key, encoder.name, encoder.revision, encoder.template))
    if n_with < n_prompts:
        warn(f"{n_prompts - n_with:,} of {n_prompts:,} prompts have no vector of this encoder")


def embed(
    engine: Engine,
    benchmark: str,
    encoder: str,
    *,
    revision: str = "",
    template: str,
    batch_size: int = 32,
    device: str | None = None,
) -> None:
    """Make and store the vectors that are missing, some hundred per transaction, and print the result."""
    import numpy as np

    from tracker.database import transaction
    from tracker.evaluating.embeddings.encoders import load_encoder
    from tracker.evaluating.embeddings.texts import template_texts
    from tracker.ingest.write.vectors import EncoderName
    from tracker.queries.embeddings import list_embedded_prompts
    from tracker.queries.prompts import load_prompts
    from tracker.queries.resolution import find_benchmark
    from tracker.queries.selection import Selection

    with transaction(engine, write=False) as session:
        key = find_benchmark(session, benchmark)
        stored_prompts = load_prompts(session, Selection(benchmark=benchmark))
    every = template_texts(stored_prompts, template, key.label)
    loaded = load_encoder(encoder, revision=revision, device=device)
    encoder_name = EncoderName(name=loaded.name, revision=loaded.revision, template=template)
    with transaction(engine, write=False) as session:
        stored = list_embedded_prompts(session, key, loaded.name, loaded.revision, template)
    rows = [row for row, text in enumerate(every) if text is not None]
    texts = [text for text in every if text is not None]
    lengths = loaded.lengths(texts)
    ids = stored_prompts.prompt_ids[rows]
    try:
        n_useless = _embed_missing(engine, key, loaded, encoder_name, texts, ids, lengths, stored, batch_size)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "Stopped; the vectors so far are stored. Run the same command again to continue."
        ) from None
    n_new = len(np.setdiff1d(ids, list(stored))) - n_useless
    before = f", {len(stored):,} stored before" if stored else ""
    inform(f"{key.label}: {n_new:,} new vectors of {loaded.dimensions:,} numbers by {encoder_name.label}{before}")
    if loaded.warning:
        warn(loaded.warning)
    if loaded.limit is not None and (n_long := int((lengths > loaded.limit).sum())):
        warn(
            f"{n_long:,} of {len(texts):,} texts are longer than the {loaded.limit:,} tokens that the encoder "
            "reads; the rest of them was cut off"
        )
    if len(texts) < len(every):
        warn(f"{len(every) - len(texts):,} of {len(every):,} prompts have no text for {template}, and no vector")
    if n_useless:
        warn(f"for {n_useless:,} texts the encoder gave no direction (zero, or not finite); they have no vector")


def _embed_missing(
    engine: Engine,
    key: BenchmarkKey,
    encoder: TextEncoder,
    encoder_name: EncoderName,
    texts: list[str],
    ids: NDArray[np.int64],
    lengths: NDArray[np.int64],
    stored: set[int],
    batch_size: int,
) -> int:
    """Store the missing vectors as they are made; how many could not be used."""
    from tracker.database import transaction
    from tracker.evaluating.embeddings.batches import embed_batches, find_missing_batches, make_batches
    from tracker.ingest.write.vectors import add_vectors, find_or_add_encoder

    todo = find_missing_batches(make_batches(ids, lengths, encoder.limit, batch_size), ids, stored)
    total, done, n_useless = sum(batch.cost for batch in todo), 0, 0
    with progress(key.label) as advance:
        if advance:
            advance(0, total)
        for portion in embed_batches(encoder, texts, ids, todo, stored):
            with transaction(engine, exclusive=True) as session:
                encoder_id = find_or_add_encoder(session, encoder_name, encoder.dimensions)
                add_vectors(session, encoder_id, portion.prompt_ids, portion.vectors)
            done += portion.cost
            n_useless += portion.n_useless
            if advance:
                advance(done, total)
    return n_useless
