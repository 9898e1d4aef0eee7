"""The simulated benchmark: its responses carry what was planted, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tracker.simulation.files import RESULT_FILES
from tracker.simulation.item_response import Design, SimulatedResponses, Simulation, knowledge_probability, simulate

NOTHING = Design(n_easy=0, n_leaked=0, n_groups=0)


@pytest.fixture(scope="module", params=range(4))
def simulation(request: pytest.FixtureRequest) -> Simulation:
    return simulate(seed=request.param)


@pytest.fixture(scope="module", params=range(4))
def unplanted(request: pytest.FixtureRequest) -> Simulation:
    return simulate(NOTHING, seed=request.param)


def best_of_seven_organizations(simulation: Simulation) -> list[int]:
    accuracy = simulation.full.right.mean(axis=0)
    best: dict[str, int] = {}
    for model in np.argsort(-accuracy):
        best.setdefault(simulation.models[model].split("/")[0], int(model))
    return list(best.values())[:7]


def sure_and_right(responses: SimulatedResponses, models: list[int]) -> np.ndarray:
    """Prompts that these models answer rightly with a probability above 0.8."""
    return (responses.right & (responses.gold_probability > 0.8))[:, models].all(axis=1)


class TestLaws:
    @pytest.mark.parametrize("design", [Design(), NOTHING])
    def test_the_same_seed_gives_the_same_bytes(self, design: Design) -> None:
        first, again, different_seed = (simulate(design, seed=seed) for seed in (7, 7, 8))
        for file in RESULT_FILES:
            assert file.write(first) == file.write(again)
            assert file.write(first) != file.write(different_seed)

    def test_more_able_models_are_right_more_often(self, simulation: Simulation) -> None:
        assert stats.spearmanr(simulation.truth.ability, simulation.full.right.mean(axis=0)).statistic > 0.95

    def test_tasks_differ_in_whom_they_favour(self, simulation: Simulation) -> None:
        truth, tasks = simulation.truth, sorted(set(simulation.tasks))
        ordinary = ~truth.easy & ~truth.leaked & (truth.group < 0)
        means = [simulation.full.right[(simulation.tasks == task) & ordinary].mean(axis=0) for task in tasks]
        residual = np.array(means) - np.mean(means, axis=0)
        planted = truth.task_ability - truth.task_ability.mean(axis=0)
        assert np.corrcoef(residual.ravel(), planted.ravel())[0, 1] > 0.6

    def test_probabilities_agree_with_predictions(self, simulation: Simulation) -> None:
        gold = np.array([question.answer for question in simulation.questions])
        for responses in (simulation.full, simulation.answer_only):
            p = responses.gold_probability
            assert np.array_equal(responses.right, responses.predicted == gold[:, None])
            assert ((p >= 0) & (p <= 1)).all()
            assert responses.right[p > 0.5].all()
            assert (p[responses.right] > 0.25).all()

    def test_without_knowledge_a_quarter_is_right(self) -> None:
        hopeless = knowledge_probability(np.array([-50.0, 50.0]), np.zeros(2), np.ones(2))
        np.testing.assert_allclose(hopeless, [0, 1], atol=1e-12)

    def test_difficulty_and_discrimination_show_in_the_responses(self, simulation: Simulation) -> None:
        truth = simulation.truth
        ordinary = ~truth.easy & ~truth.leaked
        rate = simulation.full.right[ordinary].mean(axis=1)
        assert stats.spearmanr(truth.difficulty[ordinary], rate).statistic < -0.7

    def test_the_counts_are_those_of_the_design(self, simulation: Simulation) -> None:
        truth = simulation.truth
        assert len(simulation.keys) == len(set(simulation.keys)) == 1200
        assert (truth.easy.sum(), truth.leaked.sum(), truth.group.max() + 1) == (150, 60, 36)
        assert sorted(set(np.bincount(truth.group[truth.group >= 0]))) == [4, 5, 6]
        assert not (truth.easy & truth.leaked).any()
        assert not ((truth.easy | truth.leaked) & (truth.group >= 0)).any()


class TestPlanted:
    def test_every_model_is_right_and_sure_on_easy_prompts(self, simulation: Simulation) -> None:
        easy = simulation.truth.easy
        assert simulation.full.right[easy].all()
        assert (simulation.full.gold_probability[easy] > 0.8).all()

    def test_the_seven_best_models_find_the_easy_prompts(self, simulation: Simulation) -> None:
        easy = simulation.truth.easy
        for models in (
            best_of_seven_organizations(simulation),
            list(np.argsort(-simulation.full.right.mean(axis=0))[:7]),
        ):
            flagged = sure_and_right(simulation.full, models)
            assert flagged[easy].mean() >= 0.95
            assert easy[flagged].mean() >= 0.95

    def test_leaked_prompts_are_answered_without_the_question(self, simulation: Simulation) -> None:
        truth = simulation.truth
        blind = simulation.answer_only
        assert blind.right[np.ix_(truth.leaked, truth.remembers)].all()
        assert abs(blind.right[np.ix_(truth.leaked, ~truth.remembers)].mean() - 0.25) < 0.12
        assert abs(blind.right[~truth.leaked].mean() - 0.25) < 0.02
        assert truth.remembers.sum() > len(truth.remembers) / 2

    def test_the_seven_best_models_find_the_leaked_prompts(self, simulation: Simulation) -> None:
        leaked = simulation.truth.leaked
        flagged = sure_and_right(simulation.answer_only, best_of_seven_organizations(simulation))
        assert flagged[leaked].mean() >= 0.95
        assert leaked[flagged].mean() >= 0.95

    def test_near_duplicates_get_the_same_answers(self, simulation: Simulation) -> None:
        right, group = simulation.full.right, simulation.truth.group
        agreement = (right[:, None] == right).mean(axis=2)
        inside = (group[:, None] == group) & (group >= 0)[:, None] & ~np.eye(len(group), dtype=bool)
        ordinary = (group >= 0)[:, None] & (group >= 0) & ~inside & ~np.eye(len(group), dtype=bool)
        assert agreement[inside].mean() > agreement[ordinary].mean() + 0.2
        assert agreement[inside].mean() > 0.85

    def test_nothing_is_flagged_where_nothing_was_planted(self, unplanted: Simulation) -> None:
        assert not (unplanted.truth.easy | unplanted.truth.leaked | (unplanted.truth.group >= 0)).any()
        models = best_of_seven_organizations(unplanted)
        assert sure_and_right(unplanted.answer_only, models).mean() <= 0.01
        assert sure_and_right(unplanted.full, models).mean() <= 0.01


class TestErrors:
    def test_a_design_that_does_not_fit_is_refused(self) -> None:
        with pytest.raises(ValueError, match="do not fit into a task of 20"):
            simulate(Design(n_prompts=120))
