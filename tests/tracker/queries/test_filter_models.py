"""Who filters, and what is said where it cannot be told."""

from __future__ import annotations

import numpy as np
import pytest

from tracker.errors import NotFoundError, SelectionError
from tracker.queries.filtering.filter_models import FilterModels, ModelOrigin
from tracker.queries.performance import PerformanceMatrix

SCORES = PerformanceMatrix(
    Q=np.triu(np.ones((4, 4))),  # model 3 is the best, then 2, 1, 0
    prompt_ids=np.arange(4, dtype=np.int64),
    tasks=np.full(4, ""),
    models=tuple(f"model {j}" for j in range(4)),
    run_ids=np.arange(4, dtype=np.int64),
)
OPEN = ModelOrigin(organization="a", open_weights=True)


def filter_models(**makers: ModelOrigin) -> FilterModels:
    """Makers of models 0 to 3, named m0 to m3; none was named by the user."""
    return FilterModels(selected=(), makers={f"model {name[1:]}": maker for name, maker in makers.items()})


class TestErrors:
    def test_all_models_in_the_method_are_named_at_once(self) -> None:
        with pytest.raises(
            SelectionError,
            match=r"^For model 3, model 1, each one of the best 3, the store does not know its organization\. Import",
        ):
            filter_models(m2=OPEN).choose(SCORES, n_models=3)

    def test_what_is_not_known_of_organizations_and_of_weights_is_reported_together(self) -> None:
        known = filter_models(m2=ModelOrigin(organization="a", open_weights=None))
        with pytest.raises(
            SelectionError,
            match=r"^For model 3, one of the best 2, the store does not know its organization; for model 3, model 2, "
            "each one of the best 2, the store does not know whether its weights are open. Import the facts",
        ):
            known.choose(SCORES, n_models=2, open_only=True)

    def test_too_few_organizations_are_counted(self) -> None:
        with pytest.raises(
            SelectionError,
            match=r"^Too few filter models: 1 model of different organizations with a score for each of 4 prompts",
        ):
            filter_models(m0=OPEN, m1=OPEN, m2=OPEN, m3=OPEN).choose(SCORES, n_models=2)

    def test_a_number_that_no_finding_has_is_met_with_those_there_are(self) -> None:
        assert (
            str(NotFoundError("finding", "99", ["9", "12"]))
            == "No finding '99'. Known: 9, 12. List them with `suffrage findings`."
        )
