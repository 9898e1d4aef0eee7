"""Options whose default is a setting of the environment or of the file suffrage.toml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from tracker.settings.known_settings import SETTINGS

F = TypeVar("F", bound=Callable[..., Any])


class SettingOption(click.Option):
    """An option with the name of a setting, which is its default if the command supports the value."""

    def get_default(self, ctx: click.Context, call: bool = True) -> Any:
        """Return the value of the setting; click's default if it is not set."""
        from tracker.settings.resolution import resolve_setting

        default = super().get_default(ctx, call)
        setting = next(setting for setting in SETTINGS.values() if setting.parameter == self.name)
        resolved = None if ctx.resilient_parsing else resolve_setting(setting.name)
        if resolved is None or (isinstance(self.type, click.Choice) and resolved.value not in self.type.choices):
            return default
        return (resolved.value,) if self.multiple else resolved.value


def setting_options(function: F) -> F:
    """Add an option for each setting; the command receives them as texts, None if not set."""
    for setting in reversed([*SETTINGS.values()]):
        choices = f" One of: {', '.join(setting.choices)}." if setting.choices else ""
        is_flag = setting.kind is bool
        function = click.option(
            f"--{setting.name}",
            setting.parameter,
            help=setting.help + choices,
            show_default=False if is_flag else setting.default,
            **({"is_flag": True, "flag_value": "true", "default": None} if is_flag else {"metavar": "VALUE"}),
        )(function)
    return function
