"""What the demonstration plants is what a filter's steps flag, with their defaults, and little else."""

from __future__ import annotations

import numpy as np
import pytest

from analyses.numerics.filtering.similar_prompts.similar_step import SimilarSettings, find_similar
from analyses.numerics.filtering.step_flags import find_confidently_right
from tracker.simulation.item_response import Design, SimulatedResponses, Simulation, simulate

NOTHING = Design(n_easy=0, n_leaked=0, n_groups=0)
N_MODELS = 7
CONFIDENCE = 0.8


@pytest.fixture(scope="module", params=range(4))
def planted(request: pytest.FixtureRequest) -> Simulation:
    return simulate(seed=request.param)


@pytest.fixture(scope="module", params=range(4))
def unplanted(request: pytest.FixtureRequest) -> Simulation:
    return simulate(NOTHING, seed=request.param)


def filter_models(simulation: Simulation) -> list[int]:
    """The best models by mean, each of another organization."""
    best: dict[str, int] = {}
    for model in np.argsort(-simulation.full.right.mean(axis=0)).tolist():
        best.setdefault(simulation.models[model].split("/")[0], model)
    return list(best.values())[:N_MODELS]


def sure(simulation: Simulation, responses: SimulatedResponses) -> np.ndarray:
    """What all filter models get right with confidence."""
    models = filter_models(simulation)
    return find_confidently_right(responses.right[:, models], responses.gold_probability[:, models], CONFIDENCE)


def similar(E: np.ndarray) -> tuple[np.ndarray, str]:
    """What the similar step flags, and why it is refused."""
    result = find_similar(E, [""] * len(E), SimilarSettings(), seed=0)
    return result.flags.flagged, result.reason


def assert_found(flagged: np.ndarray, truth: np.ndarray) -> None:
    assert (flagged & truth).sum() / truth.sum() >= 0.95  # recall
    assert (flagged & truth).sum() / flagged.sum() >= 0.95  # precision


class TestPlanted:
    def test_easy_prompts_are_flagged(self, planted: Simulation) -> None:
        assert_found(sure(planted, planted.full), planted.truth.easy)

    def test_leaked_prompts_are_flagged(self, planted: Simulation) -> None:
        assert_found(sure(planted, planted.answer_only), planted.truth.leaked)

    def test_near_duplicates_are_flagged_by_the_first_maximum_of_the_density(self, planted: Simulation) -> None:
        flagged, reason = similar(planted.meaning)
        assert reason == ""
        assert_found(flagged, planted.truth.group >= 0)

    def test_hardly_anything_is_flagged_as_leaked_where_nothing_was(self, unplanted: Simulation) -> None:
        assert sure(unplanted, unplanted.answer_only).mean() <= 0.01

    def test_hardly_anything_is_flagged_as_similar_where_nothing_is_or_the_step_is_refused(
        self, unplanted: Simulation
    ) -> None:
        flagged, reason = similar(unplanted.meaning)
        assert flagged.mean() <= 0.01
        assert reason == "" or "one group would hold" in reason


def equally_similar(rng: np.random.Generator, *, n_prompts: int = 1200, share: float = 0.95) -> tuple[np.ndarray, int]:
    """Directions at random; the first ones in groups of 2, 3 and 4 that are all equally alike."""
    sizes = [2, 3, 4] * 20
    group = np.r_[np.repeat(np.arange(len(sizes)), sizes), len(sizes) + np.arange(n_prompts - sum(sizes))]
    middle, same = (rng.standard_normal((n, 48)) for n in (group.max() + 1, n_prompts))
    middle, same = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (middle, same))
    return (share**0.5 * middle[group] + (1 - share) ** 0.5 * same).astype(np.float32), sum(sizes)


class TestWeakness:
    @pytest.mark.parametrize("seed", range(4))
    def test_of_small_groups_of_equal_similarity_the_first_maximum_misses_a_part(self, seed: int) -> None:
        """The maximum lies amid their distances, so that those beyond it are missed."""
        E, n_similar = equally_similar(np.random.default_rng(seed))
        flagged, reason = similar(E)
        assert reason == ""
        assert not flagged[n_similar:].any()
        assert 0.5 <= flagged[:n_similar].mean() <= 0.85
