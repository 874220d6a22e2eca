"""The functions of `import paribus` for finished runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.errors import UserError, nearest
from paribus.integrations.foreign_records import JudgeOptions
from paribus.integrations.readers import open_source
from paribus.integrations.source import ForeignRow, ForeignSource
from paribus.reports.compare import Comparison, FileOptions, compare_runs
from paribus.reports.compare_arms import ArmComparison
from paribus.reports.judge import Judged
from paribus.reports.judge import judge as judge_source

if TYPE_CHECKING:
    from pandas import DataFrame

RUNS, RESULTS = "runs", "analysis/results"
Names = str | Sequence[str]


def load_runs(study: str, scale: str, runs: str | Path = RUNS, results: str | Path = RESULTS) -> DataFrame:
    """One row per ended run: arm, seed, signature, status, its metrics and its budget (`budget/...`).

    Args:
        study: of the runs; a sweep's name, unless `study=` gave another.
        runs, results: the folders of the runs and of committed results.

    Raises UserError if there is none.
    """
    from paribus.integrations.wandb.frames import load
    from paribus.integrations.wandb.sources import Records

    roots = [Path(runs), Path(results) / scale]
    frame = load(Records(roots), study, scale).runs
    if frame.empty:
        studies = sorted({path.name for root in roots for path in root.glob("*") if path.is_dir()})
        near = [name for name in nearest(study, studies) if name != study]
        mend = f"did you mean {' or '.join(near)}?" if near else f"try `paribus run {study} scale={scale}`"
        raise UserError(f"no run of {study} at scale={scale} has finished in {runs} or {results}", mend)
    return frame


def table(
    sweep: str, scale: str, study: str | None = None, runs: str | Path = RUNS, results: str | Path = RESULTS
) -> Judged:
    """The table of a sweep at a scale, as `paribus table` makes it; `str()` prints it, `files` are all its formats.

    Raises UserError for an unknown sweep, and if no fair table can be made.
    """
    from paribus.reports.tables.build import make_table
    from paribus.sweeps.sweep_file import load

    return Judged(make_table(load(sweep), scale, study, [Path(runs), Path(results) / scale]), {})


def judge(
    runs: str | Path | DataFrame,
    *,
    metric: Names,
    baseline: str,
    claims: Names = (),
    arm: Names = "arm",
    seed: str = "seed",
    lower: Names = (),
    higher: Names = (),
    step: str | None = None,
    where: Mapping[str, str] | None = None,
    name: str | None = None,
    group: str | None = None,
    decimal: str | None = None,
    study: str | None = None,
) -> Judged:
    """A table of another framework's runs, as `paribus judge` makes it.

    Args:
        runs: a pandas frame with one row per run, or any source that `paribus judge` reads: a CSV or JSONL file,
            `wandb:entity/project`, a folder of W&B (offline), MLflow or lm-eval.
        metric: the columns to judge. claims: such as `"A > B, margin 0.5 points"`.
        arm, seed: the columns that name the arm and the seed; seed="none" if the runs share no seeds.
        lower, higher: metrics for which lower, or higher, is better, whatever their names suggest.
        step: which row of a log counts: `last`, `best` or a step such as `1000`; or its column, `COLUMN` or
            `COLUMN=best`. where: {column: value} of the rows that count.
        name: a pattern that reads columns from run names, such as `{arm}-s{seed}`.
        group: a column whose values are judged apart, as `GROUP/METRIC`.
        decimal: the decimal mark of all numbers, `.` or `,`, if they do not tell it.

    Raises:
        UserError: for unknown columns and arms, and claims that cannot be read.
    """
    options = JudgeOptions(
        metrics=_list(metric),
        baseline=baseline,
        claims=_list(claims),
        arm=_list(arm),
        seed=seed,
        lower=_list(lower),
        higher=_list(higher),
        step=step,
        where=where or {},
        pattern=name,
        group=group,
        decimal=decimal,
    )
    return judge_source(
        open_source(str(runs)) if isinstance(runs, str | Path) else _read_frame(runs, options), options, study
    )


def compare(
    first: str | Path,
    second: str | Path,
    metric: Names = (),
    key: str | None = None,
    where: Mapping[str, str] | None = None,
    decimal: str | None = None,
    seed: str | None = None,
) -> Comparison | ArmComparison:
    """Compare two finished runs, or two files with one row per example, example by example, as `paribus compare` does.

    key: the column that identifies an example; seed: that of the seed, if a file has the rows of several runs; where,
    decimal: as in `judge`. The folders of two arms are compared over all their seeds.
    Raises UserError if one is not finished, or if the examples are not the same.
    """
    return compare_runs(str(first), str(second), _list(metric), FileOptions(key, seed, where or {}, decimal))


def _list(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _read_frame(frame: DataFrame, options: JudgeOptions) -> ForeignSource:
    """NaN is a run that diverged; in a log with several rows per run, it is a cell that the row leaves empty."""
    keys = [column for column in (*options.arm, options.seed) if column in frame]
    log = options.step is not None or bool(keys and frame.duplicated(keys).any())
    cells = frame.astype(object).where(frame.notna(), None)
    floats = [] if log else list(frame.select_dtypes("floating"))
    cells[floats] = frame[floats]
    rows: list[dict[str, Any]] = cells.to_dict("records")
    return ForeignSource(
        "runs", [ForeignRow(f"row {at}", row, str(row.get("name") or "")) for at, row in enumerate(rows)]
    )
