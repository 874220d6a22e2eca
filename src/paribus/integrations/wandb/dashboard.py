"""A W&B workspace and a W&B report for a sweep, as code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import write_json
from paribus.runs.store import trial_study
from paribus.runs.wandb_tracker import FINETUNE, PRETRAIN, STEP, STUDY, group_of
from paribus.sweeps.sweep import Sweep
from paribus.verdict.claims import OWNERS
from paribus.verdict.metrics import is_task, lower_is_better

_HIGHEST = "a higher value is better"
_LOWEST = "a lower value is better"


class Board(NamedTuple):
    """What a dashboard shows. If `entity` is empty, saving uses the user's default entity."""

    sweep: Sweep
    scale: str
    study: str
    project: str = "paribus"
    entity: str = ""

    @property
    def group(self) -> str:
        return group_of(self.study, self.scale)

    @property
    def title(self) -> str:
        return f"{self.study} at {self.scale} scale"

    @property
    def curves(self) -> list[str]:
        """The columns that are curves over pre-training."""
        return [column for column in self.sweep.columns if not is_task(column)]


def write_dashboard(board: Board, out: Path) -> None:
    """Write workspace and report as JSON. Raises UserError if wandb-workspaces is not installed."""
    try:
        import wandb_workspaces  # noqa: F401
    except ImportError as error:
        raise UserError("wandb-workspaces is not installed", "pip install 'paribus[dashboards]'") from error
    made = {"workspace": workspace(board), "report": report(board)}
    for name, one in made.items():
        write_json(out / f"wandb_{name}.json", written(one))
    say(f"written to {out}: {', '.join(f'wandb_{name}.json' for name in made)}")


def save_dashboard(board: Board) -> list[str]:
    """Save both to W&B; returns their addresses. Raises UserError if W&B refuses or cannot be reached."""
    import wandb

    try:
        named = board if board.entity else board._replace(entity=str(wandb.Api().default_entity))
        return [str(one.save().url) for one in (workspace(named), report(named))]
    except Exception as error:  # the client raises its own kinds of error, and those of its transport
        raise UserError(
            f"W&B cannot save the dashboard ({' '.join(str(error).split())[:200]})",
            "check `wandb login`, entity= and project=",
        ) from error


def written(one: Any) -> dict[str, Any]:
    """The content to save, as plain data; this validates it without a server."""
    content: dict[str, Any] = json.loads(one._to_model().model_dump_json(by_alias=True, exclude_none=True))
    return content


def workspace(board: Board) -> Any:
    """Curves, results and the study's tables of one sweep; runs grouped by arm."""
    import wandb_workspaces.reports.v2 as wr
    import wandb_workspaces.workspaces as ws

    sections = [
        ws.Section(name="Learning curves", panels=_curves(board), is_open=True),
        ws.Section(name="Columns of the table", panels=_bars(board), is_open=True),
        ws.Section(name="Comparison", panels=[wr.MediaBrowser(media_keys=["comparison", "claims"])], is_open=False),
    ]
    groups = [board.group]
    if (tune := board.sweep.tune_at(board.scale)) is not None:  # the trials of tuned arms: settings and values
        metrics = [*map(wr.Config, tune.space), wr.SummaryMetric(tune.on)]
        trials = [wr.ParallelCoordinatesPlotColumn(metric=metric) for metric in metrics]
        plot = wr.ParallelCoordinatesPlot(title="Trials of the search", columns=trials)
        sections.append(ws.Section(name="Search of the arms", panels=[plot], is_open=False))
        groups.append(group_of(trial_study(board.study), board.scale))
    return ws.Workspace(
        entity=board.entity,
        project=board.project,
        name=board.title,
        sections=sections,
        settings=ws.WorkspaceSettings(x_axis=STEP),
        runset_settings=ws.RunsetSettings(
            filters=[ws.Metric("Group").isin(groups)],
            groupby=[ws.Config("arm")],
            pinned_columns=[f"summary:{column}" for column in board.sweep.columns],
        ),
    )


def report(board: Board) -> Any:
    """The question of the sweep, its claims as fixed before the first run, and its runs."""
    import wandb_workspaces.reports.v2 as wr

    sweep, claims = board.sweep, []
    for claim in sweep.claims:
        sentence = sweep.sentences.get(claim)
        claims.append(f"{sentence.says} ({OWNERS[sentence.whose]}): {claim}" if sentence else claim)
    arms = [f"{name}: {', '.join(overrides) or 'no difference'}" for name, overrides in sweep.arms.items()]
    return wr.Report(
        entity=board.entity,
        project=board.project,
        title=board.title[:128],
        description=sweep.title,
        width="fluid",
        blocks=[
            wr.H2("Claims, fixed before the first run"),
            wr.UnorderedList(items=claims),
            wr.H2("Arms"),
            wr.UnorderedList(items=arms),
            wr.P(f"Baseline {sweep.baseline}; matched by {sweep.matched}; varies {', '.join(sweep.varies)}."),
            wr.H2("Learning curves"),
            wr.PanelGrid(runsets=[_runset(board, PRETRAIN)], panels=_curves(board)),
            wr.H2("Columns of the table"),
            wr.PanelGrid(runsets=[_runset(board, PRETRAIN, FINETUNE)], panels=_bars(board)),
            wr.H2("Comparison"),
            wr.PanelGrid(
                runsets=[_runset(board, STUDY)], panels=[wr.MediaBrowser(media_keys=["comparison", "claims"])]
            ),
        ],
    )


def _runset(board: Board, *job_types: str) -> Any:
    """The sweep's runs of these job types, grouped by arm."""
    import wandb_workspaces.reports.v2 as wr
    import wandb_workspaces.workspaces as ws

    filters = [ws.Metric("Group") == board.group, ws.Metric("JobType").isin(list(job_types))]
    known = {"entity": board.entity, "project": board.project} if board.entity else {}
    by = [] if STUDY in job_types else ["config.arm"]
    return wr.Runset(name=board.title, filters=filters, groupby=by, **known)


def _curves(board: Board) -> list[Any]:
    """Mean and spread over the seeds of each arm."""
    import wandb_workspaces.reports.v2 as wr

    shown = [f"validation/{column}" for column in board.curves] + [f"train/{column}" for column in board.curves]
    return [
        wr.LinePlot(
            title=name, x=STEP, y=[name], groupby=wr.Config("arm"), groupby_aggfunc="mean", groupby_rangefunc="stddev"
        )
        for name in [*shown, "train/lr"]
    ]


def _bars(board: Board) -> list[Any]:
    import wandb_workspaces.reports.v2 as wr

    return [
        wr.BarPlot(
            title=f"{column} ({_LOWEST if lower_is_better(column) else _HIGHEST})",
            metrics=[wr.SummaryMetric(column)],
            groupby=wr.Config("arm"),
            groupby_aggfunc="mean",
            groupby_rangefunc="stddev",
        )
        for column in board.sweep.columns
    ]
