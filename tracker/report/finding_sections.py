"""Findings of a report by relevance, with as many figures as there is room for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tracker.queries.findings.finding_records import FindingRecord
from tracker.queries.findings.relevance import sort_by_relevance
from tracker.queries.findings.summary import Summary
from tracker.queries.selection import WHOLE
from tracker.report.contents import Contents
from tracker.report.images import make_data_url, read_png_size, read_png_title, shrink_picture
from tracker.report.metric_tables import NumberTable, build_number_tables
from tracker.report.number_format import format_minute, format_value, split_paragraphs

AT_ONCE = 8
MAX_CHOICE_LENGTH = 200

PictureKey = tuple[int, str]


@dataclass(frozen=True, kw_only=True)
class FindingPicture:
    """A figure with its title, which the figure may show itself."""

    address: str
    size: tuple[int, int] | None
    title: str
    shows_title: bool


@dataclass(frozen=True, kw_only=True)
class FindingEntry:
    """A finding as shown in the report.

    Attributes:
        id: its key.
        name: of the analysis.
        question: what the analysis answers, as a sentence.
        recorded: time of recording.
        data: its selection, if not all data.
        options: its options.
        stale: why it should be run again; '' if it is up to date.
        summary: headline, evidence and caveats.
        warnings: further warnings.
        tables: its main metrics.
        n_shown, more: number of shown metrics, and of all; ``more`` is 0 if all are shown.
        pictures: its figures.
    """

    id: int
    name: str
    question: str
    recorded: str
    data: str
    options: str
    stale: str
    summary: Summary
    warnings: tuple[str, ...]
    tables: tuple[NumberTable, ...]
    n_shown: int
    more: int
    pictures: tuple[FindingPicture, ...]


def build_finding_entries(contents: Contents, pictures: Mapping[PictureKey, bytes]) -> list[FindingEntry]:
    """Return the findings of a report, the most relevant first.

    Args:
        contents: of the report.
        pictures: figures to show, by finding and name.
    """
    return [
        _entry(record, pictures, contents) for record in sort_by_relevance(contents.findings, contents.board.leaders)
    ]


def select_pictures(contents: Contents, room: int) -> tuple[dict[PictureKey, bytes], int]:
    """Return the compressed figures of findings, and the number of those left out for lack of room.

    Figures of the latest finding of each analysis come first, then those of earlier findings, latest first.

    Args:
        contents: of the report.
        room: maximum number of bytes.
    """
    latest: dict[str, int] = {}
    for record in contents.findings:
        latest.setdefault(record.name, record.id)
    first = set(latest.values())
    order = sorted(contents.pictures, key=lambda key: (key[0] not in first, -key[0], key[1]))
    fitting: dict[PictureKey, bytes] = {}
    with ThreadPoolExecutor(2) as pool:
        for key, png in _map_in_order(pool, shrink_picture, {key: contents.pictures[key] for key in order}):
            n_bytes = len(make_data_url(png))
            if n_bytes > room:
                break
            room -= n_bytes
            fitting[key] = png
    return fitting, len(order) - len(fitting)


def _map_in_order(
    pool: ThreadPoolExecutor, work: Callable[[bytes], bytes], things: Mapping[PictureKey, bytes]
) -> Iterator[tuple[PictureKey, bytes]]:
    """Yield results in order; only a few are computed ahead."""
    waiting = iter(things.items())
    while block := list(islice(waiting, AT_ONCE)):
        yield from zip((key for key, _ in block), pool.map(work, (png for _, png in block)), strict=True)


def _entry(record: FindingRecord, pictures: Mapping[PictureKey, bytes], contents: Contents) -> FindingEntry:
    n_main = sum(number.is_main for number in record.numbers)
    return FindingEntry(
        id=record.id,
        name=record.name,
        question=next(iter(split_paragraphs(contents.questions.get(record.name, ""))), ""),
        recorded=format_minute(record.recorded),
        data=describe_selection(record.selection or {}),
        options=_choices(record.parameters or {}),
        stale=record.stale,
        summary=record.summary,
        warnings=record.warnings,
        tables=tuple(build_number_tables(record.numbers)),
        n_shown=n_main,
        more=len(record.numbers) if len(record.numbers) > n_main else 0,
        pictures=tuple(
            _picture(name, png, read_png_title(contents.pictures[key, name]))
            for (key, name), png in pictures.items()
            if key == record.id
        ),
    )


def _picture(name: str, png: bytes, title: str) -> FindingPicture:
    """Return a figure; without a title in its file, its name is the title."""
    return FindingPicture(
        address=make_data_url(png),
        size=read_png_size(png),
        title=title or name.removesuffix(".png").replace("_", " "),
        shows_title=bool(title),
    )


def describe_selection(selection: Mapping[str, Any]) -> str:
    """Describe a selection; '' if it is all data of the benchmark."""
    return _choices({name: value for name, value in selection.items() if name != "benchmark"})


def _choices(values: Mapping[str, Any]) -> str:
    choices = {
        name: value for name, value in values.items() if value not in (None, "", [], ()) and WHOLE.get(name) != value
    }
    return "; ".join(_shorten(f"{name.replace('_', ' ')} {format_value(value)}") for name, value in choices.items())


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_CHOICE_LENGTH else f"{text[: MAX_CHOICE_LENGTH - 2].rstrip()} …"
