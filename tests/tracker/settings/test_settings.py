"""Settings: an option overrides the environment, and that overrides the file of the nearest folder."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from contextlib import chdir
from itertools import product
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tracker.cli import suffrage
from tracker.cli.options import split_policy
from tracker.cli.values.setting_option import SettingOption
from tracker.connections.store_url import DEFAULT_URL, database_url
from tracker.errors import SettingsError
from tracker.queries.selection import MIN_COVERAGE, POLICIES, TASK_EFFECTS
from tracker.settings.input_limits import current_limits, parse_limits
from tracker.settings.known_settings import SETTINGS
from tracker.settings.resolution import parse_value, redact, resolve_setting
from tracker.settings.settings_file import (
    check_value,
    find_settings_file,
    format_settings_file,
    format_toml,
    read_settings_file,
)

SETTINGS_PAGE = Path(__file__).parents[3] / "docs/reference/settings.md"
VARIABLES = [variable for setting in SETTINGS.values() for variable in setting.variables]


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in (*VARIABLES, "SUFFRAGE_CONFIG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)


def configured(*arguments: str) -> dict[str, dict[str, Any]]:
    """What `suffrage config` prints, by setting."""
    result = CliRunner().invoke(suffrage, ["config", *arguments, "--format", "json"], catch_exceptions=False)
    return {row["setting"]: row for row in json.loads(result.stdout)}


def list_commands(group: click.Group, words: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its words."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        full_name = f"{words} {name}".strip()
        if isinstance(command, click.Group):
            yield from list_commands(command, full_name)
        else:
            yield full_name, command


def list_values(option: click.Option) -> list[Any]:
    """Return two values of an option, one of them its default if it has one."""
    setting = next(setting for setting in SETTINGS.values() if setting.parameter == option.name)
    if isinstance(option.type, click.Choice):
        return [*option.type.choices][:2]
    if setting.name == "limits":
        return ["columns=3", "value=200MB"]
    values = {bool: [False, True], int: [0, 1, 7], float: [0.0, 0.95, 0.5]}.get(setting.kind, ["a", "b"])
    default = option.default if isinstance(option.default, setting.kind) else values[0]
    return [default, next(value for value in values if value != default and setting.check(value))]


def read_value(option: click.Option, *arguments: str) -> Any:
    """Return the value of an option after arguments."""
    context = click.Command("x", params=[option]).make_context("x", [*arguments])
    if not option.expose_value:  # limits apply to all files that the command reads
        with context:
            return current_limits()
    return context.params[option.name]  # type: ignore[index]


def as_read(option: click.Option, value: Any) -> Any:
    if not option.expose_value:
        return parse_limits(value, "the test")
    return (value,) if option.multiple else value


class TestOrder:
    def test_an_option_overrides_the_environment_and_that_the_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert configured()["seed"] == {"setting": "seed", "value": "0", "origin": "default"}
        path = Path("suffrage.toml")
        path.write_text("seed = 1\n")
        assert configured()["seed"] == {"setting": "seed", "value": 1, "origin": f"file {path}"}
        monkeypatch.setenv("SUFFRAGE_SEED", "2")
        assert configured()["seed"] == {
            "setting": "seed", "value": 2, "origin": "environment variable SUFFRAGE_SEED",
        }  # fmt: skip
        assert configured("--seed", "3")["seed"] == {"setting": "seed", "value": 3, "origin": "option --seed"}

    def test_an_empty_variable_sets_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SUFFRAGE_SEED", "")
        assert resolve_setting("seed") is None

    def test_commands_use_them_in_the_same_order(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("suffrage.toml").write_text('seed = 1\nmissing = "common"\nsplit = "a,b"\nno-mlflow = true\n')
        command = suffrage.get_command(None, "compare")  # type: ignore[arg-type]
        assert command is not None
        words = ["quiz", "a", "b"]
        chosen = command.make_context("compare", [*words]).params
        assert (chosen["seed"], chosen["missing"], chosen["split"], chosen["no_mlflow"]) == (
            1,
            "common",
            ("a,b",),
            True,
        )
        monkeypatch.setenv("SUFFRAGE_SEED", "2")
        monkeypatch.setenv("SUFFRAGE_NO_MLFLOW", "no")
        chosen = command.make_context("compare", [*words, "--missing", "worst"]).params
        assert (chosen["seed"], chosen["missing"], chosen["no_mlflow"]) == (2, "worst", False)
        monkeypatch.setenv("SUFFRAGE_NO_MLFLOW", "yes")
        chosen = command.make_context("compare", [*words, "--seed", "3", "--mlflow"]).params
        assert (chosen["seed"], chosen["no_mlflow"]) == (3, False)

    @pytest.mark.parametrize(("words", "chosen"), [([], (None, "bounds")), (["--missing", "bounds"], ("bounds", None))])
    def test_a_policy_of_a_setting_is_preferred_and_that_of_an_option_is_chosen(
        self, words: list[str], chosen: tuple[str | None, str | None]
    ) -> None:
        Path("suffrage.toml").write_text('missing = "bounds"\n')
        models = suffrage.get_command(None, "models")  # type: ignore[arg-type]
        related = models.get_command(None, "related")  # type: ignore[union-attr]
        context = related.make_context("related", ["quiz", *words])
        with context:
            assert split_policy(context.params["missing"]) == chosen

    def test_an_analysis_has_the_seed_of_the_file(self) -> None:
        Path("suffrage.toml").write_text("seed = 7\nworkers = 2\n")
        analyze = suffrage.get_command(None, "analyze")  # type: ignore[arg-type]
        command = analyze.get_command(None, "rank-intervals")  # type: ignore[union-attr]
        chosen = command.make_context("rank-intervals", ["quiz"]).params
        assert (chosen["seed"], chosen["workers"]) == (7, 2)

    def test_every_setting_is_an_option_of_some_command(self) -> None:
        command = suffrage.get_command(None, "analyze").get_command(None, "rank-intervals")  # type: ignore
        options = {parameter.name for parameter in (*command.params, *suffrage.get_command(None, "ingest").params)}
        assert {setting.parameter for setting in SETTINGS.values()} <= options

    def test_a_setting_applies_to_every_option_of_its_name_but_those_of_sources_and_new_runs(self) -> None:
        settings = {setting.parameter for setting in SETTINGS.values()} - {"database"}
        exempt = {
            f"{words} {option.opts[0]}"
            for words, command in list_commands(suffrage)
            if words not in ("config", "init")
            for option in command.params
            if option.name in settings and isinstance(option, click.Option) and not isinstance(option, SettingOption)
        }
        assert exempt == {
            "ingest --metric", "export prompts --split", "demo --seed", "prompts import --seed", "evaluate --seed",
            "evaluate --split", "gate --missing",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("words", "option"),
        [
            pytest.param(words, option, id=f"{words} {option.opts[0]}")
            for words, command in list_commands(suffrage)
            for option in command.params
            if isinstance(option, SettingOption)
        ],
    )
    def test_an_option_has_its_value_then_that_of_the_variable_then_that_of_the_file(
        self, words: str, option: SettingOption, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        setting = next(setting for setting in SETTINGS.values() if setting.parameter == option.name)
        default, values = read_value(option), list_values(option)
        assert len(values) >= 2
        for typed, of_variable, of_file in product(values, repeat=3):
            Path("suffrage.toml").write_text(f"{setting.name} = {format_toml(of_file)}\n")
            assert read_value(option) == as_read(option, of_file), words
            monkeypatch.setenv(setting.variables[0], str(of_variable))
            assert read_value(option) == as_read(option, of_variable), words
            flag = ["--no-mlflow" if typed else "--mlflow"] if setting.kind is bool else [option.opts[0], str(typed)]
            assert read_value(option, *flag) == as_read(option, typed), words
            monkeypatch.delenv(setting.variables[0])
        Path("suffrage.toml").unlink()
        assert read_value(option) == default


class TestStore:
    def test_a_relative_path_starts_at_the_folder_of_the_file(self, tmp_path: Path) -> None:
        Path("suffrage.toml").write_text('database = "sqlite:///results.db"\ntracking-uri = "mlruns"\n')
        assert database_url() == "sqlite:///results.db"
        Path("deep/deeper").mkdir(parents=True)
        with chdir("deep"):
            assert configured()["database"]["origin"] == f"file {tmp_path / 'suffrage.toml'}"
        with chdir("deep/deeper"):
            assert database_url() == f"sqlite:///{tmp_path / 'results.db'}"
            assert resolve_setting("tracking-uri").value == str(tmp_path / "mlruns")  # type: ignore[union-attr]

    @pytest.mark.parametrize("url", ["sqlite:////data/x.db", "postgresql://u@h/x", "sqlite:///~/x.db"])
    def test_other_addresses_stay(self, url: str) -> None:
        Path("suffrage.toml").write_text(f'database = "{url}"\n')
        Path("deep").mkdir()
        with chdir("deep"):
            assert resolve_setting("database").value == url  # type: ignore[union-attr]

    def test_the_environment_and_an_explicit_address_override_the_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("suffrage.toml").write_text('database = "sqlite:///file.db"\n')
        monkeypatch.setenv("DATABASE_URL", "sqlite:///general.db")
        assert database_url() == "sqlite:///general.db"
        monkeypatch.setenv("SUFFRAGE_DATABASE_URL", "sqlite:///variable.db")
        assert database_url() == "sqlite:///variable.db"
        assert database_url("sqlite:///option.db") == "sqlite:///option.db"

    def test_a_wrong_address_in_the_file_is_an_error_that_names_it(self) -> None:
        Path("suffrage.toml").write_text('database = "mysql://host/x"\n')
        with pytest.raises(Exception, match=r"The file .*suffrage.toml is wrong. mysql is not supported"):
            database_url()


class TestFile:
    def test_the_nearest_folder_has_priority_and_the_home_directory_is_the_last(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = tmp_path / "home"
        (home / "project/sub").mkdir(parents=True)
        monkeypatch.setenv("HOME", str(home))
        (tmp_path / "suffrage.toml").write_text("seed = 1\n")
        with chdir(home / "project/sub"):
            assert find_settings_file() is None
            (home / "suffrage.toml").write_text("seed = 2\n")
            assert find_settings_file() == home / "suffrage.toml"
            (home / "project/suffrage.toml").write_text("seed = 3\n")
            assert find_settings_file() == home / "project/suffrage.toml"
            Path("suffrage.toml").write_text("seed = 4\n")
            assert find_settings_file() == Path("suffrage.toml")

    def test_a_variable_names_another_file_or_none(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        Path("suffrage.toml").write_text("seed = 1\n")
        Path("shared.toml").write_text("seed = 2\n")
        monkeypatch.setenv("SUFFRAGE_CONFIG", "shared.toml")
        assert find_settings_file() == tmp_path / "shared.toml"
        monkeypatch.setenv("SUFFRAGE_CONFIG", "")
        assert find_settings_file() is None
        monkeypatch.setenv("SUFFRAGE_CONFIG", "nowhere.toml")
        with pytest.raises(SettingsError, match=r"There is no file nowhere\.toml"):
            find_settings_file()

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("sed = 1", "unknown key 'sed'. Did you mean 'seed'"),
            ("Min_Coverage = 1", "Did you mean 'min-coverage'"),
            ("zzzz = 1", "unknown key 'zzzz'. Did you mean"),
            ("[defaults]\nseed = 1", "unknown key 'defaults'"),
            ('seed = "1"', "seed in .*suffrage.toml must be a whole number of at least 0"),
            ("seed = -1", "of at least 0, not -1"),
            ("seed = true", "must be a whole number"),
            ("min-coverage = 2", "a number from 0 to 1, not 2.0"),
            ("min-coverage = nan", "a number from 0 to 1, not nan"),
            ("workers = 0", "or -1, not 0"),
            ('missing = "bound"', "'bound'. Did you mean 'bounds'"),
            ("metric = 3", "a text in quotes"),
            ("no-mlflow = 1", "true or false"),
            ("seed = ", "is not valid TOML"),
        ],
    )
    def test_an_error_names_the_file_and_the_nearest_key_or_value(self, text: str, problem: str) -> None:
        path = Path("suffrage.toml")
        path.write_text(text)
        with pytest.raises(SettingsError, match=problem) as caught:
            read_settings_file(path)
        assert str(path) in str(caught.value)

    def test_an_invalid_file_ends_every_command_that_reads_settings(self) -> None:
        Path("suffrage.toml").write_text("sed = 1\n")
        for words in (["leaderboard", "quiz"], ["config"]):
            assert isinstance(CliRunner().invoke(suffrage, words).exception, SettingsError)

    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def test_every_text_is_read_as_it_was_written(self, text: str) -> None:
        assert tomllib.loads(f"x = {format_toml(text)}") == {"x": text}

    def test_examples_are_valid_and_all_comments_can_be_removed(self) -> None:
        text = format_settings_file({})
        assert tomllib.loads(text) == {}
        content = tomllib.loads("\n".join(line.removeprefix("# ") for line in text.splitlines() if " = " in line))
        assert content == {setting.name: setting.example for setting in SETTINGS.values()}
        for name, value in content.items():
            check_value(SETTINGS[name], value, "example")


class TestInit:
    def test_options_become_lines_and_the_rest_comments(self) -> None:
        words = ["init", "--database", "sqlite:///r.db", "--seed", "4", "--no-mlflow", "--min-coverage", "1"]
        result = CliRunner().invoke(suffrage, words)
        assert result.exit_code == 0, result.output
        expected = {"database": "sqlite:///r.db", "no-mlflow": True, "min-coverage": 1.0, "seed": 4}
        assert read_settings_file(Path("suffrage.toml")).values == expected
        again = CliRunner().invoke(suffrage, ["init"])
        assert again.exception is not None
        assert "exists" in str(again.exception)
        assert CliRunner().invoke(suffrage, ["init", "--force"]).exit_code == 0
        assert read_settings_file(Path("suffrage.toml")).values == {}

    def test_a_wrong_value_writes_nothing(self) -> None:
        for words in (["--seed", "x"], ["--missing", "drop"], ["--database", "mysql://h/x"]):
            assert CliRunner().invoke(suffrage, ["init", *words]).exception is not None
        assert not Path("suffrage.toml").exists()

    def test_a_password_is_never_printed_and_its_file_is_private(self) -> None:
        result = CliRunner().invoke(suffrage, ["init", "--database", "postgresql://me:hunter2@host/x"])
        assert "has a password" in result.stderr
        assert "hunter2" not in result.output
        assert Path("suffrage.toml").stat().st_mode & 0o077 == 0
        printed = CliRunner().invoke(suffrage, ["config"])
        assert "postgresql://me:***@host/x" in printed.stdout
        assert "hunter2" not in printed.output


class TestSecrets:
    @pytest.mark.parametrize(
        ("url", "redacted"),
        [
            ("postgresql://me:secret@host/x", "postgresql://me:***@host/x"),
            ("postgresql://me:se@cr/et@host/x", "postgresql://me:***@host/x"),
            ("postgresql://me@host/x", "postgresql://me@host/x"),
            ("postgresql://host/x?user=me&password=secret", "postgresql://host/x?user=me&password=***"),
            ("https://token@host/x", "https://***@host/x"),
            ("https://host/x?api_key=secret#part", "https://host/x?api_key=***#part"),
            ("sqlite:///results.db", "sqlite:///results.db"),
        ],
    )
    def test_passwords_keys_and_tokens_are_hidden(self, url: str, redacted: str) -> None:
        assert redact(url) == redacted

    @given(st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=4))
    def test_no_password_is_shown(self, password: str) -> None:
        assert redact(f"postgresql://me:#{password}#@host/x") == "postgresql://me:***@host/x"


class TestDocumented:
    def test_the_page_has_every_setting_with_its_variables(self) -> None:
        page = SETTINGS_PAGE.read_text()
        for setting in SETTINGS.values():
            variables = ", ".join(f"`{variable}`" for variable in setting.variables)
            assert f"| `{setting.name}` | {variables} |" in page

    def test_choices_and_defaults_are_those_of_the_selection(self) -> None:
        assert SETTINGS["missing"].choices == POLICIES
        assert SETTINGS["task-effects"].choices == TASK_EFFECTS
        assert SETTINGS["min-coverage"].example == MIN_COVERAGE
        assert SETTINGS["database"].default == DEFAULT_URL

    @pytest.mark.parametrize(("text", "value"), [("1", True), ("TRUE", True), ("off", False)])
    def test_words_for_yes_and_no(self, text: str, value: bool) -> None:
        assert parse_value(SETTINGS["no-mlflow"], text, "x") is value
