"""The command `suffrage init`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracker.cli.help_text import Command
from tracker.cli.output import inform, warn
from tracker.cli.values.setting_option import setting_options


@click.command(cls=Command)
@setting_options
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
def command(force: bool, **values: Any) -> None:
    """Write the settings file suffrage.toml into this folder.

    Each option is a line of the file; the other settings are comments to edit. The file applies to this folder and all
    folders in it. `suffrage config` shows what applies.

    Examples:
        suffrage init
        suffrage init --force --database sqlite:///results.db --metric accuracy
    """
    from tracker.connections.store_url import database_url
    from tracker.exporting.output_paths import check_output_path, write_file
    from tracker.settings.known_settings import SETTINGS
    from tracker.settings.resolution import has_secret, parse_value
    from tracker.settings.settings_file import FILE_NAME, format_settings_file

    chosen = {
        setting.name: parse_value(setting, text, f"the option --{setting.name}")
        for setting in SETTINGS.values()
        if (text := values[setting.parameter]) is not None
    }
    if "database" in chosen:
        database_url(str(chosen["database"]))
    path = Path(FILE_NAME)
    check_output_path(path, force=force)
    has_password = any(isinstance(value, str) and has_secret(value) for value in chosen.values())
    write_file(path, format_settings_file(chosen).encode(), force=force, is_private=has_password)
    if has_password:
        warn(f"{path} has a password, so only you can read it. Do not commit it; better: set SUFFRAGE_DATABASE_URL.")
    inform(f"Wrote {path}. Check it: suffrage config")
