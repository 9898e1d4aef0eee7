"""Options of analyses as tests of every analysis choose them."""

from __future__ import annotations

from collections.abc import Mapping

CHEAP: Mapping[str, object] = {
    "n_permutations": 19,
    "n_orders": 5,
    "n_draws": 200,
    "n_subsets": 20,
    "n_splits": 4,
    "n_samples": 20,
    "n_restarts": 2,
    "n_seeds": 2,
    "n_models": 3,
    "max_clusters": 4,
    "max_size": 2,
    "epsilons": ("0.1",),
    "n_resamples": 99,
    "time_limit": 3600.0,
    "allow_unknown": True,
}
"""Options that make analyses cheap, and that let no search run out of time on a busy machine."""
SCORES_ONLY: Mapping[str, object] = CHEAP | {"without_confidence": True, "without_similar": True}
"""The same where scores are all there is."""
