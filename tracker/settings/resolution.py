"""Resolve settings: the environment before the file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from tracker.settings.known_settings import SETTINGS, Setting, Value
from tracker.settings.settings_file import check_value, find_settings_file, read_settings_file

USER_INFO = re.compile(r"(?<=://)(?P<user>[^/@:?#]*)(?P<password>:.*)?@")
SECRET_PARAMETER = re.compile(r"([?&][^=&]*(?:pass|pwd|token|secret|key|credential|sig|auth)[^=&]*=)[^&#]*", re.I)
SQLITE = re.compile(r"(?P<scheme>sqlite:///)(?P<path>[^/~?].*)")
"""URL of a SQLite file with a relative path."""


@dataclass(frozen=True, kw_only=True)
class ResolvedSetting:
    """A setting that the environment or the file sets.

    Attributes:
        value: its value.
        origin: such as ``environment variable SUFFRAGE_SEED``, or ``file /data/suffrage.toml``.
    """

    value: Value
    origin: str


def resolve_setting(name: str) -> ResolvedSetting | None:
    """Return the value of a setting in the environment, else in the file; None if neither sets it.

    Raises:
        SettingsError: the file or the value is not valid.
    """
    setting = SETTINGS[name]
    for variable in setting.variables:
        if text := os.environ.get(variable):
            return ResolvedSetting(
                value=parse_value(setting, text, f"the environment variable {variable}"),
                origin=f"environment variable {variable}",
            )
    path = find_settings_file()
    file = None if path is None else read_settings_file(path)
    if file is None or name not in file.values:
        return None
    value = file.values[name]
    if isinstance(value, str) and name in ("database", "tracking-uri"):
        value = _from_folder(value, file.path.absolute().parent)
    return ResolvedSetting(value=value, origin=f"file {file.path}")


def parse_value(setting: Setting, text: str, place: str) -> Value:
    """Return the value that a text of the environment or command line has.

    Raises:
        SettingsError: the text is no value of the setting.
    """
    value: Value = text
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    try:
        if setting.kind is bool:
            value = words.get(text.strip().lower(), text)
        elif setting.kind in (int, float):
            value = setting.kind(text)
    except ValueError:
        pass
    return check_value(setting, value, place)


def redact(text: str) -> str:
    """Return a URL without its secrets: passwords, keys and tokens become ``***``."""
    is_web = text.lower().startswith(("http://", "https://"))

    def hide(match: re.Match[str]) -> str:
        if is_web and not match["password"]:
            return "***@"  # a token in the place of the user
        return f"{match['user']}:***@" if match["password"] else match[0]

    return SECRET_PARAMETER.sub(r"\1***", USER_INFO.sub(hide, text))


def has_secret(text: str) -> bool:
    """Return whether a URL has a password, key or token."""
    return redact(text) != text


def _from_folder(url: str, folder: Path) -> str:
    """Return a URL whose relative path starts at the file's folder; unchanged in the working directory."""
    if folder == Path.cwd():
        return url
    if match := SQLITE.fullmatch(url):
        return f"{match['scheme']}{folder / match['path']}"
    is_path = "://" not in url and not url.startswith(("/", "~", "file:", "databricks"))
    return str(folder / url) if is_path else url
