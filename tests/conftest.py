"""Stores for the tests: made by the migrations, on real engines."""

from __future__ import annotations

import gc
import io
import os
import shutil
import signal
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
import wheel_server
from hypothesis import HealthCheck, settings
from PIL import Image
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.util import LRUCache

from tracker.cli import GC_THRESHOLD
from tracker.connections.schema_versions import current_version, known_versions, upgrade
from tracker.database import connect, create_unchecked_engine
from tracker.errors import DatabaseError
from tracker.integrity.verification import find_content_faults, snapshot
from tracker.recording.artifacts import render_figure
from tracker.recording.checks.large_tables import open_unshared_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# No example is timed: the first of a test may have to compile the kernels, and machines are shared.
# A plain run draws the same few examples every time, so that a red build is due to its change; the soak runs all tests
# with new ones.
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", settings.get_profile("random"), derandomize=True, max_examples=10)
settings.load_profile("repeatable")

_COMPILED: dict[type, Any] = {}

BLANK = io.BytesIO()
Image.new("L", (200, 100), 255).save(BLANK, "png")


def _share_compiled_statements() -> None:
    """Compile each statement once per process: every test has engines of its own, whose caches would begin empty.

    A cache is keyed by its dialect object, so dialects of one class count as equal here.
    """

    def construct(self: sa.Engine, pool: Any, dialect: Any, *arguments: Any, **options: Any) -> None:
        construct_alone(self, pool, dialect, *arguments, **options)
        self._compiled_cache = _COMPILED.setdefault(type(dialect), LRUCache(5000))

    construct_alone = sa.Engine.__init__
    sa.Engine.__init__ = construct  # type: ignore[method-assign,assignment]
    for dialect in (SQLiteDialect, PGDialect):
        dialect.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign]
        dialect.__eq__ = lambda self, compared: type(self) is type(compared)  # type: ignore[method-assign]


_share_compiled_statements()

SERVER_FOLDER = "SUFFRAGE_TEST_POSTGRES_FOLDER"
SHARED = Path(os.environ.get("SUFFRAGE_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reads the settings of the person who runs it, or writes into their folder."""
    for name in list(os.environ):
        if name.startswith(("MLFLOW_", "SUFFRAGE_")) and not name.startswith("SUFFRAGE_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setattr("tracker.queries.packed.pack_folder.find_user_cache", lambda: str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _blank_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no figures: most tests that record one are about something else.

    Their files are blank pictures. Tests of figures ask for `full_figures`.
    """
    if "full_figures" not in request.fixturenames:
        monkeypatch.setattr("tracker.figures.canvas.LAYOUT", None)
        monkeypatch.setattr("tracker.recording.artifacts.render_figure", render_blank)


def render_blank(draw: Callable[[], Figure], form: str = "png") -> bytes:
    """A picture of 200 x 100 white dots; other forms are drawn."""
    return BLANK.getvalue() if form == "png" else render_figure(draw, form)


@pytest.fixture
def full_figures() -> None:
    """Figures as users see them."""


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the repository; tests that need it are skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"no folder of real data at {SHARED} (set SUFFRAGE_SHARED)")
    return SHARED


IN_MEMORY = Path("/dev/shm")
BYTES_OF_FILES = 4 * 2**30
"""Free memory that the files of a whole run may need, many times over."""


def _keep_files_in_memory() -> None:
    """Put temporary files where no disk is waited for, if the machine has such a folder and TMPDIR names no other."""
    if "TMPDIR" not in os.environ and IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > BYTES_OF_FILES:
        os.environ["TMPDIR"] = str(IN_MEMORY)
        tempfile.tempdir = None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run compare the content of every store of every test with its checksums."""
    parser.addoption("--verify-stores", action="store_true", help="check the checksums of each store when a test ends")


def _assert_sound(url: str) -> None:
    """Check the content of a store, unless it is of another version or the test has damaged its file.

    Of SQLite, the pages of scores are checked as well, unless changes wait beside the file.
    """
    engine = create_unchecked_engine(url)
    try:
        if current_version(engine) == known_versions()[-1]:
            with snapshot(engine) as connection:
                assert [str(fault) for fault in find_content_faults(connection)] == [], url
            logs = [Path(f"{engine.url.database}{name}") for name in ("-wal", "-journal")]
            if engine.dialect.name == "sqlite" and not any(log.exists() and log.stat().st_size for log in logs):
                with snapshot(engine) as connection:
                    connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")
                    assert len(list(open_unshared_scores(connection).read())) > 0, url
    except DatabaseError:
        pass
    finally:
        engine.dispose()


@pytest.fixture(autouse=True)
def _verified_stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """With ``--verify-stores``, no test leaves a SQLite store whose content differs from its checksums.

    Tests that change stores behind the back of the program are marked ``tampers``.
    """
    yield
    if request.config.getoption("--verify-stores") and "tampers" not in request.keywords:
        for path in tmp_path.rglob("*.db"):
            _assert_sound(f"sqlite:///{path}")


def pytest_configure(config: pytest.Config) -> None:
    """Name the folder of the server that all workers of this run share; workers inherit the environment."""
    gc.set_threshold(GC_THRESHOLD)  # tests make millions of objects that live on: syntax trees, fixtures, modules
    # A shell that starts this run in the background lets it ignore Ctrl-C, and all commands that tests start as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Threads of several workers on the same cores wait for each other; small models then take many times as long.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if not hasattr(config, "workerinput"):
        _keep_files_in_memory()
        os.environ[SERVER_FOLDER] = str(Path(tempfile.gettempdir()) / f"suffrage-postgres-{uuid.uuid4().hex[:12]}")
        config.pluginmanager.register(_Measurements(config))


class _Measurements:
    """Show what soak tests measured: the last lines that each of them printed, whichever worker ran it."""

    N_LINES = 40

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        lines = [line for line in report.capstdout.splitlines() if line.strip()]
        if report.when == "call" and report.passed and "soak" in report.keywords and lines:
            terminal = self._config.pluginmanager.getplugin("terminalreporter")
            terminal.ensure_newline()
            for line in [report.nodeid, *(f"    {line}" for line in lines[-self.N_LINES :])]:
                terminal.write_line(line)


def pytest_collection_finish() -> None:
    """Keep the garbage collector from walking through modules and tests again and again."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop that server, if any worker has started it, once all workers have ended."""
    if not hasattr(config, "workerinput"):
        wheel_server.stop(Path(os.environ[SERVER_FOLDER]))


@pytest.fixture(scope="session")
def postgres_server() -> sa.URL:
    """A real PostgreSQL: the one named in SUFFRAGE_TEST_POSTGRES_URL, else one started from a wheel."""
    names = os.environ.get("SUFFRAGE_TEST_POSTGRES_URL")
    return sa.make_url(names) if names else wheel_server.start(Path(os.environ[SERVER_FOLDER]))


def _administrator(server: sa.URL) -> sa.Engine:
    url = server.set(drivername="postgresql+psycopg")
    return sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)


@pytest.fixture(scope="session")
def postgres_template(postgres_server: sa.URL) -> Iterator[str]:
    """Name of a migrated, empty database that others are copied from."""
    name = f"suffrage_template_{uuid.uuid4().hex[:8]}"
    administrator = _administrator(postgres_server)
    with administrator.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine = create_unchecked_engine(postgres_server.set(database=name).render_as_string(hide_password=False))
    upgrade(engine)
    engine.dispose()
    yield name
    with administrator.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty file that others are copied from."""
    path = tmp_path_factory.mktemp("template") / "template.db"
    engine = connect(f"sqlite:///{path}")
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()
    return path


@pytest.fixture
def sqlite_url(tmp_path: Path, sqlite_template: Path) -> str:
    """URL of an empty SQLite store of this test's own."""
    path = tmp_path / "store.db"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest, postgres_server: sa.URL, postgres_template: str) -> Iterator[str]:
    """URL of an empty PostgreSQL store of this test's own."""
    name = f"suffrage_{uuid.uuid4().hex[:12]}"
    administrator = _administrator(postgres_server)
    with administrator.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {postgres_template}")
    url = postgres_server.set(database=name).render_as_string(hide_password=False)
    yield url
    if request.config.getoption("--verify-stores") and "tampers" not in request.keywords:
        _assert_sound(url)
    with administrator.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """URL of an empty store, on each engine in turn."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def store(store_url: str) -> Iterator[sa.Engine]:
    """An empty store, on each engine in turn."""
    engine = connect(store_url)
    yield engine
    engine.dispose()
