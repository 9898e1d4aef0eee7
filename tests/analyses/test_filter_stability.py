from __future__ import annotations

import io
import itertools
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from analyses.filter_stability import analyze
from analyses.numerics.filtering.removal import draw_retained
from tracker.database import connect, transaction
from tracker.errors import SelectionError
from tracker.ingest.files.vector_file import read_vectors
from tracker.ingest.parsing.detection import parse_file
from tracker.ingest.write.vectors import EncoderName, ingest_vectors
from tracker.ingest.write.writer import store_file
from tracker.queries.embeddings import AllEmbeddings, Embeddings
from tracker.queries.filtering.prompt_filter import PromptFilter, ReasonPrompts
from tracker.queries.filtering.reference_probabilities import AnswerOnlyRuns, ReferenceProbabilities
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.queries.resolution import find_benchmark
from tracker.recording.finding import Undefined
from tracker.recording.pipeline import run_analysis
from tracker.simulation.files import BENCHMARK, RESULT_FILES, VECTORS_FILE, write_files
from tracker.simulation.item_response import Design, simulate
from tracker.simulation.truth_comparison import select_scores

N_PROMPTS, N_MODELS = 90, 6
IDS = np.random.default_rng(5).permutation(N_PROMPTS).astype(np.int64) + 1000
"""Keys of the prompts: not in the order of the rows, as where tasks are not in the order of the keys."""
MODELS = tuple(f"org {j}/model" for j in range(N_MODELS))
FILTER_MODELS = (MODELS[4], MODELS[0], MODELS[2], MODELS[1])
OPTIONS = {
    "confidence": 0.8,
    "retain": 0.25,
    "without_confidence": False,
    "probability": None,
    "without_similar": False,
    "n_neighbours": 10,
    "bandwidth": 0.15,
    "unimodal": "keep",
    "threshold": 0.1,
    "groups": "components",
    "protect_lexical": 0.8,
    "largest_group": 0.5,
    "seed": 3,
}


def matrix(Q: np.ndarray, metric: str = "accuracy", first_run: int = 0) -> PerformanceMatrix:
    return PerformanceMatrix(
        Q=np.asarray(Q, dtype=np.float64),
        prompt_ids=IDS,
        tasks=np.full(N_PROMPTS, "task"),
        models=MODELS,
        run_ids=first_run + np.arange(N_MODELS, dtype=np.int64),
        benchmark="bench",
        metric=metric,
    )


def probabilities(p: np.ndarray, first_run: int = 0) -> ReferenceProbabilities:
    kinds = {"letters": matrix(p, "gold_probability_letters", first_run)}
    return ReferenceProbabilities(kinds=kinds, run_ids=kinds["letters"].run_ids)


def vectors(seed: int, key: int, n: int = N_PROMPTS) -> Embeddings:
    """Every other prompt but the last thirty is nearly the one before it, with noise of the seed's own."""
    E = np.random.default_rng(1).standard_normal((N_PROMPTS, 16))
    E[1:60:2] = E[0:60:2]
    E += np.random.default_rng(seed).normal(0, 0.26, E.shape)
    order = np.argsort(IDS)[:n]
    return Embeddings(
        E=E[order].astype(np.float32),
        prompt_ids=IDS[order],
        encoder_id=key,
        encoder=f"encoder {key}",
        benchmark="bench",
    )


class World:
    """Scores, and the filter that the definitions make of them."""

    def __init__(self, **options):
        rng = np.random.default_rng(0)
        ease = rng.random((N_PROMPTS, 1)) ** 0.3
        self.right, self.gold = (rng.random((N_PROMPTS, N_MODELS)) < ease, rng.random((N_PROMPTS, N_MODELS)) ** 0.15)
        self.blind_right = rng.random((N_PROMPTS, N_MODELS)) < ease**4
        self.blind_gold = rng.random((N_PROMPTS, N_MODELS)) ** 0.15
        self.gold[::6] = self.blind_gold[::7] = OPTIONS["confidence"]  # not above it
        self.options = OPTIONS | options
        self.similar_prompts = rng.random(N_PROMPTS) < 0.1
        self.encoders = (vectors(0, 7), vectors(1, 8))

    def decided(self, names):
        """What a filter by some models flags as easy and contaminated, and removes."""
        columns = [MODELS.index(name) for name in names]
        blind_columns = [MODELS.index(name) for name in self.options.get("contaminated_models", names)]
        p, q = (np.ones_like(self.gold),) * 2 if self.options["without_confidence"] else (self.gold, self.blind_gold)
        bound = self.options["confidence"]
        easy = np.array([all(self.right[i, j] and p[i, j] > bound for j in columns) for i in range(N_PROMPTS)])
        leaked = np.array(
            [all(self.blind_right[i, j] and q[i, j] > bound for j in blind_columns) for i in range(N_PROMPTS)]
        )
        stays = draw_retained(easy, self.options["retain"], seed=self.options["seed"])
        return easy, leaked, (easy & ~stays) | leaked | self.similar_prompts

    def chosen(self, **rest) -> PromptFilter:
        easy, leaked, removed = self.decided(FILTER_MODELS)
        stays = draw_retained(easy, self.options["retain"], seed=self.options["seed"])
        order = np.argsort(IDS)

        def reason(flagged, kept):
            ids = IDS[flagged]
            by_key = np.argsort(ids)
            return ReasonPrompts(
                prompt_ids=ids[by_key],
                retained=kept[flagged][by_key],
                groups=np.full(len(ids), -1, dtype=np.int64),
            )

        nothing = np.zeros(N_PROMPTS, dtype=bool)
        reasons = {
            "easy": reason(easy, stays),
            "contaminated": reason(leaked, nothing),
            "similar": reason(self.similar_prompts, nothing),
            "suspect-label": reason(~removed, ~nothing),
        }
        inputs = {
            "finding_id": 12,
            "made_by": "smart-filtering",
            "benchmark": "bench",
            "prompt_ids": IDS[order],
            "kept": ~removed[order],
            "reasons": reasons,
            "models": FILTER_MODELS,
            "parameters": self.options,
            "selection": {"benchmark": "bench"},
        }
        return PromptFilter(**(inputs | rest))

    def run(self, *, chosen=None, scores=None, blind=True, encoders=None, **options):
        nothing = ReferenceProbabilities(kinds={}, run_ids=np.empty(0, dtype=np.int64))
        kept = np.sort(IDS)
        texts = ("",) * N_PROMPTS
        return analyze(
            scores or matrix(self.right),
            PromptTexts(
                prompt_ids=kept,
                tasks=texts,
                names=texts,
                texts=texts,
                choices=(None,) * N_PROMPTS,
                answers=texts,
                details=({},) * N_PROMPTS,
            ),
            chosen or self.chosen(),
            probabilities(self.gold),
            AnswerOnlyRuns(
                scores=matrix(self.blind_right, first_run=50) if blind else None,
                probabilities=probabilities(self.blind_gold, 50) if blind else nothing,
            ),
            AllEmbeddings(by_encoder=self.encoders if encoders is None else encoders),
            **options,
        )


class TestAgainstReference:
    @pytest.mark.parametrize("options", [{}, {"without_confidence": True}, {"retain": 0.0, "confidence": 0.95}])
    def test_every_subset_is_the_filter_that_the_definitions_make(self, options):
        world = World(**options)
        report = world.run()
        rows = {tuple(row["models"].split("; ")): row for row in report.tables["subsets"].to_pylist()}
        _, _, by_all = world.decided(FILTER_MODELS)
        expected = [names for size in (1, 2, 3, 4) for names in itertools.combinations(FILTER_MODELS, size)]
        assert list(rows) == expected
        for names, row in rows.items():
            easy, leaked, removed = world.decided(names)
            assert (row["n_easy"], row["n_contaminated"]) == (easy.sum(), leaked.sum())
            assert row["n_removed"] == removed.sum()
            assert row["n_changed"] == (removed != by_all).sum()
            assert row["share_removed"] == removed.mean()
            assert row["left_out"] == "; ".join(name for name in FILTER_MODELS if name not in names)
        assert 0 < rows[FILTER_MODELS[:2]]["n_contaminated"] < rows[FILTER_MODELS[:1]]["n_contaminated"]

    def test_numbers_by_size_are_those_of_all_subsets(self):
        result = World().run()
        for size in (1, 2, 3):
            rows = [row for row in result.tables["subsets"].to_pylist() if row["n_models"] == size]
            values = np.array([row["share_removed"] for row in rows])
            metrics = result.finding.metrics
            assert metrics[f"share_removed.mean.{size}"] == pytest.approx(values.mean())
            assert metrics[f"share_removed.sd.{size}"] == pytest.approx(values.std(ddof=0))
            assert metrics[f"share_removed.min.{size}"] == values.min()
            assert metrics[f"share_removed.max.{size}"] == values.max()
            assert metrics[f"share_easy.mean.{size}"] == pytest.approx(np.mean([row["share_easy"] for row in rows]))

    def test_all_models_give_the_recorded_filter(self):
        result = World().run()
        assert result.finding.n_otherwise == 0
        assert result.finding.metrics["share_removed.all"] == result.finding.metrics["share_removed.recorded"]
        assert not [warning for warning in result.warnings if "Recomputed" in warning]

    def test_prompts_that_listed_models_show_to_be_contaminated_stay_removed(self):
        world = World(contaminated_models=(MODELS[3], MODELS[5]))
        result = world.run()
        assert result.finding.n_otherwise == 0
        assert not [warning for warning in result.warnings if "Recomputed" in warning]
        for row in result.tables["subsets"].to_pylist():
            _, leaked, removed = world.decided(row["models"].split("; "))
            assert leaked.any()
            assert row["n_removed"] == removed.sum()
        assert isinstance(result.finding.metrics["share_contaminated.mean.2"], Undefined)
        assert any("that step has its own models" in warning for warning in result.warnings)

    def test_encoders_share_what_plain_loops_find(self):
        world = World()
        result = world.run()
        flagged, near = [], []
        for encoder in world.encoders:
            unit = encoder.E / np.linalg.norm(encoder.E, axis=1, keepdims=True)
            i, j = np.triu_indices(N_PROMPTS, 1)
            pairs = np.flatnonzero((1 - unit @ unit.T)[i, j] < 0.1)
            near.append(set(pairs.tolist()))
            flagged.append({*i[pairs].tolist(), *j[pairs].tolist()})
        shared, smaller = len(flagged[0] & flagged[1]), min(map(len, flagged))
        assert 0 < shared < smaller
        metrics = result.finding.metrics
        assert metrics["overlap.prompts.7.8"] == shared / smaller
        assert metrics["jaccard.prompts.7.8"] == shared / len(flagged[0] | flagged[1])
        assert metrics["expected_overlap.prompts.7.8"] == max(map(len, flagged)) / N_PROMPTS
        assert metrics["overlap.pairs.7.8"] == len(near[0] & near[1]) / min(map(len, near))
        prompts = result.tables["overlaps"].to_pylist()[0]
        assert prompts["expected"] == len(flagged[0]) * len(flagged[1]) / N_PROMPTS


class TestLaws:
    def test_the_order_of_rows_and_columns_does_not_matter_but_for_whom_chance_retains(self):
        world = World(retain=0.0)
        rows, columns = np.random.default_rng(0).permutation(N_PROMPTS), np.random.default_rng(1).permutation(N_MODELS)
        scores = matrix(world.right)
        turned = replace(
            scores,
            Q=scores.Q[np.ix_(rows, columns)],
            prompt_ids=IDS[rows],
            models=tuple(MODELS[j] for j in columns),
            run_ids=scores.run_ids[columns],
        )
        first, second = world.run(), world.run(scores=turned)
        assert first.tables["subsets"].equals(second.tables["subsets"])
        assert first.finding.metrics == second.finding.metrics

    def test_sizes_can_be_chosen_and_all_models_are_always_there(self):
        result = World().run(sizes=(2, 4, 2))
        assert [(row["n_models"], row["n_subsets"]) for row in result.tables["sizes"].to_pylist()] == [(2, 6), (4, 1)]
        assert result.finding.metrics["n_subsets"] == 6

    def test_the_headline_is_short_and_known_and_the_summary_has_all_parts(self):
        report = World().run()
        finding = report.finding
        assert set(finding.main_metrics) <= set(finding.metrics)
        assert len(finding.main_metrics) <= 50
        summary = report.summary
        removed = finding.metrics["share_removed.recorded"]
        assert summary.headline.startswith(f"Filter 12 removes {removed:.1%} of 90 prompts; with 3 of its 4 models")
        starts = ("Share removed", "Decisions that differ", "Most removed without", "Similar prompts by ")
        for item, start in zip(summary.evidence, starts, strict=False):
            assert item.startswith(start)
        assert "by construction" in summary.caveats[0]

    @pytest.mark.usefixtures("full_figures")
    def test_the_picture_shows_every_subset_once(self):
        figure = World().run().figures["subsets"]()
        points = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
        assert sum(len(line.get_xdata()) for line in points) == 15
        written = io.BytesIO()
        figure.savefig(written, format="png", dpi=40)
        written.seek(0)
        assert matplotlib.image.imread(written).std() > 0.01


class TestChangedData:
    def test_a_filter_that_differs_when_made_anew_is_warned_of_with_both_shares(self):
        world = World()
        recorded = world.chosen()
        world.right[:30], world.gold[:30] = True, 0.99
        result = world.run(chosen=recorded)
        _, _, by_all = world.decided(FILTER_MODELS)
        assert result.finding.metrics["share_removed.all"] == by_all.mean()
        assert result.finding.metrics["share_removed.recorded"] == (~recorded.kept).mean()
        assert result.finding.n_otherwise > 0
        (warning,) = [warning for warning in result.warnings if "Recomputed" in warning]
        assert f"{by_all.mean():.2%} instead of {(~recorded.kept).mean():.2%}" in warning

    def test_prompts_without_a_decision_or_without_scores_are_left_out(self):
        world = World()
        full = world.chosen()
        scored = full.prompt_ids[:70]
        chosen = replace(full, prompt_ids=scored, kept=full.kept[:70])
        result = world.run(chosen=chosen)
        assert result.finding.metrics["n_prompts"] == 70
        assert "20 prompts without a decision of filter 12 are left out." in result.warnings
        place = np.isin(IDS, np.sort(IDS)[10:])
        fewer = world.run(scores=matrix(world.right).rows(place))
        assert fewer.finding.metrics["n_prompts"] == 80
        assert any("10 prompts of filter 12 have no scores here" in warning for warning in fewer.warnings)

    def test_a_stale_filter_that_decides_the_same_is_warned_of_as_stale(self):
        world = World()
        assert any(
            "no longer the latest (why)" in warning for warning in world.run(chosen=world.chosen(stale="why")).warnings
        )

    def test_similar_prompts_that_no_stored_encoder_gives_are_warned_of(self):
        assert any("No encoder's vectors give the" in warning for warning in World().run().warnings)


class TestDegenerate:
    def test_without_answer_only_runs_contaminated_is_undefined_with_the_reason(self):
        result = World().run(blind=False)
        assert result.finding.metrics["share_contaminated.mean.2"] == Undefined("no answer-only run is stored")
        assert {row["n_contaminated"] for row in result.tables["subsets"].to_pylist()} == {None}
        assert {row["contaminated_mean"] for row in result.tables["sizes"].to_pylist()} == {None}
        assert any("No subset flags contaminated prompts: no answer-only run" in warning for warning in result.warnings)

    def test_overlap_of_one_encoder_or_none_is_undefined_with_the_reason(self):
        world = World()
        for encoders, pattern in (
            ((), "no vectors are stored"),
            (world.encoders[:1], "by only one encoder, encoder 7"),
        ):
            report = world.run(encoders=encoders)
            assert pattern in report.finding.metrics["overlap.prompts"].reason
            assert any("Encoders are not compared" in caveat for caveat in report.summary.caveats)

    def test_a_filter_without_the_similar_step_has_none_to_compare(self):
        result = World(without_similar=True).run().finding
        assert result.metrics["overlap.prompts"] == Undefined("the filter skips the step `similar`")
        assert result.metrics["n_encoders"] == 0

    def test_encoders_that_lack_vectors_or_flag_nothing_are_named(self):
        broken = replace(vectors(0, 9), E=np.zeros((N_PROMPTS, 16), dtype=np.float32))
        distinct = replace(vectors(0, 10), E=np.eye(N_PROMPTS, dtype=np.float32))
        result = World().run(encoders=(vectors(0, 7), vectors(0, 8, n=50), broken, distinct))
        metrics = result.finding.metrics
        assert metrics["n_encoders"] == 1
        assert metrics["n_flagged.8"] == Undefined("40 of 90 prompts have no vector by it")
        assert metrics["overlap.prompts.7.8"] == Undefined("the similar step flags nothing with encoder 8")
        assert metrics["threshold.9"] == Undefined("90 of its vectors are zero or not finite")
        assert metrics["threshold.10"] == 0.1
        assert metrics["n_flagged.10"] == 0
        assert "With encoder 10, no prompt is similar: " in result.summary.caveats[-1]
        assert not any("Similar prompts by" in item for item in result.summary.evidence)
        assert [row["reason"] == "" for row in result.tables["encoders"].to_pylist()] == [True, False, False, False]

    def test_two_models_have_two_subsets(self):
        world = World()
        result = world.run(chosen=world.chosen(models=FILTER_MODELS[:2]))
        assert [row["n_subsets"] for row in result.tables["sizes"].to_pylist()] == [2, 1]


class TestErrors:
    @pytest.mark.parametrize(
        ("filtered", "options", "pattern"),
        [
            ({"models": ()}, {}, "has no filter models. Use one of smart-filtering"),
            ({"parameters": {"seed": 0}, "made_by": "filter-baselines"}, {}, "is from filter-baselines"),
            ({"models": ("nobody", MODELS[0])}, {}, "Filter models without scores here: nobody"),
            ({"models": MODELS[:1]}, {}, f"only one model \\({MODELS[0]}\\)"),
            ({"selection": {"metric": "f1"}}, {}, "uses f1, but these are scores of accuracy. Use --metric f1"),
            ({"prompt_ids": IDS - 5000}, {}, "has no decision on the 90 prompts with scores here"),
            ({}, {"sizes": (0, 2)}, "sizes has 0; subsets of 4 filter models have from 1 to 4"),
            ({}, {"sizes": (5,)}, "sizes has 5"),
        ],
    )
    def test_impossible_options_are_errors_in_a_sentence(self, filtered, options, pattern):
        world = World()
        with pytest.raises(SelectionError, match=pattern):
            world.run(chosen=world.chosen(**filtered), **options)

    def test_scores_of_runs_without_the_question_are_refused(self):
        world = World()
        with pytest.raises(SelectionError, match="Leave out `--condition`"):
            world.run(scores=replace(matrix(world.right), condition="answer_only"))

    def test_too_many_subsets_are_refused_with_what_to_choose(self):
        world = World()
        names = tuple(f"model {j}" for j in range(40))
        scores = replace(
            matrix(world.right),
            Q=np.tile(world.right[:, :1], (1, 40)).astype(float),
            models=names,
            run_ids=np.arange(40),
        )
        with pytest.raises(SelectionError, match=r"10,700 subsets of these sizes of 40 .* such as --sizes 39"):
            world.run(chosen=world.chosen(models=names), scores=scores)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> sa.Engine:
    """A small simulated benchmark with a second encoder."""
    folder = tmp_path_factory.mktemp("stability")
    (folder / "store.db").write_bytes(sqlite_template.read_bytes())
    engine = connect(f"sqlite:///{folder / 'store.db'}")
    write_files(simulate(Design(n_prompts=420, n_easy=42, n_leaked=24, n_groups=18), seed=1), folder)
    for file in RESULT_FILES:
        reading = parse_file(folder / file.name, file.options)
        with transaction(engine, exclusive=True) as session:
            store_file(session, reading, file.options)
    table = pq.read_table(folder / VECTORS_FILE.name)
    E = np.array(table["vector"].to_pylist(), dtype=np.float32)
    shifted = pa.FixedSizeListArray.from_arrays(pa.array((E + np.float32(0.001)).ravel()), E.shape[1])
    pq.write_table(table.set_column(1, "vector", shifted), folder / "shifted.parquet")
    for encoder, name in ((VECTORS_FILE.encoder, VECTORS_FILE.name), ("shifted", "shifted.parquet")):
        with transaction(engine, exclusive=True) as session:
            by = EncoderName(name=encoder, revision="", template="question+choices")
            ingest_vectors(session, read_vectors(folder / name), find_benchmark(session, BENCHMARK).id, BENCHMARK, by)
    return engine


class TestStored:
    def test_a_recorded_filter_is_made_anew_to_the_prompt(self, filled: sa.Engine) -> None:
        chosen = replace(select_scores(), encoder=VECTORS_FILE.encoder)
        made_decisions = run_analysis(filled, "smart-filtering", chosen, {"n_splits": 2, "n_subsets": 2})
        calls = run_analysis(filled, "filter-stability", replace(select_scores(), filter=made_decisions.finding_id), {})
        result = calls.report.finding
        assert result.metrics["n_otherwise"] == 0
        expected = made_decisions.report.finding.metrics["share_removed"]
        assert result.metrics["share_removed.recorded"] == pytest.approx(expected, abs=1e-12)
        assert result.metrics["n_subsets"] == 63
        assert result.filter_models == made_decisions.report.finding.filter_models
        assert result.metrics["overlap.prompts.1.2"] > 0.9
        assert calls.report.tables["encoders"].column("is_recorded").to_pylist()[0]
        with pytest.raises(SelectionError, match="is not a filter"):
            run_analysis(filled, "filter-stability", replace(select_scores(), filter=calls.finding_id), {})
