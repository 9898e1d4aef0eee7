"""The command line imports pyarrow without pandas; whoever imports pandas notices nothing."""

import subprocess
import sys

import pytest

START = """
import sys
from tracker.cli.process.pyarrow_import import import_pyarrow_without_pandas
import_pyarrow_without_pandas()
"""
CONVERSIONS = """
import pyarrow as pa
import pyarrow.compute as pc
column = pc.if_else(pc.equal(pa.array(["a", ""]), ""), None, pa.array(["a", ""]))
assert column.to_pylist() == ["a", None]
assert column.to_numpy(zero_copy_only=False).tolist() == ["a", None]
"""
DATA_FRAMES = """
from io import BytesIO
import pandas as pd
import pyarrow as pa
for values in (["a", None], [1.0, float("nan")], pd.Categorical(["x", "y"])):
    column = pa.array(pd.Series(values))
    print(column.type, column.to_pylist())
file = BytesIO()
pd.DataFrame({"text": ["a", None], "kind": pd.Categorical(["x", "y"])}).to_parquet(file)
print(pd.read_parquet(file).dtypes.to_dict())
"""


def _run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


class TestPyarrow:
    def test_python_values_are_converted_without_pandas(self) -> None:
        assert _run(f"{START}{CONVERSIONS}print('pandas' in sys.modules)") == "False\n"

    def test_to_pandas_works(self) -> None:
        assert _run(f"{START}import pyarrow as pa\nprint(pa.table({{'a': [1, 2]}}).to_pandas()['a'].sum())") == "3\n"

    @pytest.mark.parametrize("first", ["", CONVERSIONS, "import pandas\n"])
    def test_data_frames_are_converted_as_in_other_programs(self, first: str) -> None:
        assert _run(START + first + DATA_FRAMES) == _run(DATA_FRAMES)
