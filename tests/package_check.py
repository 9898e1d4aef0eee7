"""Build the package and try it in clean environments, as `make package` does: takes a network and minutes.

The wheel is built from the sdist, and must be the same as that of the checkout. It is then installed with each named
interpreter into an environment of its own, where `suffrage demo` must run in an empty folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "dist"
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
CHECK = """
import importlib.metadata, pathlib, sys, tracker
folder = pathlib.Path(tracker.__file__).parent
assert folder.is_relative_to(sys.prefix), folder
missing = [name for name in ("py.typed", "migrations/env.py", "web/templates/base.html", "web/static/site.css",
           "report/templates/page.html", "evaluating/prompt_templates/built_in/smart.jinja")
           if not (folder / name).is_file()]
assert not missing, missing
assert importlib.metadata.version("suffrage") == tracker.__version__
print(f"Python {sys.version.split()[0]}: suffrage {tracker.__version__}, "
      f"{len(list(importlib.metadata.distributions()))} distributions")
"""


def read_wheel(path: Path) -> dict[str, bytes]:
    """Return the files of a wheel."""
    with zipfile.ZipFile(path) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def run(command: Sequence[str | Path], folder: Path) -> None:
    """Run a command without the modules of the checkout; it must succeed."""
    subprocess.run([str(word) for word in command], cwd=folder, env=ENVIRONMENT, check=True)


def build_package() -> Path:
    """Build the sdist, the wheel from it, and the wheel from the checkout; return the first wheel.

    Raises:
        SystemExit: the two wheels differ.
    """
    shutil.rmtree(TARGET, ignore_errors=True)
    run([sys.executable, "-m", "build", "--outdir", TARGET, ROOT], ROOT)
    (wheel,) = TARGET.glob("*.whl")
    with TemporaryDirectory() as folder:
        run([sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT], ROOT)
        (direct,) = Path(folder).glob("*.whl")
        files, expected = read_wheel(wheel), read_wheel(direct)
    different = sorted(name for name in {*files, *expected} if files.get(name) != expected.get(name))
    if different:
        raise SystemExit(f"The wheel of the sdist differs from that of the checkout: {', '.join(different)}")
    print(f"{wheel.name}: {len(files)} files, the same from the sdist and from the checkout")
    return wheel


def try_wheel(wheel: Path, python: str) -> None:
    """Install a wheel with an interpreter into a new environment, and run the demo in an empty folder."""
    with TemporaryDirectory(prefix="suffrage-package-") as name:
        folder = Path(name)
        run([python, "-m", "venv", folder / "env"], folder)
        programs = folder / "env/bin"
        pip = [programs / "python", "-m", "pip", "--disable-pip-version-check"]
        run([*pip, "install", "--quiet", wheel], folder)
        run([*pip, "check"], folder)
        run([programs / "python", "-c", CHECK], folder)
        (folder / "demo").mkdir()
        run([programs / "suffrage", "demo"], folder / "demo")


def main(pythons: Sequence[str]) -> None:
    """Build the package and try it with each interpreter."""
    wheel = build_package()
    for python in pythons:
        try_wheel(wheel, python)
    print(f"The wheel installs and runs the demo with: {', '.join(pythons)}")


if __name__ == "__main__":
    main(sys.argv[1:] or [sys.executable])
