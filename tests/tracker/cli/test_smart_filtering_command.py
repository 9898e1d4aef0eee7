"""`suffrage analyze smart-filtering`: from files whose truth is known to decisions in the store."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from tracker.cli import suffrage
from tracker.database import connect
from tracker.errors import NotFoundError, SelectionError
from tracker.simulation.files import BENCHMARK, RESULT_FILES, VECTORS_FILE, write_files
from tracker.simulation.item_response import Design, Simulation, simulate

QUICK = ("--metric", "accuracy", "--n-splits", "10", "--n-subsets", "10", "--no-mlflow")
WITHOUT_VECTORS = ("--without-similar", *QUICK)


def run(url: str, *arguments: str) -> Result:
    result = CliRunner().invoke(suffrage, [*arguments, "--database", url])
    if isinstance(result.exception, Exception):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def ingested(simulation: Simulation, folder: Path, template: Path) -> str:
    """URL of a store into which the demonstration's files were taken."""
    shutil.copy(template, folder / "store.db")
    url = f"sqlite:///{folder / 'store.db'}"
    write_files(simulation, folder)
    for file in (*RESULT_FILES, VECTORS_FILE):
        _, *arguments = file.command(folder).split()
        run(url, *arguments, *(() if file is VECTORS_FILE else ("--no-mlflow",)))
    return url


@pytest.fixture(scope="module")
def planted() -> Simulation:
    return simulate(seed=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("planted")


@pytest.fixture(scope="module")
def url(planted: Simulation, folder: Path, sqlite_template: Path) -> str:
    return ingested(planted, folder, sqlite_template)


@pytest.fixture(scope="module")
def filtered(url: str) -> Result:
    """Finding 1 of the store: the filter with its defaults."""
    return run(url, "analyze", "smart-filtering", BENCHMARK, *QUICK)


def rows(url: str, sql: str) -> list[tuple[object, ...]]:
    engine = connect(url)
    with engine.connect() as connection:
        outcome = [tuple(row) for row in connection.execute(sa.text(sql))]
    engine.dispose()
    return outcome


def flagged(url: str, step: str, simulation: Simulation) -> np.ndarray:
    """Which of the simulated prompts the first finding flags, as the store has it."""
    calls = (
        "SELECT p.key FROM filter_reason r JOIN prompt_alias p ON p.prompt_id = r.prompt_id "
        f"WHERE r.finding_id = 1 AND r.step = '{step}'"
    )
    return np.isin(simulation.keys, [key for (key,) in rows(url, calls)])


@pytest.mark.usefixtures("filtered")
class TestPlantedTruth:
    @pytest.mark.parametrize("step", ["easy", "contaminated", "similar"])
    def test_what_was_planted_is_flagged_and_hardly_anything_else(
        self, url: str, planted: Simulation, step: str
    ) -> None:
        truth = planted.truth
        is_so = {"easy": truth.easy, "contaminated": truth.leaked, "similar": truth.group >= 0}[step]
        outcome = flagged(url, step, planted)
        assert (outcome & is_so).sum() / is_so.sum() >= 0.95  # recall
        assert (outcome & is_so).sum() / outcome.sum() >= 0.95  # precision

    def test_near_duplicates_of_one_original_are_in_one_group(self, url: str, planted: Simulation) -> None:
        calls = (
            "SELECT r.cluster, p.key FROM filter_reason r JOIN prompt_alias p ON p.prompt_id = r.prompt_id "
            "WHERE r.finding_id = 1 AND r.step = 'similar'"
        )
        group_of = dict(zip(planted.keys, planted.truth.group.tolist(), strict=True))
        originals: dict[object, set[int]] = {}
        for cluster, key in rows(url, calls):
            originals.setdefault(cluster, set()).add(group_of[str(key)])
        assert np.mean([len(planted_in) == 1 for planted_in in originals.values()]) >= 0.95

    def test_as_many_are_removed_as_in_the_paper(self, url: str) -> None:
        counted = {
            step: (n, n_retained)
            for step, n, n_retained in rows(
                url,
                "SELECT step, COUNT(*), SUM(CASE WHEN retained THEN 1 ELSE 0 END) FROM filter_reason "
                "WHERE finding_id = 1 GROUP BY step",
            )
        }
        n_easy, n_retained = counted["easy"]
        assert n_retained == round(0.1 * int(str(n_easy)))
        assert counted["contaminated"][1] == 0
        halves = rows(
            url,
            "SELECT COUNT(*), SUM(CASE WHEN retained THEN 0 ELSE 1 END) FROM filter_reason "
            "WHERE finding_id = 1 AND step = 'similar' GROUP BY cluster",
        )
        assert all(removed == int(str(size)) // 2 for size, removed in halves)

    def test_every_prompt_has_a_decision_and_every_removed_one_a_reason(self, url: str) -> None:
        assert rows(url, "SELECT COUNT(*), COUNT(DISTINCT prompt_id) FROM filter_decision") == [(1200, 1200)]
        contradicting = (
            "SELECT d.prompt_id FROM filter_decision d LEFT JOIN filter_reason r "
            "ON r.finding_id = d.finding_id AND r.prompt_id = d.prompt_id AND NOT r.retained "
            "WHERE d.kept = (r.prompt_id IS NOT NULL)"
        )
        assert rows(url, contradicting) == []

    def test_hardly_anything_is_flagged_where_nothing_was_planted(self, tmp_path: Path, sqlite_template: Path) -> None:
        nothing = simulate(Design(n_prompts=360, n_easy=0, n_leaked=0, n_groups=0), seed=0)
        url = ingested(nothing, tmp_path, sqlite_template)
        text = run(url, "analyze", "smart-filtering", BENCHMARK, *QUICK, "--format", "json")
        assert flagged(url, "contaminated", nothing).mean() <= 0.01
        assert flagged(url, "similar", nothing).mean() <= 0.01
        assert "one group would hold" in text.stdout or flagged(url, "similar", nothing).any()


class TestOutput:
    def test_it_prints_the_filter_models_the_rule_and_the_result(self, filtered: Result) -> None:
        assert "of 1,200 prompts (" in filtered.stdout.splitlines()[0]
        text = " ".join(filtered.stdout.split())
        assert "Easy: all 7 filter models get them right with a probability above 0.8 (option letters)." in text
        assert "Filter models: northlight/borealis-2-large, quillworks/folio-72b, " in text
        assert "Without the question, filter models are right on" in text
        assert "finding 1" in filtered.stderr
        assert "Traceback" not in filtered.output
        assert "Warning" not in filtered.output

    @pytest.mark.usefixtures("filtered")
    def test_what_it_keeps_can_be_chosen_everywhere(self, url: str) -> None:
        [(n_kept,)] = rows(url, "SELECT COUNT(*) FROM filter_decision WHERE finding_id = 1 AND kept")
        text = run(url, "leaderboard", BENCHMARK, "--metric", "accuracy", "--filter", "1", "--format", "json")
        assert {row["n"] for row in json.loads(text.stdout)} == {n_kept}
        table = run(url, "show", "1", "--table", "steps").stdout
        assert [line.split()[0] for line in table.splitlines() if line.startswith(("easy", "similar"))] == [
            "easy",
            "similar",
        ]

    def test_options_are_printed_as_for_other_analyses(self, url: str) -> None:
        text = run(
            url,
            *("analyze", "smart-filtering", BENCHMARK, *WITHOUT_VECTORS, "--without-confidence", "--format", "json"),
            *("--exclude-task", "dates", "--exclude-task", "tables", "--retain", "0", "--open-only", "--allow-unknown"),
            *("--models", "quillworks/folio-72b,saltmarsh/heron-3"),
        )
        numbers = json.loads(text.stdout)["metrics"]
        assert numbers["n_filter_models"] == 2
        assert numbers["anomalous.share_removed"] == pytest.approx(1 / 3)
        assert numbers["easy.share_removed"] == numbers["easy.share_flagged"] > 0
        assert "Step `similar` is skipped: the option --without-similar is set." in str(
            json.loads(text.stdout)["summary"]
        )


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "kind", "pattern"),
        [
            (("--models", "nobody"), NotFoundError, "No model 'nobody'"),
            (("--exclude-task", "dates,nothing"), SelectionError, r"No task 'nothing' to exclude\. Known: "),
            (
                ("--probability", "likelihoods"),
                SelectionError,
                "of the option likelihoods is stored for.*--without-conf",
            ),
            (
                ("--n-models", "9"),
                SelectionError,
                "Too few filter models: 8 models of different organizations.*--n-models",
            ),
            (("--condition", "answer_only"), SelectionError, "Leave out `--condition`"),
        ],
    )
    def test_impossible_options_are_errors_that_name_the_fix(
        self, url: str, options: tuple[str, ...], kind: type[Exception], pattern: str
    ) -> None:
        with pytest.raises(kind, match=pattern):
            run(url, "analyze", "smart-filtering", BENCHMARK, *WITHOUT_VECTORS, *options)

    def test_a_metric_of_fractions_is_refused(self, url: str) -> None:
        with pytest.raises(SelectionError, match="Select another metric with `--metric`"):
            run(
                url,
                "analyze",
                "smart-filtering",
                BENCHMARK,
                "--metric",
                "gold_probability_letters",
                "--without-similar",
            )
