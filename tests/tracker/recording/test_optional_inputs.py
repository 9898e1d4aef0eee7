"""Inputs that an analysis may do without: loaded where the selection chooses them, None elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from tracker.cli import suffrage
from tracker.database import transaction
from tracker.errors import NotFoundError, PluginError, SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.queries.weights import PromptWeights
from tracker.recording.declaration import load_declaration
from tracker.recording.pipeline import run_analysis

ARITHMETIC = Selection(benchmark="arithmetic")
WEIGHING = '''
"""What is the weighted mean?"""

from __future__ import annotations

from dataclasses import dataclass

from tracker.queries.ranking.weighted_scores import select_weighted
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import Finding, Report, Summary, analysis


@dataclass(frozen=True, kw_only=True)
class Mean(Finding):
    mean: float
    n_effective: float
    weighted: bool
    n_texts: int


@analysis
def analyze(scores: PerformanceMatrix, weights: PromptWeights | None, prompts: PromptTexts) -> Report:
    chosen = select_weighted(scores, weights)
    mean = float((chosen.weights @ chosen.scores.Q).mean() / len(chosen.weights))
    found = Mean(
        mean=mean, n_effective=chosen.n_effective, weighted=weights is not None, n_texts=len(prompts.prompt_ids)
    )
    return Report(found, summary=Summary(f"The mean is {mean:.3f}."), warnings=chosen.warnings)
'''


@pytest.fixture
def weighing(install) -> None:
    """A package from outside with an analysis that takes weights."""
    install("weighing", {"weighing_mean": WEIGHING})


def weigh(engine: sa.Engine) -> int:
    """Weigh the prompts of arithmetic by a finding of the toy; its key."""
    return run_analysis(engine, "toy", ARITHMETIC).finding_id


def analysis_row(engine: sa.Engine, key: int) -> sa.Row:
    with transaction(engine, write=False) as session:
        return session.execute(sa.select(tables.finding).where(tables.finding.c.id == key)).one()


@pytest.mark.usefixtures("toys", "weighing")
class TestWeights:
    def test_they_are_loaded_where_chosen_and_recorded_with_the_finding_they_come_from(self, filled: sa.Engine) -> None:
        key = weigh(filled)
        plain = run_analysis(filled, "weighing-mean", ARITHMETIC)
        chosen = replace(ARITHMETIC, weights=str(key))
        weighted = run_analysis(filled, "weighing-mean", chosen)
        assert (plain.report.finding.weighted, weighted.report.finding.weighted) == (False, True)
        assert analysis_row(filled, plain.finding_id).weights_id is None
        assert analysis_row(filled, weighted.finding_id).weights_id == key
        assert analysis_row(filled, weighted.finding_id).selection["weights"] == str(key)
        with transaction(filled, write=False) as session:
            scores, weights = PerformanceMatrix.load(session, ARITHMETIC), PromptWeights.load(session, chosen)
        w = weights.align(scores.prompt_ids, scores.tasks)
        kept = w > 0
        assert weighted.report.finding.mean == pytest.approx(
            np.average(scores.Q[kept], axis=0, weights=w[kept]).mean(), rel=1e-12
        )
        assert "1 of 40 prompts have no weight in" in "".join(weighted.report.summary.caveats)

    def test_the_digest_of_the_data_covers_them(self, filled: sa.Engine) -> None:
        key = weigh(filled)
        digests = [
            analysis_row(filled, run_analysis(filled, "weighing-mean", chosen).finding_id).input_digest
            for chosen in (ARITHMETIC, replace(ARITHMETIC, weights=f"{key}:toy"), replace(ARITHMETIC, weights=str(key)))
        ]
        assert digests[1] == digests[2] != digests[0]

    def test_task_equal_is_a_rule_and_no_finding(self, filled: sa.Engine) -> None:
        recorded = run_analysis(filled, "weighing-mean", replace(ARITHMETIC, weights="task-equal"))
        row = analysis_row(filled, recorded.finding_id)
        assert (row.weights_id, row.selection["weights"]) == (None, "task-equal")
        assert 39 < recorded.report.finding.n_effective < 40

    def test_an_analysis_without_weights_rejects_them(self, filled: sa.Engine) -> None:
        with pytest.raises(SelectionError) as caught:
            run_analysis(filled, "toy", replace(ARITHMETIC, weights="task-equal"))
        assert str(caught.value) == "toy does not use weights. Leave --weights out."

    def test_and_so_it_does_with_an_encoder(self, filled: sa.Engine) -> None:
        with pytest.raises(SelectionError, match=r"weighing-mean does not use encoder\. Leave --encoder out"):
            run_analysis(filled, "weighing-mean", replace(ARITHMETIC, encoder="minilm"))

    def test_weights_that_are_not_there_leave_nothing_behind(self, filled: sa.Engine) -> None:
        with pytest.raises(NotFoundError, match="No finding '9' with weights"):
            run_analysis(filled, "weighing-mean", replace(ARITHMETIC, weights="9"))
        with transaction(filled, write=False) as session:
            assert session.scalars(sa.select(tables.finding.c.id)).all() == []


@pytest.mark.usefixtures("toys", "weighing")
class TestCommand:
    def test_only_an_analysis_that_takes_weights_has_the_option(self) -> None:
        helped = {
            name: CliRunner().invoke(suffrage, ["analyze", name, "--help"]).output for name in ("toy", "weighing-mean")
        }
        assert "--weights ID[:SCHEME]" in helped["weighing-mean"]
        assert "--weights" not in helped["toy"]
        assert "--encoder" not in helped["weighing-mean"]

    def test_it_weighs_on_the_command_line(self, filled_file: sa.Engine) -> None:
        arguments = ["analyze", "weighing-mean", "arithmetic", "--database", str(filled_file.url), "--no-mlflow"]
        result = CliRunner().invoke(suffrage, [*arguments, "--weights", "task-equal"])
        assert result.exit_code == 0, result.output
        assert "Caveat: Prompts are weighted by task-equal." in result.stdout


class TestDeclaration:
    def test_an_input_that_may_be_none_is_optional_and_keeps_its_place(self, weighing: None) -> None:
        declaration = load_declaration("weighing-mean")
        assert list(declaration.inputs) == ["scores", "weights", "prompts"]
        assert declaration.optional == {"weights"}
        assert declaration.has_option("weights")
        assert declaration.parameters == ()

    def test_an_input_that_nobody_can_choose_cannot_be_optional(self, install) -> None:
        install("odd", {"odd_one": WEIGHING.replace("prompts: PromptTexts", "prompts: PromptTexts | None")})
        with pytest.raises(PluginError, match="the input prompts may be None, but PromptTexts has no is_chosen"):
            load_declaration("odd-one")

    @pytest.mark.parametrize(
        ("module", "text", "words"),
        [
            (
                "odd_three",
                'SELECTION_OPTION = "colour"',
                "Mine.SELECTION_OPTION is 'colour'; it can be weights or encoder or against",
            ),
            (
                "odd_four",
                'CLAIMED_OPTION = "tasks"\n    CLAIMED_OPTION_HELP = "x"',
                "Mine.CLAIMED_OPTION is 'tasks'; it can be filter or models",
            ),
            ("odd_five", 'CLAIMED_OPTION = "models"', "Mine claims models and has no CLAIMED_OPTION_HELP"),
        ],
    )
    def test_an_input_names_only_options_that_exist(self, install, module: str, text: str, words: str) -> None:
        custom = f"class Mine(PromptTexts):\n    {text}\n\n\n@analysis"
        source = WEIGHING.replace("@analysis", custom).replace("prompts: PromptTexts)", "prompts: Mine)")
        install("odd", {module: source})
        with pytest.raises(PluginError, match=re.escape(words)):
            load_declaration(module.replace("_", "-"))

    def test_an_input_that_is_no_input_is_refused_even_if_it_may_be_none(self, install) -> None:
        install("odd", {"odd_two": WEIGHING.replace("weights: PromptWeights | None", "weights: int | None")})
        with pytest.raises(PluginError, match="has no load and digest; parameters come after"):
            load_declaration("odd-two")
