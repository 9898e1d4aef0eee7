"""Commands as a user gives them, on the store of a test."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from click.testing import CliRunner, Result

from tracker.cli import suffrage


def run(engine: sa.Engine, *arguments: str) -> Result:
    """What a command says that works; its error, raised, where it does not."""
    url = engine.url.render_as_string(hide_password=False)
    result = CliRunner().invoke(suffrage, [*arguments, "--database", url])
    if isinstance(result.exception, Exception):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def written(path: Path, text: str) -> str:
    """A file with that text, as a command is told of it."""
    path.write_text(text)
    return str(path)
