"""Start a Dask scheduler and two workers on this machine and run `prompt-correlation` with 10,000 permutations on them.

The data are MMLU-Pro's 12,032 prompts and 29 models, of ../shared/data; without them, SIMULATED scores of as many.
Everything is in a temporary folder, and ends with the command: `make cluster-demo`.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pandas as pd
from distributed import LocalCluster

from benchmarks._tables import binary_table
from tracker.cli import suffrage

MMLU_PRO = Path(__file__).parents[2] / "shared/data/mmlu_pro/scores_wide.csv.gz"
N_PERMUTATIONS = os.environ.get("N_PERMUTATIONS", "10000")


def main() -> None:
    """Import the data, start the cluster, run the analysis."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["SUFFRAGE_DATABASE_URL"] = f"sqlite:///{folder}/suffrage.db"
        if MMLU_PRO.exists():
            benchmark, scores = "mmlu_pro", MMLU_PRO
        else:
            benchmark, scores = "simulated", Path(folder, "simulated.csv")
            print(f"{MMLU_PRO} is absent. The scores are simulated.")
            table = pd.DataFrame(binary_table(12_032, 29).astype(int)).add_prefix("model ")
            table.rename_axis("prompt_id").to_csv(scores)
        suffrage(["ingest", str(scores), "--benchmark", benchmark], standalone_mode=False)
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
            options = ["--cluster", cluster.scheduler_address, "--n-permutations", N_PERMUTATIONS, "--no-mlflow"]
            command = ["analyze", "prompt-correlation", benchmark, *options]
            print(f"$ suffrage {' '.join(command)}", flush=True)
            started = time.perf_counter()
            suffrage(command, standalone_mode=False)
            print(f"Two workers took {time.perf_counter() - started:.0f} s.")


if __name__ == "__main__":
    main()
