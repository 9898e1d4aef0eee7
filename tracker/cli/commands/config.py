"""The command `suffrage config`."""

from __future__ import annotations

from typing import Any

import click

from tracker.cli.help_text import Command
from tracker.cli.options import format_option
from tracker.cli.output import inform, print_rows, warn
from tracker.cli.values.setting_option import setting_options


@click.command(cls=Command)
@setting_options
@format_option
def command(output_format: str, **values: Any) -> None:
    """Show the settings that apply, with their origins.

    An option overrides an environment variable, and that overrides the file suffrage.toml. The file is the one in the
    working directory or in its nearest parent that has one, up to the home directory. SUFFRAGE_CONFIG names another
    file, or none if it is empty. Passwords in URLs are not shown.

    Examples:
        suffrage config
        suffrage config --seed 1 --format json
    """
    from tracker.settings.known_settings import SETTINGS
    from tracker.settings.resolution import has_secret, parse_value, redact, resolve_setting
    from tracker.settings.settings_file import FILE_NAME, find_settings_file, read_settings_file

    path = find_settings_file()
    rows = []
    for setting in SETTINGS.values():
        text, resolved = values[setting.parameter], resolve_setting(setting.name)
        if text is not None:
            option = f"--{setting.name}"
            value, origin = parse_value(setting, text, f"the option {option}"), f"option {option}"
        elif resolved is not None:
            value, origin = resolved.value, resolved.origin
        else:
            value, origin = setting.default, "default"
        rows.append({"setting": setting.name, "value": redact(value) if isinstance(value, str) else value,
                     "origin": origin})  # fmt: skip
    if (
        path
        and path.stat().st_mode & 0o077
        and any(has_secret(str(v)) for v in read_settings_file(path).values.values())
    ):
        warn(f"{path} has a password, and other users of this machine can read it. Run: chmod 600 {path}")
    inform(f"Settings file: {path}" if path else f"No file {FILE_NAME} here or above. Write one: suffrage init")
    print_rows(rows, output_format)
