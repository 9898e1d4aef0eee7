"""Export the pages of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from tracker.web.export.folder import replace_folder
from tracker.web.export.scope import load_scope
from tracker.web.export.site_writer import Progress, SiteWriter
from tracker.web.store_cache import StoreCache


@dataclass(frozen=True, kw_only=True)
class ExportSummary:
    """What an export wrote.

    Attributes:
        n_files, n_bytes: in the folder.
        n_prompts: with a page.
        changed: whether the store changed meanwhile.
    """

    n_files: int
    n_bytes: int
    n_prompts: int
    changed: bool


def export_site(
    engine: sa.Engine, folder: Path, benchmarks: Sequence[str] = (), progress: Progress | None = None
) -> ExportSummary:
    """Write the pages of a store as static files.

    Args:
        engine: the store; it is only read.
        folder: where to; an earlier export there is replaced at the end.
        benchmarks: names of benchmarks; all of the store by default.
        progress: takes the done and the total amount.

    Raises:
        OutputError: the folder cannot be written, or has files that no export wrote.
        NotFoundError: a benchmark does not exist.
        AmbiguousError: a benchmark has several revisions.
    """
    scope = load_scope(engine, benchmarks)
    cache = StoreCache(engine)
    try:
        with replace_folder(folder) as unfinished, cache.open_snapshot() as snapshot:
            n_prompts = SiteWriter(cache, snapshot, scope, unfinished, progress).write()
            sizes = [entry.stat().st_size for entry in unfinished.rglob("*") if entry.is_file()]
            changed = cache.refresh() != snapshot.version
    finally:
        cache.close()
    return ExportSummary(n_files=len(sizes), n_bytes=sum(sizes), n_prompts=n_prompts, changed=changed)
