"""Storage of results of lm-evaluation-harness as its run ends.

In Python, `simple_evaluate` in place of that of ``lm_eval``, or `store_results` of what that returned. On the command
line, ``python -m tracker.integrations.lm_eval`` with the arguments of ``lm_eval``. The harness writes the files of
``--output_path`` and ``--log_samples``, and what ``suffrage ingest`` stores of them is stored.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tracker.errors import OutputError
from tracker.ingest.formats.lm_eval import mismatch_reason
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import IngestResult
from tracker.integrations.storing import logger, store_files

OTHER_COMMANDS = ("ls", "validate", "-h", "--help")


def simple_evaluate(
    *arguments: Any,
    database: str | None = None,
    benchmark: str | None = None,
    output_path: str | Path | None = None,
    **options: Any,
) -> dict[str, Any] | None:
    """Evaluate as ``lm_eval.simple_evaluate``, with its arguments and its result, and store the result.

    Args:
        arguments, options: those of ``lm_eval.simple_evaluate``.
        database, benchmark, output_path: as for `store_results`.
    """
    import lm_eval
    from lm_eval.loggers import EvaluationTracker

    tracker = options.setdefault("evaluation_tracker", EvaluationTracker())
    results: dict[str, Any] | None = lm_eval.simple_evaluate(*arguments, **options)
    store_results(results, database=database, benchmark=benchmark, output_path=output_path, evaluation_tracker=tracker)
    return results


def store_results(
    results: Mapping[str, Any] | None,
    *,
    database: str | None = None,
    benchmark: str | None = None,
    model: str | None = None,
    output_path: str | Path | None = None,
    evaluation_tracker: Any = None,
) -> list[IngestResult]:
    """Store what ``lm_eval.simple_evaluate`` returned. The same results are stored once.

    If they cannot be stored, a warning names the reason and the command that imports the files.

    Args:
        results: with samples, as by default; None, as on all processes but the first, stores nothing.
        database: URL or path of the store; else as in `tracker.connections.store_url.database_url`.
        benchmark: its name; else the environment variable SUFFRAGE_BENCHMARK, else the group or task.
        model: name of the model; else of the arguments of the model.
        output_path: folder in which the harness's files stay; else a temporary one.
        evaluation_tracker: that of the evaluation; without it, chat template and system prompt are not recorded.
    """
    if results is None:
        return []
    folder = Path(mkdtemp(prefix="lm_eval_")) if output_path is None else Path(output_path)
    config = results.get("config", {})
    try:
        path = write_results(results, folder, evaluation_tracker)
    except Exception as error:  # noqa: BLE001 - hours of evaluation must not be lost by a disk or another version
        logger.warning("Suffrage could not store the results, which lm-eval cannot write to %s: %s", folder, error)
        return []
    if model is None and not config.get("model_args"):
        model = config.get("model")
    stored = store_files([path], database=database, benchmark=benchmark, model=model)
    if stored and output_path is None:
        shutil.rmtree(folder)
    return stored


def write_results(results: Mapping[str, Any], folder: Path, evaluation_tracker: Any = None) -> Path:
    """Write results and samples as the harness does. The time in the names is that of the results, if they have one.

    Returns:
        The file of the results; the samples are beside it.

    Raises:
        OutputError: the harness cannot write the results.
    """
    from lm_eval.loggers import EvaluationTracker

    written = dict(results)
    samples = {task: [dict(row) for row in rows] for task, rows in (written.pop("samples", None) or {}).items()}
    writer = EvaluationTracker(output_path=str(folder))
    if evaluation_tracker is None:
        config = written.get("config", {})
        source, arguments = str(config.get("model")), config.get("model_args") or ""
        writer.general_config_tracker.log_experiment_args(source, arguments, None, None, False)
    else:
        writer.general_config_tracker = evaluation_tracker.general_config_tracker
    before = _find_results(folder)
    writer.save_results_aggregated(results=written, samples=samples or None)
    new = sorted(_find_results(folder) - before)
    if not new:  # the harness logs why, and goes on
        raise OutputError(f"lm-evaluation-harness could not write its results to {folder}; its log has the reason.")
    for task, rows in samples.items():
        writer.save_results_samples(task_name=task, samples=rows)
    stamp = str(writer.date_id)
    if isinstance(written.get("date"), float):
        stamp = datetime.fromtimestamp(written["date"]).isoformat().replace(":", "-")
    for path in sorted(new[0].parent.glob(f"*{writer.date_id}.json*")):
        path.replace(path.with_name(path.name.replace(writer.date_id, stamp)))
    return new[0].with_name(new[0].name.replace(writer.date_id, stamp))


def run_harness(arguments: Sequence[str]) -> int:
    """Run ``lm_eval`` with these arguments, and store the results that it writes.

    Samples are logged. Without an output path, a temporary one is used.

    Returns:
        The exit status of the harness.
    """
    if not arguments or arguments[0] in OTHER_COMMANDS:
        return _run(*arguments)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--output_path", "-o")
    parser.add_argument("--log_samples", "-s", action="store_true")
    parser.add_argument("--config", "-C")
    known, _ = parser.parse_known_args(list(arguments))
    output_path = known.output_path or _configured_path(known.config)
    folder = Path(output_path or mkdtemp(prefix="lm_eval_"))
    added = [] if output_path else ["--output_path", str(folder)]
    added += [] if known.log_samples else ["--log_samples"]
    place = folder.parent if folder.suffix == ".json" else folder
    before = _find_results(place)
    status = _run(*arguments, *added)
    new = sorted(_find_results(place) - before)
    stored = store_files(new)
    for result in stored:
        sys.stderr.write(f"{result.summary()}\n")
    if status == 0 and not new:
        logger.warning("lm_eval wrote no results to %s: nothing is stored.", place)
    if not output_path and len(stored) == len(new):
        shutil.rmtree(folder, ignore_errors=True)
    return status


def _run(*arguments: str) -> int:
    """Run the harness in another process."""
    return subprocess.run([sys.executable, "-m", "lm_eval", *arguments], check=False).returncode


def _configured_path(config: str | None) -> str | None:
    """Return the output path of a configuration file, if it names one."""
    import yaml

    if config is None or not Path(config).is_file():
        return None
    content = yaml.safe_load(Path(config).read_text(encoding="utf-8"))
    return content.get("output_path") if isinstance(content, dict) else None


def _find_results(folder: Path) -> set[Path]:
    """Return the files of results in a folder and below."""
    paths = folder.rglob("*.json") if folder.is_dir() else ()
    return {path for path in paths if mismatch_reason(path, ReadOptions()) is None}


if __name__ == "__main__":
    sys.exit(run_harness(sys.argv[1:]))
