"""The W&B run of a whole study: the comparison as tables and an artifact, and what a search went through."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import write_text
from paribus.core.hashing import digest
from paribus.runs.stages import STUDY, group
from paribus.runs.tracker import About, Tracked
from paribus.sweeps.request import Request
from paribus.sweeps.space import dimension
from paribus.sweeps.sweep import arm_overrides
from paribus.verdict.metrics import lower_is_better

if TYPE_CHECKING:
    from optuna import Study

LOGGED = "tracked.json"  # beside the study's W&B files: what was told last

Fill = Callable[[Any], dict[str, Any]]  # W&B's module -> {key: table or plot}


def track_sweep(request: Request) -> None:
    """Tell W&B how the sweep stands: its table, claims and drawings, and the search of tuned arms.

    Nothing where the sweep logs nowhere, where no run is finished yet, or where W&B knows it all. It never raises for
    W&B's sake.
    """
    from paribus.reporting.tables.assemble import made_of
    from paribus.reporting.tables.files import render

    overrides = arm_overrides(request.sweep, request.scale, request.sweep.baseline, request.overrides)
    logger = build(compose(list(overrides)).logger)
    if not logger.tells:
        return
    try:
        table = made_of(request.sweep, request.scale, request.study, request.roots)
    except UserError as error:
        say(f"no table for W&B yet: {error}")
        return
    named = group(request.named, request.scale)
    about = About(
        id=f"{digest([named, request.sweep.hash(request.scale)], 12)}-{STUDY}",
        name=f"{named} {STUDY}",
        group=named,
        job_type=STUDY,
        tags=(request.named, request.scale, STUDY),
        config={"study": request.named, "scale": request.scale, "sweep_hash": request.sweep.hash(request.scale)},
        folder=request.runs / request.named / f".{request.scale}",
    )
    _tell(logger, about, table, lambda wandb: _sweep_content(wandb, table, request), lambda: render(table))


def track_search(node: Mapping[str, Any], name: str, signature: str, folder: Path, study: Study) -> None:
    """Tell W&B how a search stands: trials, best value, importances and Pareto front; `node`: the logger's config."""
    about = About(
        id=f"{signature}-{digest(name, 6)}-{STUDY}",
        name=f"{name} {STUDY}",
        group=name,
        job_type=STUDY,
        tags=(name[:64], STUDY),
        config={"study": name, "signature": signature, "directions": [one.name.lower() for one in study.directions]},
        folder=folder,
    )
    logger = build(dict(node))
    if not logger.tells:
        return
    trials = [[t.number, t.state.name, t.values, t.params] for t in study.get_trials(deepcopy=False)]
    _tell(logger, about, trials, lambda wandb: search_content(wandb, study))


def _tell(
    logger: Any, about: About, known: Any, fill: Fill, files: Callable[[], Mapping[str, bytes]] | None = None
) -> None:
    """Log what is new since the last time, as one row and an artifact of the files."""
    mark, state = about.folder / LOGGED, digest(known, 32)
    if mark.is_file() and json.loads(mark.read_text(encoding="utf-8"))["state"] == state:
        return
    tracked: Tracked | None = logger.open(about)
    if tracked is None:
        return
    import wandb

    tracked.do(lambda run: run.log(fill(wandb)))
    if files is not None:
        made = files()
        tracked.do(lambda run: run.log_artifact(_artifact(wandb, about, made)))
    whole = tracked.alive
    tracked.close("done")
    if whole:
        write_text(mark, json.dumps({"state": state, "id": about.id}) + "\n")


def _artifact(wandb: Any, about: About, files: Mapping[str, bytes]) -> Any:
    artifact = wandb.Artifact(about.group, type="table", metadata=dict(about.config))
    for name, content in files.items():
        with artifact.new_file(name, mode="wb") as file:
            file.write(content)
    return artifact


def _sweep_content(wandb: Any, table: Mapping[str, Any], request: Request) -> dict[str, Any]:
    from paribus.reporting.plots.png import png
    from paribus.reporting.tables.files import drawings

    content = {f"drawings/{name}": _image(wandb, png(scene)) for name, scene in drawings(dict(table)).items()}
    content |= {
        "comparison": wandb.Table(columns=[*_CELL], data=[[row[key] for key in _CELL] for row in cells(table)]),
        "claims": wandb.Table(
            columns=["claim", "verdict", "said"],
            data=[[claim["text"], claim["verdict"], claim["said"]] for claim in table["claims"]],
        ),
    }
    for arm, study in tuned_studies(table.get("tuning", {})).items():
        content |= {f"tune/{arm}/{name}": part for name, part in search_content(wandb, study).items()}
    return content


_CELL = ("arm", "column", "n", "mean", "sd", "ci_low", "ci_high", "difference", "p", "published")


def cells(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The comparison as rows: an arm and column each, beside the baseline and the paper."""
    rows = []
    beside = table["paper"].get("beside", {})
    for arm in table["arms"]:
        for column, cell in arm["metrics"].items():
            versus = arm["versus_baseline"].get(column, {})
            paper = arm["published"].get(beside.get(column), {})
            own = {"arm": arm["name"], "column": column, "n": len(cell["values"]), "published": paper.get("value")}
            rows.append({**dict.fromkeys(_CELL), **cell, **{k: versus.get(k) for k in ("difference", "p")}, **own})
    return rows


def _image(wandb: Any, data: bytes) -> Any:
    from PIL import Image

    return wandb.Image(Image.open(io.BytesIO(data)))


def tuned_studies(tuning: Mapping[str, Any]) -> dict[str, Study]:
    """The search of each tuned arm as a study of Optuna."""
    import optuna
    from optuna.trial import TrialState, create_trial

    if not tuning:
        return {}
    spec = tuning["spec"]
    space = {key: dimension(key, text).distribution() for key, text in spec["space"].items()}
    studies = {}
    for arm, found in tuning["arms"].items():
        study = optuna.create_study(direction="minimize" if lower_is_better(spec["on"]) else "maximize")
        for entry in found["trials"]:
            failed = entry["value"] is None
            parameters = {key: _internal(space[key], text) for key, text in entry["values"].items()}
            state = TrialState.FAIL if failed else TrialState.COMPLETE
            study.add_trial(create_trial(state=state, value=entry["value"], params=parameters, distributions=space))
        studies[arm] = study
    return studies


def _internal(distribution: Any, text: str) -> Any:
    """The value that a distribution knows by its text."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        return next(choice for choice in distribution.choices if str(choice) == text)
    return int(text) if isinstance(distribution, IntDistribution) else float(text)


def search_content(wandb: Any, study: Study) -> dict[str, Any]:
    """Tables and plots of a search: `trials`, `history`, `importances`, and of several objectives `pareto`."""
    trials = sorted(study.get_trials(deepcopy=False), key=lambda trial: trial.number)
    names = sorted({name for trial in trials for name in trial.params})
    objectives = [f"value{at}" if at else "value" for at in range(len(study.directions))]
    rows = [
        [t.number, t.state.name, *(t.values or [None] * len(objectives)), *(_shown(t.params.get(n)) for n in names)]
        for t in trials
    ]
    content = {"trials": wandb.Table(columns=["trial", "state", *objectives, *names], data=rows)}
    content |= _history(wandb, study) if len(objectives) == 1 else _pareto(wandb, study)
    for at, objective in enumerate(objectives):
        if ranked := importances(study, at):
            table = wandb.Table(columns=["parameter", "importance"], data=[list(pair) for pair in ranked.items()])
            title = f"Importance for {objective}"
            content[f"importances/{objective}"] = wandb.plot.bar(table, "parameter", "importance", title=title)
    return content


def _shown(value: Any) -> Any:
    return value if value is None or isinstance(value, int | float) else str(value)


def _complete(study: Study) -> list[Any]:
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))


def history(study: Study) -> list[tuple[int, float, float]]:
    """(trial, its value, the best so far) of the trials that ended with one."""
    better = min if study.directions[0].name == "MINIMIZE" else max
    rows: list[tuple[int, float, float]] = []
    for trial in sorted(_complete(study), key=lambda trial: trial.number):
        value = float(trial.values[0])
        rows.append((trial.number, value, better(value, rows[-1][2]) if rows else value))
    return rows


def _history(wandb: Any, study: Study) -> dict[str, Any]:
    table = wandb.Table(columns=["trial", "value", "best"], data=[list(row) for row in history(study)])
    return {"history": wandb.plot.line(table, "trial", "best", title="Best value so far")}


def pareto(study: Study) -> list[tuple[int, float, float, bool]]:
    """(trial, first and second value, whether no other trial is better in all objectives)."""
    front = {trial.number for trial in study.best_trials}
    return [(trial.number, *map(float, trial.values[:2]), trial.number in front) for trial in _complete(study)]


def _pareto(wandb: Any, study: Study) -> dict[str, Any]:
    columns = ["trial", "value", "value1", "front"]
    points = pareto(study)
    front = wandb.Table(columns=columns, data=[list(point) for point in points if point[3]])
    return {
        "pareto_trials": wandb.Table(columns=columns, data=[list(point) for point in points]),
        "pareto": wandb.plot.scatter(front, "value", "value1", title="Pareto front"),
    }


def importances(study: Study, objective: int = 0) -> dict[str, float]:
    """{parameter: its share of the variance of an objective}; empty where too few trials tell."""
    import optuna

    trials = _complete(study)
    if len(trials) < 2 or len({trial.values[objective] for trial in trials}) < 2:
        return {}
    try:
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        found = optuna.importance.get_param_importances(
            study, evaluator=evaluator, target=lambda trial: float(trial.values[objective])
        )
    except (ValueError, RuntimeError):  # no parameter that all trials share
        return {}
    return {name: float(share) for name, share in found.items()}
