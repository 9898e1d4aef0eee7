"""Find, read and write the file suffrage.toml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracker.errors import SettingsError
from tracker.settings.known_settings import SETTINGS, Setting, Value
from tracker.settings.text_files import read_text_file
from tracker.suggestions import find_similar, format_guess

FILE_NAME = "suffrage.toml"
FILE_VARIABLE = "SUFFRAGE_CONFIG"
"""Environment variable that names the file; empty for none."""

TYPES = {str: "a text in quotes", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True, kw_only=True)
class SettingsFile:
    """A file of settings.

    Attributes:
        path: its path.
        values: values by name of the setting.
    """

    path: Path
    values: Mapping[str, Value]


def find_settings_file() -> Path | None:
    """Return the file of the working directory, else of its nearest parent that has one; None if there is none.

    The search ends at the home directory. The environment variable SUFFRAGE_CONFIG names another file.

    Raises:
        SettingsError: the file that the variable names does not exist.
    """
    name = os.environ.get(FILE_VARIABLE)
    if name is not None:
        path = Path(os.path.expanduser(name))
        if name and not path.is_file():
            raise SettingsError(f"There is no file {name}, which {FILE_VARIABLE} names. Correct or unset it.")
        return path.absolute() if name else None
    current, home = Path.cwd(), Path(os.path.expanduser("~"))
    for folder in (current, *current.parents):
        if (folder / FILE_NAME).is_file():
            return Path(FILE_NAME) if folder == current else folder / FILE_NAME
        if folder == home:
            break
    return None


def read_settings_file(path: Path) -> SettingsFile:
    """Read a file of settings.

    Raises:
        SettingsError: it cannot be read, or a key or value is not valid.
    """
    import tomllib

    try:
        content = tomllib.loads(read_text_file(path))
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}. `suffrage init` writes a valid file.") from error
    return SettingsFile(
        path=path, values={name: check_value(_find_setting(name, path), value, path) for name, value in content.items()}
    )


def check_value(setting: Setting, value: Any, place: Path | str) -> Value:
    """Return a value of the setting's type.

    Args:
        setting: the setting.
        value: the value of the file or option.
        place: where it is set, for the error.

    Raises:
        SettingsError: the value is of another type, or is not allowed.
    """
    where = f"{setting.name} in {place}"
    if setting.kind is float and type(value) is int:
        value = float(value)
    if type(value) is not setting.kind:
        raise SettingsError(f"{where} must be {setting.requirement or TYPES[setting.kind]}.")
    if setting.choices and value not in setting.choices:
        guess = format_guess(find_similar(str(value), setting.choices))
        raise SettingsError(f"{where} is {value!r}. {guess or 'Choose from: ' + ', '.join(setting.choices) + '.'}")
    if not setting.check(value):
        raise SettingsError(f"{where} must be {setting.requirement}, not {value!r}.")
    return value


def format_settings_file(values: Mapping[str, Value]) -> str:
    """Return the text of a file with some settings; the rest are comments."""
    lines = [
        "# Settings of Suffrage for this folder and all folders in it.",
        "# An option of a command overrides an environment variable, and that overrides this file.",
        "# `suffrage config` shows the settings that apply, with their origins.",
    ]
    for setting in SETTINGS.values():
        choices = f" One of: {', '.join(setting.choices)}." if setting.choices else ""
        lines += ["", f"# {setting.help}{choices} Default: {setting.default}."]
        is_set = setting.name in values
        value = format_toml(values[setting.name] if is_set else setting.example)
        lines.append(f"{'' if is_set else '# '}{setting.name} = {value}")
    return "\n".join(lines) + "\n"


def format_toml(value: Value) -> str:
    """Return a value as TOML."""
    import json

    # A basic string of TOML has the escapes of JSON, and no surrogates if non-ASCII letters stay.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _find_setting(name: str, path: Path) -> Setting:
    if name in SETTINGS:
        return SETTINGS[name]
    near = find_similar(name, SETTINGS, n=1) or find_similar(name, SETTINGS, n=1, cutoff=0.0)
    raise SettingsError(f"{path} has an unknown key {name!r}. {format_guess(near)} All keys: {', '.join(SETTINGS)}.")
