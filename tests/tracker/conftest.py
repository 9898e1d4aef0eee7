"""A store with scores, an MLflow file, and packages from outside that bring analyses and formats."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from filelock import FileLock
from language_model_files import write_language_model

from tracker.database import connect, transaction
from tracker.queries.sql import tables
from tracker.recording.mlflow.client import open_client
from tracker.recording.mlflow.tracking_store import mlflow_store

N_PROMPTS, N_MODELS = 40, 5

TOY = '''
"""How hard are the prompts?

A toy that returns one of everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from joblib import Parallel, delayed

from tracker.errors import SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Finding, PromptValues, RankedModels, Report, Summary, Undefined, analysis


@dataclass(frozen=True, kw_only=True)
class Hardness(Finding):
    mean: float
    spread: float
    undefined: float
    boundless: float
    untested: Undefined
    n_prompts: int
    draws: np.ndarray
    grid: np.ndarray


def draw(seed: int, block: int) -> float:
    return float(np.random.default_rng([seed, block]).normal(size=1000).mean())


@analysis
def analyze(
    scores: PerformanceMatrix,
    *,
    n_blocks: Annotated[int, "blocks of draws"] = 8,
    method: Annotated[Literal["plain", "fancy"], "how"] = "plain",
    quantiles: tuple[float, ...] = (0.25, 0.75),
    threshold: float | None = None,
    verbose: bool = False,
    label: str = "",
    seed: int = 0,
) -> Report:
    import pyarrow as pa
    from matplotlib.figure import Figure

    if label == "refuse":
        raise SelectionError("This label is refused. Choose another.")
    if label == "bug":
        raise ZeroDivisionError("a bug")
    Q = scores.Q
    draws = np.array(Parallel()(delayed(draw)(seed, block) for block in range(n_blocks)))
    means = Q.mean(axis=0)

    def figure() -> Figure:
        drawn = Figure(figsize=(3, 2))
        drawn.subplots().plot(draws)
        return drawn

    values = Q.mean(axis=1)
    values[0] = np.nan
    tasks = {task: float(Q[scores.tasks == task].mean()) for task in sorted(set(scores.tasks.tolist()))}
    return Report(
        Hardness(
            mean=float(Q.mean()) + 0 * draws.sum(),
            spread=float(draws.std()),
            undefined=float("nan"),
            boundless=float("inf"),
            untested=Undefined("invariant under this null"),
            n_prompts=scores.n_prompts,
            draws=draws,
            grid=np.arange(6, dtype=np.int64).reshape(2, 3),
        ),
        summary=Summary(f"On {scores.n_prompts} prompts the mean score is {float(Q.mean()):.3f}."),
        prompt_values={"weight.toy": PromptValues(prompt_ids=scores.prompt_ids, values=values)},
        task_values={"mean": tasks | {next(iter(tasks)): float("nan")}},
        rankings={
            "toy": RankedModels(
                models=scores.models, score=means, rank=(-means).argsort().argsort() + 1.0, low=means - 1
            )
        },
        tables={"quantiles": pa.table({"q": list(quantiles), "value": np.quantile(Q, quantiles)})},
        figures={"draws": figure},
        warnings=["This is a toy."],
    )
'''

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put a package beside the installed ones, with its entry point; a package holds modules by name."""
    site = tmp_path / "site"

    def put(
        package: str, modules: dict[str, str] | str, *, module: str | None = None, group: str = "suffrage.analyses"
    ) -> None:
        information = site / f"{package}_plugin-1.2.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}-plugin\nVersion: 1.2\n")
        (information / "entry_points.txt").write_text(f"[{group}]\n{package} = {module or package}\n")
        if isinstance(modules, str):
            (site / f"{package}.py").write_text(textwrap.dedent(modules))
            return
        (site / package).mkdir()
        for name, source in ({"__init__": ""} | modules).items():
            (site / package / f"{name}.py").write_text(textwrap.dedent(source))

    monkeypatch.syspath_prepend(site)
    before = set(sys.modules)
    yield put
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(site) in str(sys.modules[name].__file__):
            del sys.modules[name]


@pytest.fixture
def toys(install: Install) -> None:
    """A package from outside, with one analysis called `toy`."""
    install("toys", {"toy": TOY})


def fill(engine: sa.Engine, benchmark: str = "arithmetic", *, n_models: int = N_MODELS, n_tasks: int = 3) -> list[int]:
    """A benchmark with scores of some models; keys of its runs."""
    rng = np.random.default_rng(7)
    with transaction(engine) as session:
        insert = session.execute

        def key(table: sa.TableClause, **values: object) -> int:
            return int(insert(sa.insert(table).values(**values).returning(table.c.id)).scalar_one())

        owner = key(tables.benchmark, name=benchmark, revision="")
        kinds = [key(tables.task, benchmark_id=owner, name=f"task {t}") for t in range(n_tasks)]
        metric = key(tables.metric, name=f"accuracy of {benchmark}", higher_is_better=True)
        prompts = [
            key(tables.prompt, task_id=kinds[i % n_tasks], occurrence=0, content_hash=f"h{i}") for i in range(N_PROMPTS)
        ]
        insert(
            sa.insert(tables.prompt_alias),
            [
                {"task_id": kinds[i % n_tasks], "namespace": "", "key": f"p{i}", "prompt_id": p}
                for i, p in enumerate(prompts)
            ],
        )
        runs = []
        for number in range(n_models):
            model = key(tables.model, name=f"{benchmark}/model {number}")
            run = key(
                tables.run,
                benchmark_id=owner,
                model_id=model,
                condition="full",
                variant="",
                label="",
                settings={"temperature": 0.5, "nested": {"a": [1, 2], "long": "x" * 7000}},
                limited=False,
                status="complete",
                n_scores=N_PROMPTS,
                checksum=f"{number:032x}",
                ingested=sa.func.current_timestamp(),
            )
            values = (rng.random(N_PROMPTS) < 0.3 + 0.1 * number).astype(float)
            insert(
                sa.insert(tables.score),
                [
                    {"run_id": run, "metric_id": metric, "prompt_id": p, "trial": 0, "value": v}
                    for p, v in zip(prompts, values.tolist(), strict=True)
                ],
            )
            runs.append(run)
        return runs


@pytest.fixture
def more() -> Callable[..., list[int]]:
    """`fill`, for tests that need another benchmark or another size."""
    return fill


@pytest.fixture
def filled(store: sa.Engine) -> sa.Engine:
    """A store with the benchmark `arithmetic`, on each engine in turn."""
    fill(store)
    return store


@pytest.fixture
def filled_file(sqlite_url: str) -> Iterator[sa.Engine]:
    """The same, on SQLite only."""
    engine = connect(sqlite_url)
    fill(engine)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sentence-transformers model with random weights; skipped where the extra is not installed."""
    for package in ("torch", "transformers", "sentence_transformers"):
        pytest.importorskip(package, reason=f"{package} of the extra `models` is not installed")
    from encoder_files import write_encoder

    return write_encoder(tmp_path_factory.mktemp("encoders") / "tiny")


@pytest.fixture(scope="session")
def mlflow_template(folder_of_all_workers: Path) -> Path:
    """An empty MLflow file that others are copied from: making one takes MLflow seconds."""
    path = folder_of_all_workers / "mlflow_template.db"
    with FileLock(f"{path}.lock"):
        if not path.exists():
            with open_client(mlflow_store(f"sqlite:///{path}.new")):
                pass
            Path(f"{path}.new").rename(path)
    return path


@pytest.fixture
def tracking_uri(tmp_path: Path, mlflow_template: Path) -> str:
    """An empty MLflow store of this test's own."""
    shutil.copy(mlflow_template, tmp_path / "mlflow.db")
    return f"sqlite:///{tmp_path / 'mlflow.db'}"


class _LanguageModels(dict[str, Path]):
    """Small language models by family, each made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, family: str) -> Path:
        folder = self.folder / family
        with FileLock(f"{folder}.lock"):
            if not folder.exists():
                write_language_model(self.folder / f"{family}.new", family).rename(folder)
        self[family] = folder
        return folder


@pytest.fixture(scope="session")
def folder_of_all_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the workers of a run share, for what is made once; whoever makes it holds a lock."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "of_all_workers"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def language_model_folders(folder_of_all_workers: Path) -> dict[str, Path]:
    """Folders of a small gpt2, llama, qwen2 and t5, by family."""
    pytest.importorskip("transformers", reason="the extra `models` is not installed")
    return _LanguageModels(folder_of_all_workers)
