"""What the repository promises those who install it and those who work on it."""

from __future__ import annotations

import ast
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

import tracker
from tracker.cli import suffrage
from tracker.connections.schema_versions import known_versions
from tracker.database import connect

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(*arguments: str, folder: Path, **environment: str) -> str:
    """What a Python command prints; it must succeed."""
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


distributions_of_packages = functools.cache(packages_distributions)
"""It reads what every installed distribution holds."""


def providers(nodes: Iterable[ast.AST]) -> list[set[str]]:
    """For each foreign package that some of these statements import: the distributions that bring it."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    known = distributions_of_packages()
    foreign = names - set(sys.stdlib_module_names) - {"tracker", "analyses"}
    # What is not installed is looked for under its own name.
    return [{item.lower().replace("_", "-") for item in known.get(name, [name])} for name in sorted(foreign)]


def declared(requirements: Iterable[str]) -> set[str]:
    """Names of the distributions in a list of requirements."""
    return {re.split(r"[^\w-]", line)[0].lower() for line in requirements}


CORE = declared(PROJECT["dependencies"])
EXTRA = declared(PROJECT["optional-dependencies"]["models"])
VOTING = declared(PROJECT["optional-dependencies"]["voting"])
MATH = declared(PROJECT["optional-dependencies"]["math"])
HUB = declared(PROJECT["optional-dependencies"]["hub"])
STRENGTHS = Path("analyses/numerics/elections/voting/bradley_terry.py")
VLLM = Path("tracker/evaluating/vllm_engine/vllm_loading.py")
FORMULAS = Path("tracker/evaluating/scoring/math_equality.py")
CLUSTERS = declared(PROJECT["optional-dependencies"]["cluster"])
CLUSTER_MODULES = (
    Path("tracker/statistics/cluster/backend.py"),
    Path("tracker/statistics/cluster/task_pickling.py"),
    Path("tracker/recording/inputs/workers.py"),
)
CLOUD = Path("tracker/recording/sealing/storage.py")
DEVICES = Path("analyses/numerics/similarity/devices")
DATA_SETS = Path("tracker/ingest/datasets/hub.py")
FRAMES = Path("tracker/notebook/polars_frames.py")
STATSMODELS = Path("analyses/numerics/mixed/by_statsmodels.py")
INSPECT, LM_EVAL = Path("tracker/integrations/inspect.py"), Path("tracker/integrations/lm_eval.py")
WITH_INSPECT = {"anyio", "fsspec"}
"""What Inspect runs on, and writes its logs with."""


@pytest.fixture(scope="class")
def modules() -> dict[Path, ast.Module]:
    """Every module of the program, by its path."""
    return {
        path.relative_to(ROOT): ast.parse(path.read_text())
        for folder in ("tracker", "analyses", "migrations")
        for path in (ROOT / folder).rglob("*.py")
    }


def evaluating(modules: dict[Path, ast.Module]) -> dict[Path, ast.Module]:
    """Those that ask models."""
    return {
        path: tree
        for path, tree in modules.items()
        if path.is_relative_to("tracker/evaluating") and not path.is_relative_to("tracker/evaluating/servers")
    }


class TestDependencies:
    """Extras belong to one place each, which imports them when they are used; the rest needs the core alone."""

    def test_what_the_core_imports_is_declared_and_what_it_declares_is_imported(
        self, modules: dict[Path, ast.Module]
    ) -> None:
        separate = (STRENGTHS, DATA_SETS, FRAMES, INSPECT, LM_EVAL, CLOUD, *CLUSTER_MODULES)
        requesting = evaluating(modules)
        core = [
            tree
            for path, tree in modules.items()
            if path not in requesting and path not in separate and path.parent != DEVICES
        ]
        imported = providers(node for tree in core for node in ast.walk(tree))
        assert [item for item in imported if not item & CORE] == []
        assert CORE - set().union(*imported) == set()

    def test_what_requests_models_may_import_the_extra_too_which_declares_no_more(
        self, modules: dict[Path, ast.Module]
    ) -> None:
        trees = [tree for path, tree in evaluating(modules).items() if path not in (FORMULAS, VLLM)]
        imported = providers(node for tree in trees for node in ast.walk(tree))
        assert [item for item in imported if not item & (CORE | EXTRA)] == []
        assert EXTRA - set().union(*imported) == set()

    def test_the_extra_is_not_imported_before_it_is_used(self, modules: dict[Path, ast.Module]) -> None:
        at_once = providers(node for tree in evaluating(modules).values() for node in tree.body)
        assert [item for item in at_once if item & EXTRA] == []

    def test_clusters_need_an_extra_of_their_own_and_no_sooner_than_they_are_used(
        self, modules: dict[Path, ast.Module]
    ) -> None:
        imported = providers(node for path in CLUSTER_MODULES for node in ast.walk(modules[path]))
        assert [item for item in imported if not item & (CORE | CLUSTERS | {"distributed"})] == []
        assert CLUSTERS - set().union(*imported) == set()
        assert [item for item in providers(modules[CLUSTER_MODULES[-1]].body) if item & CLUSTERS] == []

    def test_one_package_of_the_analyses_imports_pytorch_and_no_sooner_than_a_device_is_used(
        self, modules: dict[Path, ast.Module]
    ) -> None:
        requesting = evaluating(modules)
        importing = {path for path, tree in modules.items() if {"torch"} in providers(ast.walk(tree))}
        assert {path.parent for path in importing if path not in requesting} == {DEVICES}
        name = ".".join(DEVICES.parts)
        at_once = {
            path
            for path, tree in modules.items()
            if path.parent != DEVICES
            and any(isinstance(n, ast.ImportFrom) and name in str(n.module) for n in tree.body)
        }
        assert at_once == set()
        assert declared(PROJECT["optional-dependencies"]["gpu"]) == {"torch"} <= EXTRA

    def test_one_module_imports_file_systems_and_no_sooner_than_an_address_is_used(
        self, modules: dict[Path, ast.Module]
    ) -> None:
        importing = {path for path, tree in modules.items() if {"fsspec"} in providers(ast.walk(tree))}
        assert importing - {INSPECT} == {CLOUD}
        assert {"fsspec"} not in providers(modules[CLOUD].body)
        assert declared(PROJECT["optional-dependencies"]["cloud"]) >= {"fsspec", "s3fs", "gcsfs", "adlfs"}

    def test_formulas_need_an_extra_of_their_own_and_no_sooner_than_they_are_compared(
        self, modules: dict[Path, ast.Module]
    ) -> None:
        imported = providers(ast.walk(modules[FORMULAS]))
        assert [item for item in imported if not item & (CORE | MATH)] == []
        assert MATH - set().union(*imported) == set()
        assert [provider for provider in providers(modules[FORMULAS].body) if provider & MATH] == []

    def test_one_module_imports_vllm_and_no_sooner_than_a_model_is_loaded(
        self, modules: dict[Path, ast.Module]
    ) -> None:
        importing = {path for path, tree in modules.items() if {"vllm"} in providers(node for node in ast.walk(tree))}
        assert importing == {VLLM}
        assert {"vllm"} not in providers(modules[VLLM].body)
        assert declared(PROJECT["optional-dependencies"]["vllm"]) == {"vllm"}

    def test_strengths_of_models_need_an_extra_of_their_own_and_no_sooner_than_they_are_fitted(
        self, modules: dict[Path, ast.Module]
    ) -> None:
        imported = providers(ast.walk(modules[STRENGTHS]))
        assert [item for item in imported if not item & (CORE | VOTING)] == []
        assert VOTING - set().union(*imported) == set()
        assert [provider for provider in providers(modules[STRENGTHS].body) if provider & VOTING] == []

    def test_data_sets_of_the_hub_need_an_extra_of_their_own_and_no_sooner_than_they_are_loaded(
        self, modules: dict[Path, ast.Module]
    ) -> None:
        imported = providers(ast.walk(modules[DATA_SETS]))
        assert [item for item in imported if not item & (CORE | HUB)] == []
        assert HUB - set().union(*imported) == set()
        assert [provider for provider in providers(modules[DATA_SETS].body) if provider & HUB] == []

    def test_one_module_imports_polars_and_no_sooner_than_a_frame_is_built(
        self, modules: dict[Path, ast.Module]
    ) -> None:
        importing = {path for path, tree in modules.items() if {"polars"} in providers(ast.walk(tree))}
        assert importing == {FRAMES}
        assert {"polars"} not in providers(node for node in modules[FRAMES].body if not isinstance(node, ast.If))
        assert declared(PROJECT["optional-dependencies"]["polars"]) == {"polars"}

    def test_statsmodels_is_imported_when_a_mixed_model_is_fitted(self, modules: dict[Path, ast.Module]) -> None:
        importing = {path for path, tree in modules.items() if {"statsmodels"} in providers(ast.walk(tree))}
        assert importing == {STATSMODELS}
        assert {"statsmodels"} not in providers(modules[STATSMODELS].body)

    @pytest.mark.parametrize(("module", "extra"), [(INSPECT, "inspect"), (LM_EVAL, "lm-eval")])
    def test_each_hook_needs_the_extra_of_its_harness(
        self, modules: dict[Path, ast.Module], module: Path, extra: str
    ) -> None:
        imported = providers(ast.walk(modules[module]))
        harness = declared(PROJECT["optional-dependencies"][extra])
        assert harness <= set().union(*imported) <= CORE | harness | WITH_INSPECT
        assert module != LM_EVAL or not any(provider & harness for provider in providers(modules[module].body))

    def test_inspect_finds_its_hook(self, modules: dict[Path, ast.Module]) -> None:
        (entry,) = PROJECT["entry-points"]["inspect_ai"].values()
        assert Path(*entry.split(".")).with_suffix(".py") == INSPECT


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files, as an installer lays them down."""
    from hatchling.build import build_wheel

    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        name = build_wheel(str(folder))
    with zipfile.ZipFile(folder / name) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


class TestVersion:
    def test_the_command_the_citation_and_the_changelog_name_the_version_of_the_package(self) -> None:
        assert CliRunner().invoke(suffrage, ["--version"]).output == f"suffrage {tracker.__version__}\n"
        assert f"\nversion: {tracker.__version__}\n" in (ROOT / "CITATION.cff").read_text()
        release = re.search(r"^## (\S+)(.*)", (ROOT / "CHANGELOG.md").read_text(), re.M)
        assert release is not None
        assert tracker.__version__ == release[1] + ".dev0" * (release[2] == " (unreleased)")


class TestWheel:
    def test_it_holds_the_packages_their_types_and_the_migrations_and_no_more(self, unpacked: Path) -> None:
        information = f"suffrage-{tracker.__version__}.dist-info"
        assert {path.name for path in unpacked.iterdir()} == {"tracker", "analyses", information}
        assert (unpacked / "tracker/py.typed").exists()
        assert (unpacked / "analyses/py.typed").exists()
        shipped = {path.name for path in (unpacked / "tracker/migrations/versions").iterdir()}
        assert shipped == {path.name for path in (ROOT / "migrations/versions").glob("*.py")}
        templates = "tracker/evaluating/prompt_templates/built_in"
        brought = {path.name for path in (unpacked / templates).iterdir()}
        assert brought == {path.name for path in (ROOT / templates).glob("*.jinja")}
        assert not [path for path in unpacked.rglob("*") if path.name.startswith(("test_", "conftest"))]

    def test_it_holds_every_file_of_the_packages_that_is_no_module(self, unpacked: Path) -> None:
        listing = subprocess.run(
            ["git", "ls-files", "tracker", "analyses"], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.split()
        data = [name for name in listing if not name.endswith(".py") and (ROOT / name).exists()]
        assert len(data) > 30 or not listing  # a source distribution has no history
        assert [name for name in data if not (unpacked / name).is_file()] == []

    def test_the_source_distribution_builds_the_same_wheel(
        self, unpacked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from hatchling.build import build_sdist, build_wheel

        monkeypatch.chdir(ROOT)
        archive = build_sdist(str(tmp_path))
        with tarfile.open(tmp_path / archive) as sources:
            sources.extractall(tmp_path, filter="data")
        monkeypatch.chdir(tmp_path / archive.removesuffix(".tar.gz"))
        with zipfile.ZipFile(tmp_path / build_wheel(str(tmp_path))) as wheel:
            different = [name for name in wheel.namelist() if wheel.read(name) != (unpacked / name).read_bytes()]
            assert different == []
            assert len(wheel.namelist()) == sum(path.is_file() for path in unpacked.rglob("*"))

    def test_its_migrations_make_a_store_far_from_the_repository(self, unpacked: Path, tmp_path: Path) -> None:
        installed = {"PYTHONPATH": str(unpacked)}
        output = run("tracker.cli", "db", "upgrade", folder=tmp_path, **installed)
        assert output == f"Upgraded from nothing to {known_versions()[-1]}.\n"
        assert "Sound" in run("tracker.cli", "db", "check", folder=tmp_path, **installed)


class TestMakeTargets:
    """The commands with which README.md and CONTRIBUTING.md begin."""

    MAKEFILE = (ROOT / "Makefile").read_text()

    @staticmethod
    def commands(page: str) -> list[tuple[str, str]]:
        return re.findall(r"^\$ make ([\w-]+) +#|^\| `make ([\w-]+)`", (ROOT / page).read_text(), re.M)

    def test_the_commands_of_the_readme_are_targets(self) -> None:
        """The recipe of each runs what the page reports, and continuous integration runs the second."""
        recipes = dict(re.findall(r"^([\w-]+): [^\n]*\n((?:\t[^\n]+\n)+)", self.MAKEFILE, re.M))
        names = {name for page in ("README.md", "CONTRIBUTING.md") for pair in self.commands(page) for name in pair}
        assert names - {""} <= set(recipes)
        assert [first for first, _ in self.commands("README.md")] == ["demo", "test"]
        assert recipes["demo"].strip() == "$(BIN)/suffrage demo"
        assert {"lint", "pytest"} <= set(recipes["test"].split())
        assert all(program in recipes["lint"] for program in ("ruff check", "ruff format", "mypy", "lint-imports"))
        commands = (ROOT / ".ci/run").read_text().splitlines()
        assert [line for line in commands if line.startswith("make")] == ["make test"]

    def test_the_demo_needs_no_extra(self) -> None:
        [recipe] = re.findall(r"^\.venv/core\.stamp: [^\n]*\n\t([^\n]+)", self.MAKEFILE, re.M)
        assert recipe == "$(PIP) --editable ."

    def test_every_text_installs_extras_from_the_checkout(self) -> None:
        """Suffrage is on no package index: all pages and messages name the same form; README.md announces another."""
        folders = [ROOT / name for name in ("tracker", "analyses", "docs")]
        files = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".md", ".html")]
        wrong = re.compile(r"suffrage\[|pip install[^\n`]*\bsuffrage\b")
        assert [path for path in files if wrong.search(path.read_text())] == []
        readme = " ".join((ROOT / "README.md").read_text().split())
        assert wrong.findall(readme) == ["pip install suffrage"]
        assert "on no package index yet; once it is published, `pip install suffrage` does the same." in readme
        assert readme.index("$ make test") < readme.index("pip install")
        extras = {extra for path in files for extra in re.findall(r"install\s+'\.\[(\w+)\]'", path.read_text())}
        assert {"models", "hub", "voting"} <= extras <= set(PROJECT["optional-dependencies"])


class TestAlembicCommand:
    """Alembic's own command line, for people who change the schema."""

    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Path:
        """A copy of what Alembic reads and runs, in which migrations may be written."""
        shutil.copy(ROOT / "alembic.ini", tmp_path)
        for name in ("migrations", "tracker"):
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        return tmp_path

    @pytest.mark.tampers
    def test_a_change_of_the_schema_becomes_the_next_numbered_migration(self, checkout: Path, store_url: str) -> None:
        engine = connect(store_url)
        with engine.begin() as connection:  # as if the tables had just been given these columns
            for column in ("answer", "details"):
                connection.execute(sa.text(f"ALTER TABLE prompt DROP COLUMN {column}"))
        engine.dispose()

        page = (ROOT / "docs/how-to/extending.md").read_text()
        lines = re.findall(r"^ *\$ (.+)$", page, re.M)
        assert lines[:2] == ["export SUFFRAGE_DATABASE_URL=sqlite:////tmp/schema.db", "suffrage db upgrade"]
        after = re.findall(r"`(alembic (?:upgrade|check|downgrade)[^`]*)`", page)
        commands = [shlex.split(line) for line in (lines[2], *after)]
        assert [command[1] for command in commands] == ["revision", "upgrade", "check", "downgrade"]
        head = known_versions()[-1]
        number = f"{int(head) + 1:04d}"
        (checkout / "every_command.py").write_text(
            f"from alembic.config import main\nfor _, *arguments in {commands}:\n    main(arguments)\n"
        )
        output = run("every_command", folder=checkout, SUFFRAGE_DATABASE_URL=store_url)
        assert "No new upgrade operations detected" in output
        source = (checkout / f"migrations/versions/{number}_what_it_does.py").read_text()
        assert source.startswith('"""What it does."""\n')
        assert f'down_revision = "{head}"' in source
        columns = {column["name"] for column in sa.inspect(connect(store_url)).get_columns("prompt")}
        assert not {"answer", "details"} & columns
