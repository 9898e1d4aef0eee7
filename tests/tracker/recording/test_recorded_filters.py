"""A filter from the question that makes it to those that use it: recorded, chosen with --filter, looked at, shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from mlflow import MlflowClient

from tracker.cli import suffrage
from tracker.database import transaction
from tracker.errors import NotFoundError, SelectionError
from tracker.queries.findings.finding_records import get_finding
from tracker.queries.performance import load_performance_matrix
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.finding import FilterDecisions, FlaggedPrompts
from tracker.recording.pipeline import RecordedFinding, run_analysis
from tracker.schema import metadata

ARITHMETIC = Selection(benchmark="arithmetic")
SIEVE = '''
"""Which prompts does nobody need?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import FilterDecisions, Finding, FlaggedPrompts, RankedModels, Report, Summary, analysis


@dataclass(frozen=True, kw_only=True)
class Sieved(Finding):
    n_prompts: int
    n_kept: int


@analysis
def analyze(scores: PerformanceMatrix, *, at_most: float = 0.5, mended: bool = False) -> Report:
    easy = scores.Q.mean(axis=1) > at_most
    alike = np.arange(scores.n_prompts) % 7 == 0
    ids, spared = scores.prompt_ids, np.arange(scores.n_prompts) % 2 == 0
    reasons = {
        "easy": FlaggedPrompts(prompt_ids=ids[easy], retained=np.full(easy.sum(), mended)),
        "alike": FlaggedPrompts(
            prompt_ids=ids[alike], retained=spared[alike] | mended, groups=np.arange(alike.sum()) // 2 - 1
        ),
    }
    kept = ~(easy | (alike & ~spared)) | mended
    by = RankedModels(models=scores.models[:2], score=np.array([0.9, 0.8]), rank=np.array([2.0, 1.0]))
    return Report(
        Sieved(n_prompts=len(ids), n_kept=int(kept.sum())),
        summary=Summary(f"{int(kept.sum())} of {len(ids)} prompts stay."),
        rankings={"filter_models": by},
        filter=FilterDecisions(prompt_ids=ids, kept=kept, reasons=reasons),
    )
'''
LOOKING = '''
"""What does a filter do?"""

from __future__ import annotations

from dataclasses import dataclass

from tracker.queries.filtering.filter_models import FilterModels
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.recording.finding import Finding, Report, Summary, analysis


@dataclass(frozen=True, kw_only=True)
class Looked(Finding):
    filter_id: int
    n_kept: int
    n_scored: int
    n_texts: int
    n_models: int
    models: tuple[str, ...]


@analysis
def analyze(scores: PerformanceMatrix, chosen: PromptFilter, prompts: PromptTexts, who: FilterModels) -> Report:
    numbers = {"filter_id": chosen.finding_id, "n_kept": chosen.n_kept, "n_scored": scores.n_prompts}
    more = {"n_texts": len(prompts.prompt_ids), "n_models": scores.n_models, "models": who.selected}
    summary = Summary(f"Filter {chosen.finding_id} keeps {chosen.n_kept} of {scores.n_prompts}.")
    return Report(Looked(**numbers, **more), summary=summary)
'''

WEIGHED = '''
"""How many prompts are there, and how many are they worth?"""

from __future__ import annotations

from dataclasses import dataclass

from tracker.queries.ranking.weighted_scores import select_weighted
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import Finding, Report, Summary, analysis


@dataclass(frozen=True, kw_only=True)
class Worth(Finding):
    n_prompts: int
    n_effective: float


@analysis
def analyze(scores: PerformanceMatrix, weights: PromptWeights | None) -> Report:
    voters = select_weighted(scores, weights)
    worth = Worth(n_prompts=voters.scores.n_prompts, n_effective=voters.n_effective)
    summary = Summary(f"{worth.n_prompts} prompts are worth {worth.n_effective:.1f}.")
    return Report(worth, summary=summary, warnings=voters.warnings)
'''


@pytest.fixture(autouse=True)
def _sieve(install: Callable[..., None], toys: None) -> None:
    install("sieving", {"sieve": SIEVE, "looking": LOOKING, "weighed": WEIGHED})


def sieve(engine: sa.Engine, selection: Selection = ARITHMETIC, **parameters: object) -> RecordedFinding:
    return run_analysis(engine, "sieve", selection, parameters)


def rows(engine: sa.Engine, table: sa.TableClause, key: int) -> list[sa.Row]:
    with transaction(engine, write=False) as session:
        query = sa.select(table).where(table.c.finding_id == key).order_by(*metadata.tables[table.name].primary_key)
        return list(session.execute(query))


def analysis_row(engine: sa.Engine, key: int) -> sa.Row:
    with transaction(engine, write=False) as session:
        return session.execute(sa.select(tables.finding).where(tables.finding.c.id == key)).one()


def invoke(engine: sa.Engine, *arguments: str) -> Result:
    url = engine.url.render_as_string(hide_password=False)
    result = CliRunner().invoke(suffrage, [*arguments, "--database", url])
    if isinstance(result.exception, Exception):
        raise result.exception
    return result


class TestRecord:
    def test_every_decision_and_reason_is_a_row(self, filled: sa.Engine) -> None:
        recorded = sieve(filled)
        created, key = recorded.report.filter, recorded.finding_id
        decided = dict(zip(created.prompt_ids.tolist(), created.kept.tolist(), strict=True))
        assert {row.prompt_id: row.kept for row in rows(filled, tables.filter_decision, key)} == decided
        printed = {
            (row.step, row.prompt_id): (row.retained, row.cluster) for row in rows(filled, tables.filter_reason, key)
        }
        easy, duplicates = created.reasons["easy"], created.reasons["alike"]
        groups = [None if group < 0 else group for group in duplicates.groups.tolist()]
        assert printed == {
            **{("easy", prompt): (False, None) for prompt in easy.prompt_ids.tolist()},
            **{
                ("alike", prompt): (bool(retained), group)
                for prompt, retained, group in zip(
                    duplicates.prompt_ids.tolist(), duplicates.retained, groups, strict=True
                )
            },
        }
        assert None in groups
        assert {retained for retained, _ in printed.values()} == {True, False}

    def test_deleting_the_finding_deletes_its_decisions_unless_another_rests_on_it(self, filled: sa.Engine) -> None:
        key = sieve(filled).finding_id
        dropping = sa.delete(tables.finding).where(tables.finding.c.id == key)
        used = run_analysis(filled, "toy", replace(ARITHMETIC, filter=key)).finding_id
        with pytest.raises(sa.exc.IntegrityError), transaction(filled) as session:
            session.execute(dropping)
        with transaction(filled) as session:
            session.execute(sa.delete(tables.finding).where(tables.finding.c.id == used))
            session.execute(dropping)
        assert rows(filled, tables.filter_decision, key) == rows(filled, tables.filter_reason, key) == []


class TestDecisions:
    IDS = np.array([4, 5, 6])

    def out(self, ids: list[int], retained: list[bool]) -> FlaggedPrompts:
        return FlaggedPrompts(prompt_ids=np.array(ids, dtype=np.int64), retained=np.array(retained, dtype=np.bool_))

    def test_a_prompt_stays_if_it_is_retained_in_spite_of_each_reason(self) -> None:
        reasons = {"easy": self.out([4, 5], [True, True]), "similar": self.out([4], [False])}
        decided = FilterDecisions(prompt_ids=self.IDS, kept=np.array([False, True, True]), reasons=reasons)
        assert self.IDS[decided.kept].tolist() == [5, 6]
        untouched = FilterDecisions(prompt_ids=self.IDS, kept=np.ones(3, dtype=np.bool_), reasons={})
        assert untouched.kept.all()

    @pytest.mark.parametrize("kept", [[True, True, True], [False, False, True], [False, True, False]])
    def test_decisions_that_their_reasons_contradict_are_a_bug(self, kept: list[bool]) -> None:
        reasons = {"easy": self.out([4, 5], [True, True]), "similar": self.out([4], [False])}
        with pytest.raises(ValueError, match="a prompt is kept if, and only if, no reason removes it"):
            FilterDecisions(prompt_ids=self.IDS, kept=np.array(kept), reasons=reasons)

    def test_reasons_for_prompts_without_decision_are_a_bug(self) -> None:
        reasons = {"easy": self.out([7], [True])}
        with pytest.raises(ValueError, match="the step easy flags prompts that the filter did not evaluate"):
            FilterDecisions(prompt_ids=self.IDS, kept=np.ones(3, dtype=np.bool_), reasons=reasons)


class TestUse:
    def test_other_questions_see_the_kept_prompts_only_and_record_whose(self, filled: sa.Engine) -> None:
        recorded = sieve(filled)
        key, n_kept = recorded.finding_id, recorded.report.finding.n_kept
        filtered = replace(ARITHMETIC, filter=key)
        used = run_analysis(filled, "toy", filtered)
        assert 0 < used.report.finding.n_prompts == n_kept < 40
        only, chosen, toy = used.report.summary.caveats
        assert (only, toy) == (f"Filter {key} keeps {n_kept} of 40 prompts; only these are used.", "This is a toy.")
        assert chosen.startswith(f"Filter {key} chose prompts by the answers of 2 models")
        row = analysis_row(filled, used.finding_id)
        assert (row.filter_id, row.selection["filter"]) == (key, key)
        with transaction(filled, write=False) as session:
            assert row.input_digest == load_performance_matrix(session, filtered).digest
            board = load_leaderboard(session, filtered)
        assert (board.n_units, board.filter_id) == (n_kept, key)
        assert analysis_row(filled, key).filter_id is None

    def test_a_filter_of_a_filter_keeps_what_both_keep(self, filled_file: sa.Engine) -> None:
        first = sieve(filled_file)
        second = sieve(filled_file, replace(ARITHMETIC, filter=first.finding_id), at_most=0.3)
        third = run_analysis(filled_file, "toy", replace(ARITHMETIC, filter=second.finding_id))
        assert third.report.finding.n_prompts == second.report.finding.n_kept < first.report.finding.n_kept
        n_kept = second.report.finding.n_kept
        assert third.report.summary.caveats[0].startswith(f"Filter {second.finding_id} keeps {n_kept} of 40 prompts")
        assert not any("did not evaluate" in warning for warning in third.report.summary.caveats)
        assert analysis_row(filled_file, second.finding_id).filter_id == first.finding_id

    def test_weights_made_of_kept_prompts_and_weights_of_all_can_both_be_used_with_it(
        self, filled_file: sa.Engine
    ) -> None:
        key = sieve(filled_file).finding_id
        of_all = run_analysis(filled_file, "toy", ARITHMETIC).finding_id
        of_kept = run_analysis(filled_file, "toy", replace(ARITHMETIC, filter=key)).finding_id
        for weights in (of_all, of_kept):
            chosen = replace(ARITHMETIC, filter=key, weights=str(weights))
            used = run_analysis(filled_file, "weighed", chosen)
            row = analysis_row(filled_file, used.finding_id)
            assert (row.filter_id, row.weights_id) == (key, weights)
            assert used.report.summary.caveats[0].startswith("Filter ")
            assert "Prompts are weighted by" in " ".join(used.report.summary.caveats + used.report.warnings)
            assert used.report.finding.n_effective <= used.report.finding.n_prompts <= sieve_kept(filled_file, key)

    def test_a_finding_made_of_kept_prompts_is_stale_when_its_runs_change(self, filled_file: sa.Engine) -> None:
        key = sieve(filled_file).finding_id
        used = run_analysis(filled_file, "toy", replace(ARITHMETIC, filter=key)).finding_id
        with transaction(filled_file, write=False) as session:
            assert get_finding(session, used).stale == ""
        with transaction(filled_file) as session:
            session.execute(sa.update(tables.run).where(tables.run.c.id == 1).values(checksum="another"))
        with transaction(filled_file, write=False) as session:
            assert get_finding(session, used).stale == get_finding(session, key).stale == "changed since: run 1"
        again = run_analysis(filled_file, "toy", replace(ARITHMETIC, filter=key))
        assert "is stale" in again.report.summary.caveats[1]

    def test_nothing_is_recorded_of_a_question_whose_filter_is_refused(self, filled_file: sa.Engine) -> None:
        key = run_analysis(filled_file, "toy", ARITHMETIC).finding_id
        for wrong, error in ((key, SelectionError), (99, NotFoundError)):
            with pytest.raises(error, match="filter"):
                run_analysis(filled_file, "toy", replace(ARITHMETIC, filter=wrong))
        with transaction(filled_file, write=False) as session:
            assert session.scalars(sa.select(tables.finding.c.id)).all() == [key]


class TestClaims:
    """A question that looks at a filter, or at who filters, loads everything else unfiltered."""

    def test_the_filter_is_looked_at_and_all_prompts_too(self, filled_file: sa.Engine) -> None:
        first, second = sieve(filled_file), sieve(filled_file, at_most=0.9)
        chosen = replace(ARITHMETIC, filter=first.finding_id)
        looked = run_analysis(filled_file, "looking", chosen)
        result = looked.report.finding
        assert (result.filter_id, result.n_kept) == (first.finding_id, first.report.finding.n_kept)
        assert (result.n_scored, result.n_texts, looked.report.summary.caveats) == (40, 40, ())
        assert analysis_row(filled_file, looked.finding_id).filter_id == first.finding_id
        assert run_analysis(filled_file, "looking", ARITHMETIC).report.finding.filter_id == second.finding_id

    def test_the_latest_is_recorded_where_none_was_named(self, filled_file: sa.Engine) -> None:
        key = sieve(filled_file).finding_id
        row = analysis_row(filled_file, run_analysis(filled_file, "looking", ARITHMETIC).finding_id)
        assert (row.filter_id, row.selection["filter"]) == (key, key)

    def test_without_any_filter_the_error_names_the_command_that_makes_one(self, filled_file: sa.Engine) -> None:
        with pytest.raises(SelectionError, match=r"arithmetic has no filter yet\. Create one: suffrage analyze"):
            run_analysis(filled_file, "looking", ARITHMETIC)

    def test_the_models_chosen_are_named_and_all_are_looked_at(self, filled_file: sa.Engine) -> None:
        sieve(filled_file)
        with transaction(filled_file) as session:
            number = session.scalar(sa.select(tables.model.c.id).where(tables.model.c.name == "arithmetic/model 3"))
            another = {"name": "three", "model_id": number}
            merged = {"name": "arithmetic/model 1", "model_id": number}
            session.execute(sa.insert(tables.model_alias), [another, merged])
        names = ("three", "arithmetic/model 1", "arithmetic/model 3", "unheard-of")
        result = run_analysis(filled_file, "looking", replace(ARITHMETIC, models=names)).report.finding
        assert result.models == ("arithmetic/model 3", "unheard-of")
        assert result.n_models == 5

    def test_help_describes_claimed_options(self) -> None:
        helped = {
            name: " ".join(CliRunner().invoke(suffrage, ["analyze", name, "--help"]).output.split())
            for name in ("looking", "toy")
        }
        assert "--filter ID ID of a filter finding; only the prompts that it keeps are used." in helped["toy"]
        assert "--models A,B Names of models to include, separated by commas. Repeatable." in helped["toy"]
        assert "--filter ID The filter to examine; default: the benchmark's latest." in helped["looking"]
        assert "--models A,B The filter models, whose answers decide;" in helped["looking"]


class TestCommand:
    def test_the_filter_is_shown_with_every_finding(self, filled_file: sa.Engine) -> None:
        key = sieve(filled_file).finding_id
        assert "data" not in invoke(filled_file, "findings").stdout.splitlines()[0]
        text = invoke(filled_file, "analyze", "toy", "arithmetic", "--no-mlflow", "--filter", str(key))
        caveat = f"Caveat: Filter {key} keeps {sieve_kept(filled_file, key)} of 40 prompts; only these are used."
        assert caveat in " ".join(text.stdout.split())
        used = key + 1
        assert f"filter {key}" in next(
            line for line in invoke(filled_file, "show", str(used)).stdout.splitlines() if line.startswith("data ")
        )
        head, _, *listing = invoke(filled_file, "findings").stdout.splitlines()
        assert "data" in head
        assert f"filter {key}" in next(line for line in listing if line.split()[0] == str(used))
        printed = json.loads(invoke(filled_file, "findings", "--format", "json").stdout)
        assert {row["id"]: row["selection"].get("filter") for row in printed} == {key: None, used: key}

    def test_the_rerun_command_of_a_stale_finding_selects_the_same_data(self, filled_file: sa.Engine) -> None:
        key = sieve(filled_file).finding_id
        data = {"tasks": ("task 0", "task 2"), "metric": "accuracy of arithmetic"}
        chosen = replace(ARITHMETIC, filter=key, as_of=datetime(2099, 1, 1, 12, 30, tzinfo=UTC), **data)
        used = run_analysis(filled_file, "toy", chosen).finding_id
        with transaction(filled_file) as session:
            session.execute(sa.update(tables.run).where(tables.run.c.id == 1).values(checksum="another"))
        again = "toy arithmetic --metric 'accuracy of arithmetic' --tasks 'task 0,task 2' --as-of 2099-01-01T12:30:00"
        for finding, arguments in ((used, f"{again} --filter {key}"), (key, "sieve arithmetic")):
            advice = f"Run it again: `suffrage analyze {arguments} --missing common`."
            assert advice in invoke(filled_file, "show", str(finding)).stderr

    def test_the_leaderboard_counts_prompts_without_decision(self, filled_file: sa.Engine) -> None:
        key = sieve(filled_file).finding_id
        n_kept = sieve_kept(filled_file, key)
        table = invoke(filled_file, "leaderboard", "arithmetic", "--filter", str(key))
        assert f"over {n_kept} prompts" in table.stderr
        assert f"Filter {key} keeps {n_kept} of 40 prompts; only these are used." in table.stderr
        plain = invoke(filled_file, "leaderboard", "arithmetic", "--filter", str(key), "--format", "json")
        assert f"Filter {key} keeps {n_kept} of 40 prompts" in plain.stderr
        assert {row["n"] for row in json.loads(plain.stdout)} == {n_kept}

    def test_a_word_is_no_filter(self, filled_file: sa.Engine) -> None:
        result = CliRunner().invoke(suffrage, ["leaderboard", "arithmetic", "--filter", "latest"])
        assert (result.exit_code, "'latest' is not a valid integer" in result.stderr) == (2, True)


def sieve_kept(engine: sa.Engine, key: int) -> int:
    return sum(row.kept for row in rows(engine, tables.filter_decision, key))


def test_mlflow_shows_the_decisions_and_which_filter_was_used(filled_file: sa.Engine, tracking_uri: str) -> None:
    created = run_analysis(filled_file, "sieve", ARITHMETIC, publish_to=tracking_uri)
    used = run_analysis(filled_file, "toy", replace(ARITHMETIC, filter=created.finding_id), publish_to=tracking_uri)
    client = MlflowClient(tracking_uri)
    assert client.get_run(used.mlflow_run_id).data.params["selection.filter"] == str(created.finding_id)
    table = pq.read_table(client.download_artifacts(created.mlflow_run_id, "data/filter.parquet")).to_pylist()
    decided = created.report.filter
    assert {row["prompt_id"]: row["kept"] for row in table} == dict(
        zip(decided.prompt_ids.tolist(), decided.kept.tolist(), strict=True)
    )
    assert {row["key"] for row in table} == {f"p{i}" for i in range(40)}
    for step, out in decided.reasons.items():
        text = {row["prompt_id"]: row[step] for row in table if row[step] is not None}
        words = ["retained" if retained else "removed" for retained in out.retained.tolist()]
        assert text == dict(zip(out.prompt_ids.tolist(), words, strict=True))
    grouped = {row["prompt_id"] for row in table if row["alike.group"] is not None}
    duplicates = decided.reasons["alike"]
    assert grouped == set(duplicates.prompt_ids[duplicates.groups >= 0].tolist())
    names = [file.path for file in client.list_artifacts(used.mlflow_run_id, "data")]
    assert "data/filter.parquet" not in names
