"""What every filter step declares, and how steps are found."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from analyses.smart_filtering import analyze, step_registry, steps
from analyses.smart_filtering.filter_step import FilterStep
from analyses.smart_filtering.step_registry import STEPS, FilterOptions
from tracker.recording.declaration import load_declaration

NEW_STEP = """
from dataclasses import dataclass

from analyses.smart_filtering.filter_step import FilterStep


@dataclass(frozen=True, kw_only=True)
class ShortOptions:
    min_length: int = 20


class ShortStep(FilterStep[ShortOptions]):
    name = "short"
    position = 25
    options = ShortOptions

    def apply(self, data, options):
        raise NotImplementedError


STEP = ShortStep()
"""


class TestLaws:
    def test_steps_are_listed_in_the_order_in_which_they_are_described(self) -> None:
        names = [step.name for step in STEPS]
        assert names == ["duplicate", "anomalous", "easy", "contaminated", "similar", "suspect-label"]
        assert len({step.position for step in STEPS}) == len(STEPS)

    @pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
    def test_every_step_declares_frozen_options_that_the_analysis_takes(self, step: FilterStep[Any]) -> None:
        assert is_dataclass(step.options)
        assert step.options.__dataclass_params__.frozen  # type: ignore[attr-defined]
        assert isinstance(FilterOptions(), step.options)
        declared = {parameter.name: parameter for parameter in load_declaration("smart-filtering").parameters}
        for field in fields(step.options):
            assert declared[field.name].default == field.default
            assert declared[field.name].help

    def test_options_come_in_the_order_of_the_steps_and_the_draws_last(self) -> None:
        names = [parameter.name for parameter in load_declaration("smart-filtering").parameters]
        assert names[:3] == ["duplicates", "exclude_task", "n_models"]
        assert names[8:11] == ["retain", "contaminated_models", "without_similar"]
        assert names[-4:] == ["n_subsets", "n_splits", "n_draws", "seed"]
        assert len(names) == 22
        assert analyze.__module__ == "analyses.smart_filtering"

    def test_a_new_module_among_the_steps_is_a_step(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "short.py").write_text(NEW_STEP)
        monkeypatch.setattr(steps, "__path__", [*steps.__path__, str(tmp_path)])
        names = [step.name for step in step_registry.load_steps()]
        assert names == ["duplicate", "anomalous", "short", "easy", "contaminated", "similar", "suspect-label"]
