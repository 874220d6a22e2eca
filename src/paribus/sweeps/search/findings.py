"""What a search has found: its best trials, which parameters matter, the best value so far, and the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial


def describe_best(study: Study, names: Sequence[str]) -> list[str]:
    """A line with values and overrides: the best trial, or the Pareto front in the order of its first objective."""
    if not list_complete(study):
        return []
    if len(study.directions) == 1:
        best, lines, head = [study.best_trial], list[str](), "best:"
    else:
        best = sorted(study.best_trials, key=lambda trial: trial.values)
        lines, head = [f"Pareto front of {' and '.join(names) or 'the objectives'}:"], " "
    for trial in best:
        pairs = zip(names or [""] * len(trial.values), trial.values, strict=True)
        values = ", ".join(f"{name} {value:.6g}".strip() for name, value in pairs)
        lines.append(f"{head} trial {trial.number}: {values}  {' '.join(trial.user_attrs['overrides'])}")
    return lines


def describe_importances(study: Study, names: Sequence[str]) -> list[str]:
    """A line for each objective, such as `importance for mlm_loss: optimizer.lr 82%, masking.rate 18%`."""
    ranked = {name: rank_importances(study, at) for at, name in enumerate(name_objectives(study, names))}
    return [
        f"importance for {name}: {', '.join(f'{key} {share:.0%}' for key, share in shares.items())}"
        for name, shares in ranked.items()
        if shares
    ]


def name_objectives(study: Study, names: Sequence[str]) -> Sequence[str]:
    """The names of a study's objectives; `value`, `value 2`, ... if they have none."""
    return names or ["value", *(f"value {at}" for at in range(2, len(study.directions) + 1))]


def rank_importances(study: Study, objective: int = 0) -> dict[str, float]:
    """{parameter: its share of the variance of an objective}; empty if there are too few trials."""
    import optuna

    trials = list_complete(study)
    if len(trials) < 2 or len({trial.values[objective] for trial in trials}) < 2:
        return {}
    try:
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        importances = optuna.importance.get_param_importances(
            study, evaluator=evaluator, target=lambda trial: float(trial.values[objective])
        )
    except (ValueError, RuntimeError):  # no parameter that all trials share
        return {}
    return {name: float(share) for name, share in importances.items()}


def list_complete(study: Study) -> list[FrozenTrial]:
    """The trials that ended with values."""
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))


def list_history(study: Study) -> list[tuple[int, float, float]]:
    """(trial, its value, the best so far) of the trials that ended with one."""
    better = min if study.directions[0].name == "MINIMIZE" else max
    rows: list[tuple[int, float, float]] = []
    for trial in sorted(list_complete(study), key=lambda trial: trial.number):
        value = float(trial.values[0])
        rows.append((trial.number, value, better(value, rows[-1][2]) if rows else value))
    return rows


def list_pareto(study: Study) -> list[tuple[int, float, float, bool]]:
    """(trial, first and second value, whether no other trial is better in all objectives)."""
    front = {trial.number for trial in study.best_trials}
    points = [(trial.number, float(trial.values[0]), float(trial.values[1])) for trial in list_complete(study)]
    return [(*point, point[0] in front) for point in points]
