"""The saved view of an experiment in MLflow: a bar chart of all models, sorted by their means.

MLflow keeps saved views as tags of the experiment. The list of views on its page of runs offers them, and an address
with the key of a view opens it.
"""

from __future__ import annotations

import json
from urllib.parse import urlencode

KEY = "suffrage-means"
TAG = f"mlflow.sharedViewState.{KEY}"
NAME = "Models by mean"

MAX_BARS = 100
"""Number of runs that MLflow loads at first; its button loads more."""
PIXELS_PER_BAR, PIXELS_AROUND, MIN_PIXELS = 20, 120, 360


def build_view(metric: str, n_models: int, *, higher_is_better: bool) -> str:
    """Return the value of the tag.

    Args:
        metric: metric of the experiment that is the mean of a model.
        n_models: number of models, which sets the height of the chart.
        higher_is_better: whether the chart begins with the largest mean.
    """
    height = max(MIN_PIXELS, PIXELS_AROUND + PIXELS_PER_BAR * min(n_models, MAX_BARS))
    section = {"uuid": KEY, "name": NAME, "display": True, "isReordered": True, "deleted": False, "isGenerated": False}
    chart = {"uuid": f"{KEY}-chart", "type": "BAR", "metricKey": metric, "metricSectionId": KEY, "deleted": False,
             "isGenerated": False, "runsCountToCompare": MAX_BARS}  # fmt: skip
    names = (metric, f"{metric}.n", f"{metric}.coverage")
    state = {
        "orderByKey": _column(metric),
        "orderByAsc": not higher_is_better,
        "runsHiddenMode": "SHOW_ALL",  # else the chart has the first ten runs
        "selectedColumns": [_column(name) for name in names],
        "compareRunSections": [{**section, "columns": 1, "cardHeight": height}],
        "compareRunCharts": [chart],
        "isAccordionReordered": True,
    }
    return json.dumps({"name": NAME, "createdAt": 0, "state": json.dumps(state)})


def chart_path(experiment_id: str) -> str:
    """Return the address of the chart within MLflow's interface."""
    query = {"viewStateShareKey": KEY, "compareRunsMode": "CHART", "workflowType": "machine_learning"}
    return f"#/experiments/{experiment_id}/runs?{urlencode(query)}"


def _column(metric: str) -> str:
    return f"metrics.`{metric}`"
