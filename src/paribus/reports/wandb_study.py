"""The W&B run of a whole study: the comparison as tables and an artifact, and the history of a search."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from paribus.core.build import build
from paribus.core.checksums import digest
from paribus.core.config import compose
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import write_text
from paribus.core.jsonable import to_json
from paribus.reports.tables.schema import Table
from paribus.runs.wandb_tracker import STUDY, Logger, Tracked, WandbInit, group_of
from paribus.sweeps.request import Request
from paribus.sweeps.search.space import dimension
from paribus.sweeps.sweep import arm_overrides
from paribus.verdict.metrics import lower_is_better

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution

LOGGED = "tracked.json"  # beside the study's W&B files: what was logged last
_CELL = ("arm", "column", "n", "mean", "sd", "ci_low", "ci_high", "difference", "p", "published")

Fill = Callable[[ModuleType], dict[str, Any]]  # W&B's module -> {key: table or plot}


def track_sweep(request: Request) -> None:
    """Log the state of a sweep to W&B: its table, claims and drawings, and the search of tuned arms.

    Nothing is logged if the sweep has no logger, no run is finished yet, or nothing is new. A failure of W&B never
    raises.
    """
    from paribus.reports.tables.build import make_table
    from paribus.reports.tables.files import render_files

    overrides = arm_overrides(request.sweep, request.scale, request.sweep.baseline, request.overrides)
    if (logger := _find_logger(compose(list(overrides)).logger)) is None:
        return
    try:
        table = make_table(request.sweep, request.scale, request.study, request.roots)
    except UserError as error:
        say(f"no table for W&B yet: {error}")
        return
    named = group_of(request.study_name, request.scale)
    about = WandbInit(
        id=f"{digest([named, request.sweep.hash(request.scale)], 12)}-{STUDY}",
        name=f"{named} {STUDY}",
        group=named,
        job_type=STUDY,
        tags=(request.study_name, request.scale, STUDY),
        config={"study": request.study_name, "scale": request.scale, "sweep_hash": request.sweep.hash(request.scale)},
        folder=request.runs / request.study_name / f".{request.scale}",
    )
    _log_new(logger, about, to_json(table), lambda wandb: _fill_sweep(wandb, table), lambda: render_files(table))


def track_search(node: Mapping[str, Any], name: str, signature: str, folder: Path, study: Study) -> None:
    """Log a search to W&B: trials, best value, importances and Pareto front; `node`: the logger's config."""
    about = WandbInit(
        id=f"{signature}-{digest(name, 6)}-{STUDY}",
        name=f"{name} {STUDY}",
        group=name,
        job_type=STUDY,
        tags=(name[:64], STUDY),
        config={"study": name, "signature": signature, "directions": [one.name.lower() for one in study.directions]},
        folder=folder,
    )
    if (logger := _find_logger(dict(node))) is None:
        return
    trials = [[t.number, t.state.name, t.values, t.params] for t in study.get_trials(deepcopy=False)]
    _log_new(logger, about, trials, lambda wandb: fill_search(wandb, study))


def _find_logger(node: Mapping[str, Any]) -> Logger | None:
    """The logger of a config; None for one that tells nobody."""
    logger: Logger = build(node)
    return logger if logger.tells else None


def _log_new(
    logger: Logger, about: WandbInit, known: object, fill: Fill, files: Callable[[], Mapping[str, bytes]] | None = None
) -> None:
    """Log one row and an artifact of the files, unless nothing is new since the last time."""
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
        tracked.do(lambda run: run.log_artifact(_make_artifact(wandb, about, made)))
    whole = tracked.alive
    tracked.close("done")
    if whole:
        write_text(mark, json.dumps({"state": state, "id": about.id}) + "\n")


def _make_artifact(wandb: ModuleType, about: WandbInit, files: Mapping[str, bytes]) -> Any:
    artifact = wandb.Artifact(about.group, type="table", metadata=dict(about.config))
    for name, content in files.items():
        with artifact.new_file(name, mode="wb") as file:
            file.write(content)
    return artifact


def _fill_sweep(wandb: ModuleType, table: Table) -> dict[str, Any]:
    from PIL import Image

    from paribus.reports.plots.figure import render_png
    from paribus.reports.tables.files import draw_pictures

    content: dict[str, Any] = {}
    for name, figure in draw_pictures(table).items():
        content[f"drawings/{name}"] = wandb.Image(Image.open(io.BytesIO(render_png(figure))))
    content |= {
        "comparison": wandb.Table(columns=[*_CELL], data=[[row[key] for key in _CELL] for row in list_cells(table)]),
        "claims": wandb.Table(
            columns=["claim", "verdict", "said", "says", "whose"],
            data=[[claim.text, claim.verdict, claim.said, claim.says, claim.whose] for claim in table.claims],
        ),
    }
    for arm, study in make_tuned_studies(table.tuning).items():
        content |= {f"tune/{arm}/{name}": part for name, part in fill_search(wandb, study).items()}
    return content


def list_cells(table: Table) -> list[dict[str, Any]]:
    """The comparison as rows: one per arm and column, beside the baseline and the paper."""
    rows = []
    for arm in table.arms:
        for column, cell in arm.metrics.items():
            versus, paper = arm.versus_baseline.get(column), arm.published.get(table.beside.get(column, ""))
            rows.append({
                "arm": arm.name, "column": column, "n": len(cell.values), "mean": cell.mean, "sd": cell.sd,
                "ci_low": cell.ci_low, "ci_high": cell.ci_high, "difference": versus and versus.difference,
                "p": versus and versus.p, "published": paper and paper.value,
            })  # fmt: skip
    return rows


def make_tuned_studies(tuning: Mapping[str, Any]) -> dict[str, Study]:
    """The search of each tuned arm as a study of Optuna."""
    import optuna
    from optuna.trial import TrialState, create_trial

    if not tuning:
        return {}
    spec = tuning["spec"]
    space = {key: dimension(key, text).distribution() for key, text in spec["space"].items()}
    studies = {}
    for arm, search in tuning["arms"].items():
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(direction="minimize" if lower_is_better(spec["on"]) else "maximize")
        for entry in search["trials"]:
            failed = entry["value"] is None
            parameters = {key: _parse_value(space[key], text) for key, text in entry["values"].items()}
            state = TrialState.FAIL if failed else TrialState.COMPLETE
            study.add_trial(create_trial(state=state, value=entry["value"], params=parameters, distributions=space))
        studies[arm] = study
    return studies


def _parse_value(distribution: BaseDistribution, text: str) -> Any:
    """The value of a distribution that has this text."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        return next(choice for choice in distribution.choices if str(choice) == text)
    return int(text) if isinstance(distribution, IntDistribution) else float(text)


def fill_search(wandb: ModuleType, study: Study) -> dict[str, Any]:
    """Tables and plots of a search: `trials`, `history`, `importances`, and of several objectives `pareto`."""
    from paribus.sweeps.search.status import list_history, list_pareto, rank_importances

    trials = sorted(study.get_trials(deepcopy=False), key=lambda trial: trial.number)
    names = sorted({name for trial in trials for name in trial.params})
    objectives = [f"value{at}" if at else "value" for at in range(len(study.directions))]
    rows = [
        [t.number, t.state.name, *(t.values or [None] * len(objectives)), *(_show(t.params.get(n)) for n in names)]
        for t in trials
    ]
    content = {"trials": wandb.Table(columns=["trial", "state", *objectives, *names], data=rows)}
    if len(objectives) == 1:
        table = wandb.Table(columns=["trial", "value", "best"], data=[list(row) for row in list_history(study)])
        content["history"] = wandb.plot.line(table, "trial", "best", title="Best value so far")
    else:
        columns = ["trial", "value", "value1", "front"]
        points = list_pareto(study)
        front = wandb.Table(columns=columns, data=[list(point) for point in points if point[3]])
        content |= {
            "pareto_trials": wandb.Table(columns=columns, data=[list(point) for point in points]),
            "pareto": wandb.plot.scatter(front, "value", "value1", title="Pareto front"),
        }
    for at, objective in enumerate(objectives):
        if ranked := rank_importances(study, at):
            table = wandb.Table(columns=["parameter", "importance"], data=[list(pair) for pair in ranked.items()])
            title = f"Importance for {objective}"
            content[f"importances/{objective}"] = wandb.plot.bar(table, "parameter", "importance", title=title)
    return content


def _show(value: object) -> object:
    return value if value is None or isinstance(value, int | float) else str(value)
