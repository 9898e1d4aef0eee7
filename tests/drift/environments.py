"""Throw-away environments in which a release of a harness is installed and run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
PINNED = ("torch",)
"""Distributions whose version in `CONSTRAINTS` holds here too: the others are those of the benchmarks."""
WITHOUT_BROWSERS = {"PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1", "PUPPETEER_SKIP_DOWNLOAD": "1"}
"""Variables that keep npm from installing browsers, which no evaluation here needs."""
INSTALL_SECONDS = 1800
RUN_SECONDS = 900
COMPLETE = "installed.json"


class InstallError(Exception):
    """A release that cannot be installed; the text is the reason."""


class RunError(Exception):
    """A program of a harness that fails; the text is the reason."""


@dataclass(frozen=True)
class Environment:
    """A folder in which a release is installed.

    Attributes:
        folder: a virtual environment of Python, or a folder with ``node_modules``.
        version: the installed version.
    """

    folder: Path
    version: str

    @property
    def python(self) -> Path:
        return self.folder / "bin/python"

    def program(self, name: str) -> Path:
        """The path of a program that the release installs."""
        places = [self.folder / "bin" / name, self.folder / "node_modules/.bin" / name]
        return next((place for place in places if place.exists()), places[0])

    def run(
        self,
        *command: str | Path,
        cwd: Path,
        variables: Mapping[str, str] | None = None,
        exit_codes: Sequence[int] = (0,),
    ) -> str:
        """Run a program that loads nothing from the Hugging Face hub; return what it prints.

        Raises:
            RunError: it ends with another exit code, or takes too long.
        """
        offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
        environment = {**os.environ, **offline, **(variables or {})}
        return _run([str(part) for part in command], cwd, environment, RUN_SECONDS, exit_codes, RunError)


def install(folder: Path, package: str, requirements: Sequence[str], installer: str) -> Environment:
    """Install a release, unless the folder holds it already.

    Raises:
        InstallError: pip or npm fails.
    """
    stamp = folder / COMPLETE
    key = [installer, *requirements]
    if not stamp.exists() or json.loads(stamp.read_text()) != key:
        folder.mkdir(parents=True, exist_ok=True)
        if installer == "npm":
            _install_with_npm(folder, requirements)
        else:
            _install_with_pip(folder, requirements)
        stamp.write_text(json.dumps(key))
    return Environment(folder, _installed_version(folder, package, installer))


def _install_with_pip(folder: Path, requirements: Sequence[str]) -> None:
    constraints = folder / "constraints.txt"
    lines = CONSTRAINTS.read_text().splitlines()
    constraints.write_text("\n".join(line for line in lines if line.partition("==")[0] in PINNED) + "\n")
    _install_step([sys.executable, "-m", "venv", str(folder)], folder)
    pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    _install_step([*pip, "--constraint", str(constraints), *requirements], folder)


def _install_with_npm(folder: Path, requirements: Sequence[str]) -> None:
    _install_step(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *requirements], folder)


def _installed_version(folder: Path, package: str, installer: str) -> str:
    if installer == "npm":
        return str(json.loads((folder / "node_modules" / package / "package.json").read_text())["version"])
    program = f"import importlib.metadata as m; print(m.version({package!r}))"
    return _install_step([str(folder / "bin/python"), "-c", program], folder).strip()


def _install_step(command: list[str], cwd: Path) -> str:
    return _run(command, cwd, {**os.environ, **WITHOUT_BROWSERS}, INSTALL_SECONDS, (0,), InstallError)


def _run(
    command: list[str],
    cwd: Path,
    environment: Mapping[str, str],
    seconds: int,
    exit_codes: Sequence[int],
    error: type[Exception],
) -> str:
    """Run a command; its last lines are the reason of the error that it raises."""
    name = " ".join(Path(part).name for part in command[:3])
    try:
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired as expired:
        raise error(f"{name} takes more than {seconds:,} s") from expired
    except OSError as failure:
        raise error(f"{name} does not start: {failure}") from failure
    if done.returncode not in exit_codes:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip() and "WARNING" not in line]
        raise error(f"{name} exits with {done.returncode}: " + " | ".join(lines[-3:]))
    return done.stdout
