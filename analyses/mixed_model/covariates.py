"""Covariates of the scores: which can be used, how they are coded, and tests of their coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from analyses.numerics.mixed.fit import MixedFit
from analyses.numerics.mixed.model_covariates import can_regress, regress_model_effects
from analyses.numerics.mixed.prompt_covariates import measure_prompt_spread
from tracker.queries.catalogue.covariates import Covariates
from tracker.queries.performance import PerformanceMatrix
from tracker.statistics.multiple_testing import holm_values

FEW_SHOT, LENGTH, FAMILY = "few_shot", "prompt_length", "family"
SEPARATES = "it separates the scores of 0 from those of 1, so its coefficient is infinite"
UNITS: Mapping[str, str] = {FEW_SHOT: "one more few-shot example", LENGTH: "a question twice as long"}
"""What a coefficient is the effect of."""


@dataclass(frozen=True, kw_only=True)
class CodedCovariates:
    """Covariates with mean 0 and standard deviation 1, and families as numbers.

    Attributes:
        few_shot: ``(k,)``; None if it is not used.
        length: ``(n,)``; None if it is not used.
        families: ``(k,)`` number of each model's family; None if they are not used.
        family_names: of the families.
        spreads: standard deviation that each covariate was divided by.
        excluded: why a covariate is not used.
    """

    few_shot: NDArray[np.float64] | None
    length: NDArray[np.float64] | None
    families: NDArray[np.int64] | None
    family_names: tuple[str, ...]
    spreads: Mapping[str, float]
    excluded: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """Covariates with a coefficient, in the order of the fixed effects after the intercept."""
        coded = {FEW_SHOT: self.few_shot, LENGTH: self.length}
        return tuple(name for name, values in coded.items() if values is not None)

    def without(self, name: str, reason: str) -> CodedCovariates:
        """Return the covariates without one of those with a coefficient."""
        dropped = replace(self, excluded={**self.excluded, name: reason})
        return replace(dropped, few_shot=None) if name == FEW_SHOT else replace(dropped, length=None)


@dataclass(frozen=True, kw_only=True)
class CovariateTest:
    """The coefficient of a covariate with its test.

    Attributes:
        name: of the covariate.
        unit: what the estimate is the effect of.
        estimate: coefficient; for ``family`` the standard deviation between families.
        stderr: of the coefficient; NaN for ``family``.
        degrees: degrees of freedom; NaN for ``family``.
        pvalue: two-sided, by Student's t; for ``family`` the likelihood ratio of a variance of 0.
        holm: adjusted for all covariates.
    """

    name: str
    unit: str
    estimate: float
    stderr: float
    degrees: float
    pvalue: float
    holm: float


def code_covariates(scores: PerformanceMatrix, covariates: Covariates | None) -> CodedCovariates:
    """Choose the covariates that are stored for every model, or every prompt, and that differ.

    Args:
        scores: of the models that have scores.
        covariates: as stored; None uses none.
    """
    if covariates is None:
        off = dict.fromkeys((FEW_SHOT, LENGTH, FAMILY), "covariates are disabled")
        return CodedCovariates(few_shot=None, length=None, families=None, family_names=(), spreads={}, excluded=off)
    runs = covariates.rows_of_runs(scores.run_ids)
    few_shot, lengths = covariates.few_shot[runs], covariates.lengths[covariates.rows_of_prompts(scores.prompt_ids)]
    excluded = {
        FEW_SHOT: _find_problem(few_shot, "model") or _too_few(len(runs)),
        LENGTH: _find_problem(lengths, "prompt"),
    }
    coded, spreads = {}, {}
    for name, values in ((FEW_SHOT, few_shot), (LENGTH, np.log2(np.maximum(lengths, 1.0)))):
        if not excluded[name]:
            spreads[name] = float(values.std())
            coded[name] = (values - values.mean()) / spreads[name]
    names = covariates.families[runs]
    is_named = names != ""
    known = [name for name in dict.fromkeys(names.tolist()) if name]
    keys = np.where(is_named, names, [f"\0{column}" for column in range(len(names))])
    labels, families = np.unique(keys, return_inverse=True)
    has_families = len(known) > 0 and 1 < len(labels) < len(names)
    if not has_families:
        excluded[FAMILY] = "no family with two models is stored" if known or not len(names) else "no family is stored"
        if len(known) == 1 and is_named.all():
            excluded[FAMILY] = "all models are of one family"
    if FEW_SHOT in coded and has_families and not can_regress(coded[FEW_SHOT], families):
        del coded[FEW_SHOT]
        excluded[FEW_SHOT] = "its effect cannot be separated from that of the families"
    return CodedCovariates(
        few_shot=coded.get(FEW_SHOT),
        length=coded.get(LENGTH),
        families=families.astype(np.int64) if has_families else None,
        family_names=tuple(str(label) for label in labels) if has_families else (),
        spreads=spreads,
        excluded={name: reason for name, reason in excluded.items() if reason},
    )


def drop_separating(coded: CodedCovariates, Q: NDArray[np.float64]) -> CodedCovariates:
    """Return the covariates without those that separate scores of 0 from scores of 1: their coefficient is infinite.

    Args:
        coded: covariates.
        Q: ``(n, k)`` scores of 0 and 1; NaN = missing.
    """
    shapes = {FEW_SHOT: (1, -1), LENGTH: (-1, 1)}
    for name, values in ((FEW_SHOT, coded.few_shot), (LENGTH, coded.length)):
        if values is None:
            continue
        cells = np.broadcast_to(values.reshape(shapes[name]), Q.shape)
        zeros, ones = cells[Q == 0], cells[Q == 1]
        if zeros.max() <= ones.min() or ones.max() <= zeros.min():
            coded = coded.without(name, SEPARATES)
    return coded


def _find_problem(values: NDArray[np.float64], unit: str) -> str:
    """Return why a covariate cannot be used; '' if it can."""
    n_unknown = int(np.isnan(values).sum())
    if n_unknown == len(values):
        return f"it is stored for no {unit}"
    if n_unknown:
        return f"it is unknown for {n_unknown:,} of {len(values):,} {unit}s"
    return f"it is equal for all {unit}s" if values.min() == values.max() else ""


def _too_few(n_models: int) -> str:
    return "it needs 3 models" if n_models < 3 else ""


def check_covariates(fit: MixedFit, coded: CodedCovariates, without_family: float | None) -> tuple[CovariateTest, ...]:
    """Return the tests of the coefficients, and of the variance between families.

    Args:
        fit: the fitted model.
        coded: its covariates.
        without_family: log-likelihood of the same model without families; None if it has none.
    """
    rows = []
    estimates, errors, degrees = fit.fixed, fit.fixed_error, fit.fixed_degrees
    if coded.few_shot is not None:
        of_models = regress_model_effects(fit)
        estimates[1], errors[1], degrees[1] = of_models.estimate, of_models.stderr, of_models.degrees
    spread_of_prompts = measure_prompt_spread(fit) if fit.response == "logistic" else None
    if coded.length is not None and spread_of_prompts is not None:
        errors[-1] *= spread_of_prompts.ratio
        degrees[-1] = spread_of_prompts.degrees
    for place, name in enumerate(coded.names, 1):
        pvalue = _test(estimates[place], errors[place], degrees[place])
        spread = coded.spreads[name]
        rows.append((name, UNITS[name], estimates[place] / spread, errors[place] / spread, degrees[place], pvalue))
    if without_family is not None:
        ratio = max(2 * (fit.log_likelihood - without_family), 0.0)
        pvalue = 0.5 * float(special.chdtrc(1, ratio)) if ratio > 0 else 1.0
        rows.append((FAMILY, "standard deviation between families", fit.sd[1], np.nan, np.nan, pvalue))
    holm = holm_values(np.array([row[-1] for row in rows]))
    return tuple(
        CovariateTest(
            name=name,
            unit=unit,
            estimate=float(estimate),
            stderr=float(stderr),
            degrees=float(df),
            pvalue=float(pvalue),
            holm=float(adjusted),
        )
        for (name, unit, estimate, stderr, df, pvalue), adjusted in zip(rows, holm, strict=True)
    )


def _test(estimate: float, stderr: float, degrees: float) -> float:
    """Return the two-sided p-value of a coefficient; 1 if it has no error."""
    return 2 * float(special.stdtr(max(degrees, 1.0), -abs(estimate) / stderr)) if stderr > 0 else 1.0
