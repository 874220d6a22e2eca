"""What a table shows, fixed before its first run: a sweep file at one scale."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.runs.manifest import Manifest
from paribus.sweeps.control import audit
from paribus.sweeps.lock import confirmed_study, find_stage
from paribus.sweeps.sweep import Sweep, jobs
from paribus.sweeps.tune_arms import apply_tuning
from paribus.sweeps.tuning import Tuning
from paribus.sweeps.universe import TWIN, Setting, Universe
from paribus.verdict.claims import LOSS, Claim, Sentence, parse
from paribus.verdict.factorial import Factorial
from paribus.verdict.metrics import find_carrying
from paribus.verdict.published import PublishedTable
from paribus.verdict.published import table as published_table
from paribus.verdict.sequential import FIRST, MOST, Looks


@dataclass(frozen=True)
class Design:
    """`arms`: {name: overrides}; `seeds`: those of the scale; `published`: {table, rows, metrics} or empty.

    `published.rows` maps our arms to the paper's rows, `published.metrics` our columns to the paper's metrics if both
    are the same task and metric. `audit`: {controlled, differences} as the control audit found them. `absent`: {arm:
    why it was not run}. `tuning`: what chose values for the arms. `sentences`: {claim: its plain sentence}.
    `references`: {arm: the arm that is its model from scratch, if it is not the anchor}. `settled`: arms that got no
    seeds at the last look. `revised`: what was changed after results had been seen, and why. `stage`: whether the runs
    explore, or confirm what was frozen before them, and `frozen`: what to know about that. `scale`: empty if the runs
    are of another framework. `sweep`: what names the runs after `paribus run`. `universe`: what the settings are drawn
    from that take the place of seeds; `settings`: those that ran, as in the manifest. `factorial`: what the arms are
    combinations of, or None.
    """

    study: str
    scale: str
    baseline: str
    columns: tuple[str, ...]
    arms: Mapping[str, Sequence[str]]
    varies: tuple[str, ...] = ()
    matched: str = "tokens"
    claims: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    published: Mapping[str, Any] = field(default_factory=dict)
    sweep_hash: str | None = None
    title: str = ""
    audit: Mapping[str, Any] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    looks: Looks | None = None
    settled: tuple[str, ...] = ()
    revised: str = ""
    tuning: Tuning = field(default_factory=Tuning)
    sentences: Mapping[str, Sentence] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)
    stage: str = ""
    frozen: tuple[str, ...] = ()
    sweep: str = ""
    universe: Universe | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)
    factorial: Factorial | None = None

    @property
    def foreign(self) -> bool:
        """Whether the runs are of another framework."""
        return not self.scale

    @property
    def carrying(self) -> tuple[str, ...]:
        """The columns that can carry a claim."""
        return find_carrying(self.columns, self.varies)

    @property
    def themselves(self) -> frozenset[str]:
        """The losses that a claim is about for their own sake, whatever the arms differ in."""
        about = [claim for claim in self.parse_claims() if self.sentences.get(claim.text, Sentence()).about == LOSS]
        return frozenset(column for claim in about for column in claim.columns or ())

    @property
    def varies_text(self) -> bool:
        """Whether the arms may be trained on different texts or tokens; a record's text is that of its last stage."""
        keys = (*self.varies, *(self.universe.factors if self.universe else ()))
        return any(key.replace("/", ".").split(".")[0] in ("corpus", "tokenizer", "stages") for key in keys)

    @property
    def compared(self) -> tuple[str, ...]:
        """The arms that claims may be about: all but the twin that a universe adds."""
        return tuple(arm for arm in self.arms if not (self.universe and arm == TWIN))

    def name_unit(self, text: str) -> str:
        """A text about seeds, in which a universe has settings."""
        return text if self.universe is None else re.sub(r"\bseed(s?)\b", r"setting\1", text)

    def list_settings(self, seeds: Collection[int]) -> dict[int, Setting]:
        """{number: setting} of a universe, as they ran, or as they are drawn now."""
        if self.universe is None or not seeds:
            return {}
        drawn = self.universe.draw(max(seeds) + 1)
        return {seed: self.settings.get(str(seed), drawn[seed]) for seed in sorted(seeds)}

    def find_missing(self, arm: str, recorded: Collection[int]) -> list[int]:
        """The seeds of an arm that have no record but need one; a settled arm needs none after its last.

        Runs of another framework need no seeds that other arms have.
        """
        if self.foreign:
            return []
        ends = [at for at, seed in enumerate(self.seeds, 1) if arm not in self.settled or seed in recorded]
        return [seed for seed in self.seeds[: max(ends, default=len(self.seeds))] if seed not in recorded]

    def count_looks(self, seeds: Sequence[int]) -> Design:
        """The design with one more look for each seed that the user added to the declared ones.

        The looks must not depend on how many seeds are there, or more seeds would undo a decision: they end at `MOST`
        seeds or at twice the declared ones. Seeds beyond are not in the design. If none of the declared ones was run,
        the user has chosen others, and nothing was added.
        """
        added = [seed for seed in seeds if seed not in self.seeds]
        if self.looks is not None or not self.seeds or not added:
            return self
        if len(added) == len(seeds):
            return replace(self, seeds=tuple(added))
        looks = Looks(max(FIRST, len(self.seeds)), max(MOST, 2 * len(self.seeds)))
        return replace(self, looks=looks, seeds=(*self.seeds, *added)[: looks.most])

    def parse_claims(self) -> list[Claim]:
        """The claims. Raises UserError for one that cannot be read."""
        effects = () if self.factorial is None else tuple(self.factorial.columns)
        return [parse(text, self.compared, self.columns, self.carrying, effects) for text in self.claims]

    def find_paper(self) -> PublishedTable | None:
        """The paper's table. Raises UserError for a mapping that names unknown arms, columns, rows or metrics."""
        if not self.published:
            return None
        paper = published_table(self.published["table"])
        for arm, row in self.published.get("rows", {}).items():
            _require(arm, self.arms, f"published.rows of {self.study}")
            paper.row(row)
        for column, metric in self.published.get("metrics", {}).items():
            _require(column, self.columns, f"published.metrics of {self.study}")
            _require(metric, [m.name for m in paper.metrics], f"published.metrics of {self.study}")
        return paper

    def apply(self, manifest: Manifest | None) -> Design:
        """The design with what the manifest knows: arms that no machine could run, tuned values, and looks taken."""
        if manifest is None:
            return self
        tuning = Tuning.from_json(manifest.tuning)
        design = replace(self, absent=manifest.absent, tuning=tuning, settings=manifest.settings)
        if manifest.until is None:
            return replace(design, seeds=tuple(manifest.lock["seeds"])) if manifest.lock else design
        looks = Looks(int(manifest.until["first"]), int(manifest.until["most"]))
        settled = tuple(manifest.until.get("settled", ()))
        return replace(design, looks=looks, seeds=tuple(manifest.until["seeds"]), settled=settled)


def _require(name: str, names: Collection[str], source: str) -> None:
    if name not in names:
        raise UserError(f"{source} names the unknown '{name}'", f"known: {', '.join(names)}")


def name_runs(sweep: Sweep, study: str | None) -> str:
    """What names the runs of a study after `paribus run`."""
    if study in (None, sweep.study):
        return sweep.path.stem
    return f"{sweep.path.stem} {'--confirm' if study == confirmed_study(sweep.study) else f'study={study}'}"


def make_design(
    sweep: Sweep,
    scale: str,
    study: str | None = None,
    manifest: Manifest | None = None,
    audited: Mapping[str, Any] | None = None,
) -> Design:
    """The design of a sweep file at a scale.

    Args:
        study: the name that the runs were given instead of the sweep's.
        manifest: of the last command.
        audited: what the control audit found; None audits the arms as they compose now, with their tuned values.

    Raises:
        UserError: for an unknown scale, and for arms that differ in more than the sweep says.
    """
    sweep, seeds = sweep.at(scale), sweep.seeds_at(scale)
    if audited is None:
        tuned = apply_tuning(sweep, Tuning.from_json(manifest.tuning if manifest else {}))
        audited = audit(tuned, {job.arm: compose(job.overrides) for job in jobs(tuned, scale, seeds=seeds[:1])})
    stage, frozen = find_stage(sweep, scale, manifest)
    return Design(
        study=study or sweep.study,
        scale=scale,
        title=sweep.title,
        baseline=sweep.baseline,
        columns=sweep.columns,
        arms=sweep.arms,
        varies=sweep.varies,
        matched=sweep.matched,
        claims=sweep.claims,
        seeds=seeds,
        published=sweep.published,
        sweep_hash=sweep.hash(scale),
        audit=audited,
        sentences=sweep.sentences,
        references=sweep.references,
        revised=sweep.scales[scale].revised if scale in sweep.scales else "",
        stage=stage,
        frozen=tuple(frozen),
        sweep=name_runs(sweep, study),
        universe=sweep.universe_at(scale),
        factorial=sweep.factorial,
    ).apply(manifest)
