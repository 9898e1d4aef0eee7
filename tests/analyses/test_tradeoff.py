"""Diversity against sensitivity of all benchmarks: which findings are shown, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from analyses.tradeoff import analyze
from analyses.tradeoff.method import SocialChoiceFindings
from tracker.errors import SelectionError
from tracker.queries.findings.finding_records import FindingRecord, MetricRecord
from tracker.queries.findings.summary import Summary
from tracker.recording.artifacts import render_figure
from tracker.recording.finding import Report, Undefined
from tracker.recording.record import make_metric_rows

DEFAULTS = {
    "system": "both",
    "columns": "standardised",
    "epsilon": "0.01",
    "top": 0.2,
    "top_models": [],
    "win_rate": "pairwise",
    "time_limit": 30.0,
    "method": "exact",
    "seed": 0,
}
RNG = np.random.default_rng(5)


def finding(
    key: int,
    benchmark: str | None,
    diversity: float = 0.3,
    tau: tuple[float, float] = (0.2, 0.2),
    *,
    systems: tuple[str, ...] = ("cardinal",),
    parameters: Mapping[str, Any] | None = None,
    selection: Mapping[str, Any] | None = None,
    stale: str = "",
    without: str = "",
) -> FindingRecord:
    values = {"n_tasks": 9.0, "n_models": 12.0, "diversity": diversity, "diversity.tie_corrected": diversity / 2}
    for system in systems:
        values |= {f"{system}.tau": tau[0], f"{system}.tau_upper": tau[1]}
        values |= {f"{system}.mrc": tau[0] ** 0.5, f"{system}.mrc_upper": tau[1] ** 0.5}
    numbers = tuple(
        MetricRecord(name=name, value=None if name == without else value, reason="", is_main=True)
        for name, value in values.items()
    )
    return FindingRecord(
        id=key,
        name="social-choice",
        benchmark=benchmark,
        status="complete",
        summary=Summary(""),
        error="",
        main_metrics={},
        warnings=(),
        recorded=datetime(2026, 1, 1, tzinfo=UTC),
        stale=stale,
        parameters=DEFAULTS | dict(parameters or {}),
        selection={"benchmark": benchmark, "condition": "full", "variant": ""} | dict(selection or {}),
        seed=0,
        input_digest="",
        code_version="",
        timings={},
        numbers=numbers,
        artifacts=(),
        run_ids=(),
    )


def simulated(key: int, kind: str, diversity: float, tau: float, **more: Any) -> FindingRecord:
    return finding(key, None, diversity, (tau, tau), parameters={"simulated": kind, "top": 10.0}, selection={}, **more)


def run_tradeoff(*records: FindingRecord, benchmarks: tuple[str, ...] = (), **options: Any) -> Report:
    latest_first = tuple(sorted(records, key=lambda record: -record.id))
    return analyze(SocialChoiceFindings(records=latest_first, benchmarks=benchmarks), **options)


def points(report: Report) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["system"], row["name"]): row for row in report.tables["points"].to_pylist()}


def some(n: int, *, systems: tuple[str, ...] = ("cardinal",)) -> list[FindingRecord]:
    values = RNG.random((n, 2)).tolist()
    return [finding(i + 1, f"benchmark {i}", x, (y, min(1, y + 0.1 * (i % 2))), systems=systems)
            for i, (x, y) in enumerate(values)]  # fmt: skip


class TestWhichFindings:
    def test_of_each_benchmark_the_latest_is_shown_in_each_system(self) -> None:
        report = run_tradeoff(
            finding(1, "a", systems=("cardinal", "ordinal")),
            finding(2, "a", diversity=0.4),
            finding(3, "b", systems=("ordinal",)),
        )
        assert {at: row["finding"] for at, row in points(report).items()} == {
            ("cardinal", "a"): 2,
            ("ordinal", "a"): 1,
            ("ordinal", "b"): 3,
        }

    @pytest.mark.parametrize(
        ("later", "why"),
        [
            ({"stale": "a later run exists of m (run 9)"}, "is stale (a later run exists of m (run 9))"),
            ({"parameters": {"columns": "raw"}}, "was made with --columns raw"),
            ({"parameters": {"epsilon": "auto"}}, "was made with --epsilon auto"),
            ({"parameters": {"method": "paper"}}, "was made with --method paper"),
            ({"selection": {"models": ["m", "n"]}}, "is about a choice of data (models)"),
            ({"selection": {"filter": 12}}, "is about a choice of data (filter)"),
            ({"selection": {"condition": "answer_only"}}, "is about a choice of data (condition or variant)"),
            ({"without": "cardinal.mrc_upper"}, "gives no cardinal.mrc_upper"),
        ],
    )
    def test_an_unsuitable_later_finding_yields_to_an_earlier_one_or_is_reported(
        self, later: dict[str, Any], why: str
    ) -> None:
        unsuited, second = finding(5, "a", **later), finding(6, "b")
        assert points(run_tradeoff(finding(1, "a"), unsuited, second))["cardinal", "a"]["finding"] == 1
        report = run_tradeoff(unsuited, second)
        assert list(points(report)) == [("cardinal", "b")]
        assert report.warnings[0] == f"Excluded from the cardinal points: a (finding 5 {why})."
        assert report.finding.metrics["n_left_out"] == 1

    def test_time_limit_and_metric_do_not_matter_but_are_in_the_table(self) -> None:
        row = points(run_tradeoff(finding(1, "a", parameters={"time_limit": 0.0}, selection={"metric": "accuracy"})))[
            "cardinal", "a"
        ]
        assert (row["metric"], row["time_limit"], row["columns"], row["n_models"]) == (
            "accuracy",
            "0.0",
            "standardised",
            12,
        )

    def test_other_options_can_be_selected(self) -> None:
        records = finding(1, "a"), finding(2, "a", parameters={"columns": "raw"})
        assert points(run_tradeoff(*records, columns="raw"))["cardinal", "a"]["finding"] == 2

    def test_options_of_the_other_system_do_not_matter(self) -> None:
        report = run_tradeoff(finding(1, "a", systems=("cardinal", "ordinal"), parameters={"top": 0.5}))
        assert list(points(report)) == [("cardinal", "a")]

    def test_simulated_findings_never_count_as_those_of_the_benchmark(self) -> None:
        split = finding(9, "a", 0.01, parameters={"simulated": "split into 20 tasks"})
        report = run_tradeoff(finding(1, "a"), split, simulated(2, "constant", 0, 0), simulated(3, "random", 1, 0.7))
        rows = points(report)
        assert rows["cardinal", "a"]["finding"] == 1
        assert [name for _, name in rows] == ["Constant", "Random", "a", "a split into 20 tasks"]
        assert [row["is_simulated"] for row in rows.values()] == [True, True, False, True]
        assert [row["number"] for row in rows.values()] == [2, 3, 1, 4]

    def test_chosen_findings_are_shown_whatever_they_are(self) -> None:
        records = finding(1, "a", stale="old"), finding(2, "a", parameters={"columns": "raw"}), finding(3, "b")
        report = run_tradeoff(*records, finding_ids=(1, 2))
        assert list(points(report)) == [("cardinal", "a #1"), ("cardinal", "a #2")]
        assert any("Stale findings: 1 (old)." in warning for warning in report.warnings)

    def test_names_can_be_left_out(self) -> None:
        assert list(points(run_tradeoff(finding(1, "a"), finding(2, "b"), exclude=("a",)))) == [("cardinal", "b")]

    def test_benchmarks_without_a_finding_are_reported(self) -> None:
        warnings = run_tradeoff(finding(1, "a"), benchmarks=("a", "b")).warnings
        assert "Without a finding: b." in warnings[0]


class TestNumbers:
    def test_another_diversity_can_be_shown(self) -> None:
        row = points(run_tradeoff(finding(1, "a", 0.3), diversity="diversity.tie_corrected"))["cardinal", "a"]
        assert row["diversity"] == 0.15

    def test_correlation_and_line_are_of_the_values_found(self) -> None:
        records = some(8)
        numbers = run_tradeoff(*records).finding.metrics
        x, y = np.array([[r.numbers[2].value, r.numbers[4].value] for r in records]).T
        assert numbers["cardinal.tau.pearson"] == pytest.approx(np.corrcoef(x, y)[0, 1])
        assert numbers["cardinal.tau.slope"] == pytest.approx(np.linalg.lstsq(x[:, None], y, rcond=None)[0][0])
        assert (numbers["cardinal.tau.n"], numbers["cardinal.tau.n_exact"]) == (8, 4)

    def test_the_line_between_the_baselines_has_two_sides(self) -> None:
        report = run_tradeoff(
            simulated(1, "constant", 0, 0),
            simulated(2, "random", 1, 0.8),
            finding(3, "good", 0.5, (0.1, 0.1)),
            finding(4, "bad", 0.5, (0.9, 0.9)),
            finding(5, "unknown", 0.5, (0.1, 0.9)),
        )
        numbers = report.finding.metrics
        assert numbers["cardinal.tau.baselines.slope"] == pytest.approx(0.8)
        assert (numbers["cardinal.tau.n_below"], numbers["cardinal.tau.n_above"]) == (1, 1)
        rows = points(report)
        assert [rows["cardinal", name]["tau_against_baselines"] for name in ("good", "bad", "unknown")] == [
            "below",
            "above",
            "open",
        ]
        assert "Line from Constant to Random: 1 below, 1 above, 1 open." in str(report.summary)

    def test_without_baselines_the_commands_that_make_them_are_named(self) -> None:
        report = run_tradeoff(*some(4))
        reason = "run `suffrage simulate constant` and `suffrage simulate random` first"
        assert report.finding.metrics["cardinal.tau.baselines.slope"] == Undefined(reason)
        assert any(reason in warning for warning in report.warnings)

    @pytest.mark.parametrize("n", [1, 2])
    def test_fewer_than_three_points_have_no_correlation(self, n: int) -> None:
        report = run_tradeoff(*some(n))
        reason = {1: "1 point is too few", 2: "2 points are too few"}[n]
        undefined = Undefined(reason)
        for name in ("pearson", "pearson.low", "spearman", "slope", "pearson.benchmarks"):
            assert report.finding.metrics[f"cardinal.mrc.{name}"] == undefined
        assert report.summary.headline == f"Sensitivity has no correlation with diversity: {reason}."

    def test_all_numbers_are_headlines_and_fit_in_mlflow(self) -> None:
        rows = make_metric_rows(run_tradeoff(*some(3, systems=("cardinal", "ordinal"))).finding)
        assert len(rows) <= 50
        assert all(row.is_main for row in rows)

    def test_the_summary_disclaims_a_test(self) -> None:
        text = str(run_tradeoff(*some(5), simulated(9, "random", 1, 0.7)).summary)
        assert "6 points, 1 simulated" in text
        assert "no number here is a significance test" in text


class TestFigure:
    @pytest.mark.parametrize("form", ["png", "pdf", "svg"])
    def test_it_is_drawn_in_every_format_the_same_each_time(self, form: str) -> None:
        draw = run_tradeoff(*some(3)).figures["tradeoff"]
        assert render_figure(draw, form) == render_figure(draw, form) != b""

    @pytest.mark.parametrize("n", [1, 3, 30])
    def test_each_point_has_its_number_inside_the_axes_and_numbers_do_not_overlap(self, n: int) -> None:
        records = some(n, systems=("cardinal", "ordinal"))
        figure = run_tradeoff(*records, simulated(99, "constant", 0, 0)).figures["tradeoff"]()
        figure.canvas.draw()
        for axes in figure.axes:
            assert axes.get_ylabel()
            labels = [text.get_text() for text in axes.texts]
            assert len(set(labels)) == len(labels) == n + (axes.get_ylabel().startswith("cardinal"))
            boxes = [text.get_window_extent().padded(-2) for text in axes.texts]
            for i, box in enumerate(boxes):
                assert axes.get_window_extent().padded(3).containsx(box.x0)
                assert sum(box.overlaps(second) for second in boxes[i + 1 :]) == 0
        assert figure.axes[1].get_xlabel() or figure.axes[2].get_xlabel()


class TestErrors:
    def test_no_finding_yet_names_the_commands_that_make_some(self) -> None:
        with pytest.raises(SelectionError, match=r"Run `suffrage analyze social-choice BENCHMARK`.*simulate random`"):
            run_tradeoff()

    def test_without_a_suitable_finding_the_error_gives_the_reason(self) -> None:
        with pytest.raises(SelectionError, match=r"suits \(a: finding 1 was made with --columns raw\)"):
            run_tradeoff(finding(1, "a", parameters={"columns": "raw"}))

    def test_an_unknown_finding_or_name_is_refused(self) -> None:
        with pytest.raises(SelectionError, match="Finding 7 is none of social-choice"):
            run_tradeoff(finding(1, "a"), finding_ids=(7,))
        with pytest.raises(SelectionError, match=r"No point is called 'x'\. Choose --exclude from: a."):
            run_tradeoff(finding(1, "a"), exclude=("x",))
