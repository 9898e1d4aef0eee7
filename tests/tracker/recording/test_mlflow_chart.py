"""MLflow's saved view of an experiment, and the links of its descriptions."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa
from mlflow import MlflowClient

from tracker.recording.mlflow import chart_view
from tracker.recording.mlflow.page_links import add_links
from tracker.recording.mlflow.publishing import publish_missing
from tracker.recording.mlflow.run_spec import MAX_TAG_LENGTH

EXPERIMENT = "suffrage/runs/arithmetic"


def read_state(view: str) -> dict[str, Any]:
    return dict(json.loads(json.loads(view)["state"]))


class TestView:
    @pytest.mark.parametrize("higher_is_better", [True, False])
    def test_it_begins_with_the_best_model(self, higher_is_better: bool) -> None:
        state = read_state(chart_view.build_view("error rate", 3, higher_is_better=higher_is_better))
        assert state["orderByKey"] == "metrics.`error rate`"
        assert state["orderByAsc"] is not higher_is_better

    def test_its_height_follows_the_models_that_mlflow_loads_at_first(self) -> None:
        heights = []
        for n_models in (1, 48, 100, 1000):
            state = read_state(chart_view.build_view("m", n_models, higher_is_better=True))
            heights.append(state["compareRunSections"][0]["cardHeight"])
        assert heights == [360, 1080, 2120, 2120]


class TestPublished:
    def test_the_experiment_has_its_view_and_descriptions_link_to_the_chart_and_to_the_pages_of_serve(
        self, filled_file: sa.Engine, tracking_uri: str
    ) -> None:
        publish_missing(filled_file, tracking_uri)
        client = MlflowClient(tracking_uri)
        experiment = client.get_experiment_by_name(EXPERIMENT)
        assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"
        assert experiment.tags[chart_view.TAG] == chart_view.build_view(
            "accuracy of arithmetic", 5, higher_is_better=True
        )
        chart = f"[All models by mean]({chart_view.chart_path(experiment.experiment_id)})"
        text = experiment.tags["mlflow.note.content"]
        assert text.startswith(
            f"{chart} · [Benchmark in `suffrage serve`](http://127.0.0.1:8000/benchmark/1) Models on "
        )
        run = client.search_runs([experiment.experiment_id], "tags.`suffrage.run_id` = '2'")[0]
        links = f"\n\n[Run 2 in `suffrage serve`](http://127.0.0.1:8000/run/2) · {chart}"
        assert run.data.tags["mlflow.note.content"].endswith(links)

    @pytest.mark.parametrize(("server", "link"), [("https://r.example/", "https://r.example/run/1"), ("", "")])
    def test_the_server_of_the_pages_is_a_setting(
        self, server: str, link: str, filled_file: sa.Engine, tracking_uri: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SUFFRAGE_SERVE_URL", server)
        publish_missing(filled_file, tracking_uri)
        client = MlflowClient(tracking_uri)
        key = client.get_experiment_by_name(EXPERIMENT).experiment_id
        text = client.search_runs([key], "tags.`suffrage.run_id` = '1'")[0].data.tags["mlflow.note.content"]
        assert ("`suffrage serve`" in text) == bool(link)
        assert f"({link})" in text if link else "All models by mean" in text


def test_links_follow_a_description_of_any_length() -> None:
    text = add_links("long " * MAX_TAG_LENGTH, [("here", "http://127.0.0.1:8000"), ("nowhere", "")])
    assert len(text) == MAX_TAG_LENGTH
    assert text.endswith("\n\n[here](http://127.0.0.1:8000)")
