"""Encode arrays, tables and figures as reproducible bytes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import PluginError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from tracker.recording.finding import Report

PARQUET = "application/vnd.apache.parquet"
PNG = "image/png"
ARRAYS = "arrays.parquet"
FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "PingFang SC",
    "Microsoft YaHei",
    "Arial Unicode MS",
)
"""Fonts for other scripts, by system."""


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A file of a finding.

    Attributes:
        name: file name, with its suffix.
        media_type: such as image/png.
        content: its bytes.
    """

    name: str
    media_type: str
    content: bytes


def build_artifacts(report: Report) -> list[Artifact]:
    """Encode the arrays of a report as one file, and each table and figure as a file.

    Raises:
        PluginError: two artifacts have the same name.
    """
    artifacts = []
    if report.finding.arrays:
        artifacts.append(Artifact(name=ARRAYS, media_type=PARQUET, content=encode_arrays(report.finding.arrays)))
    for name, table in report.tables.items():
        artifacts.append(Artifact(name=f"{name}.parquet", media_type=PARQUET, content=encode_table(table)))
    for name, draw in report.figures.items():
        artifacts.append(Artifact(name=f"{name}.png", media_type=PNG, content=render_figure(draw)))
    names = [artifact.name for artifact in artifacts]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise PluginError(f"The analysis returns two artifacts with the name {twice[0]}. Rename its table.")
    return artifacts


def encode_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Encode arrays as Parquet with one row; each column holds one array as a list in C order, its shape in the field's
    metadata.
    """
    import pyarrow as pa

    fields, columns = [], []
    for name, array in arrays.items():
        values = pa.array(np.ascontiguousarray(array).reshape(-1))
        fields.append(pa.field(name, pa.list_(values.type), metadata={"shape": json.dumps(array.shape)}))
        columns.append(pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values))
    return encode_table(pa.Table.from_arrays(columns, schema=pa.schema(fields)))


def encode_table(table: pa.Table) -> bytes:
    """Encode a table as compressed Parquet."""
    import pyarrow.parquet as pq

    buffer = BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def decode_table(content: bytes) -> pa.Table:
    """Decode a table of `encode_table`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # The dataset reader behind read_table starts threads. A process that ends before them aborts.
    return pq.ParquetFile(pa.BufferReader(content), pre_buffer=False).read(use_threads=False)


METADATA = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "svg": {"Date": None},
}
"""Metadata to clear in each format: time and program."""


def render_figure(draw: Callable[[], Figure], form: str = "png") -> bytes:
    """Encode a figure as png, pdf or svg, without the version of matplotlib.

    Letters that matplotlib's default font lacks come from the fonts of the machine, if one of `FONTS` is installed.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.font_manager import get_font_names

    installed_fonts = set(get_font_names())
    buffer = BytesIO()
    families = ["DejaVu Sans", *(name for name in FONTS if name in installed_fonts)]
    with mpl.rc_context({"font.family": families, "svg.hashsalt": "suffrage"}):
        figure = draw()
        with warnings.catch_warnings():
            # A letter in none of them is drawn as a box; the tables beside the figure have the name.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            if form == "png":  # `savefig` would lay the figure out twice
                FigureCanvasAgg(figure).print_png(buffer, metadata=METADATA[form] | _title(figure))
            else:
                figure.savefig(buffer, format=form, metadata=METADATA[form] | _title(figure))
    return buffer.getvalue()


def _title(figure: Figure) -> dict[str, str]:
    """Return the title of a figure as metadata of its file."""
    title = " ".join(figure.get_suptitle().split())
    return {"Title": title} if title else {}
