"""Keyword-only parameters whose type is a dataclass: each of its fields is an option."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest

from tracker.errors import PluginError
from tracker.plugins.discovery import PluginModule
from tracker.plugins.parameters import REQUIRED, Parameter, accept_flat_options
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.declaration import Declaration, declare
from tracker.recording.finding import Finding, Report, Summary

MODULE = PluginModule(name="grouped", module="grouped", path=None)


@dataclass(frozen=True, kw_only=True)
class Resampling:
    n_draws: Annotated[int, "draws of the prompts"] = 100
    method: Annotated[Literal["pairs", "blocks"], "what is drawn"] = "pairs"


@dataclass(frozen=True, kw_only=True)
class Limits(Resampling):
    largest: Annotated[float | None, "share of one group"]


@dataclass(frozen=True, kw_only=True)
class Parameters(Finding):
    options: Limits
    seed: int


def analyze(scores: PerformanceMatrix, *, options: Limits, seed: Annotated[int, "of all draws"] = 0) -> Report:
    return Report(Parameters(options=options, seed=seed), summary=Summary("recorded"))


@pytest.fixture(scope="module")
def declaration() -> Declaration:
    return declare(analyze, MODULE)


class TestLaws:
    def test_each_field_is_declared_like_a_parameter_of_the_function(self, declaration: Declaration) -> None:
        assert declaration.parameters == (
            Parameter(name="n_draws", type=int, default=100, help="draws of the prompts"),
            Parameter(name="method", type=str, choices=("pairs", "blocks"), default="pairs", help="what is drawn"),
            Parameter(name="largest", type=float, default=REQUIRED, help="share of one group"),
            Parameter(name="seed", type=int, default=0, help="of all draws"),
        )

    def test_the_analysis_receives_flat_options(self, declaration: Declaration) -> None:
        finding = declaration.function(None, **declaration.complete({"largest": 0.5, "n_draws": 7, "seed": 3})).finding
        assert finding == Parameters(options=Limits(n_draws=7, method="pairs", largest=0.5), seed=3)

    def test_fields_without_a_value_keep_their_defaults(self) -> None:
        finding = accept_flat_options(analyze)(None, largest=None).finding
        assert finding == Parameters(options=Limits(largest=None), seed=0)

    def test_a_function_without_groups_is_returned_as_it_is(self) -> None:
        def plain(scores: PerformanceMatrix, *, seed: int = 0) -> Report:
            raise AssertionError

        assert accept_flat_options(plain) is plain


class TestErrors:
    def test_an_option_must_be_declared_once(self) -> None:
        def twice(scores: PerformanceMatrix, *, options: Resampling, n_draws: int = 1) -> Report:
            raise AssertionError

        with pytest.raises(PluginError, match="the parameter n_draws is declared 2 times"):
            declare(twice, MODULE)

    def test_a_default_must_be_a_value(self) -> None:
        @dataclass(frozen=True)
        class Names:
            models: Annotated[tuple[str, ...], "names"] = field(default_factory=tuple)

        def analyze(scores: PerformanceMatrix, *, options: Names) -> Report:
            raise AssertionError

        analyze.__annotations__["options"] = Names
        with pytest.raises(PluginError, match="the option models of Names has a default_factory; use a default"):
            declare(analyze, MODULE)
