"""A sweep: one published table as arms, claims and seeds, and the runs that it expands to (read by `sweep_file.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.checksums import digest
from paribus.core.errors import UserError
from paribus.core.recipes import name_recipe, table_seeds
from paribus.sweeps.tuning import Tune
from paribus.sweeps.universe import REPLICATE, TWIN, Setting, Universe, setting_overrides
from paribus.verdict.claims import QUALITY, Claim, Sentence
from paribus.verdict.claims import parse as parse_claim
from paribus.verdict.factorial import BY, ZERO, Factorial
from paribus.verdict.metrics import MEAN, find_carrying, is_task

SCRATCH = "from_scratch"  # the anchor arm: the baseline's model, fine-tuned without pre-training
TRIAL = "test"  # the scale that only tests whether a sweep runs; its budgets are too small to match
UNMATCHED = "none"  # for sweeps whose arms vary the budget itself
MATCHED = ("tokens", "predictions", "sequences", "steps", "flops", UNMATCHED)

HYDRA_WORDS = ("null", "none", "true", "false", "inf", "nan")  # Hydra reads these as values, not as names
_OF_TASK = re.compile(r"(?:^|@)(?:tasks|finetune\.each)\.([\w-]+)")  # a key of one task


class Job(NamedTuple):
    """One run: `overrides` compose its whole config; `scale=` is among them."""

    study: str
    arm: str
    seed: int
    overrides: tuple[str, ...]

    @property
    def label(self) -> str:
        """The name of the run in messages: `dynamic/seed0`."""
        return f"{self.arm}/seed{self.seed}"


class Refinement(NamedTuple):
    """What a sweep changes at one scale: `overrides` for all arms, `arms` for single arms and for how the anchor is
    fine-tuned, `seeds` unless None, `claims` unless None: the same questions with the margins that this scale has the
    power for. `revised`: what was changed after results had been seen, and why.
    """

    overrides: tuple[str, ...] = ()
    arms: Mapping[str, tuple[str, ...]] = {}
    seeds: tuple[int, ...] | None = None
    claims: tuple[str, ...] | None = None
    sentences: Mapping[str, Sentence] = {}
    revised: str = ""


@dataclass(frozen=True)
class Sweep:
    """A sweep file, validated. `content` is the file as plain data, `title` the first line of its header comment.

    `tunes`: {scale: the search of each arm}, with "" for scales that do not refine it. `chosen`: {arm: the overrides
    that a search found}; a file itself has none. `sentences`: {claim: what it says in plain words, and whose it is}.
    `references`: {arm: the arm that is its model from scratch}, for arms that do not share the anchor's labels.
    `recipes`: {scale: the earlier version of its recipe that the sweep keeps}. `universes`: {scale: the settings that
    take the place of seeds}, with "" for scales that do not refine them; empty if the sweep has none. `factorial`: the
    design whose combinations of levels the arms are, or None.
    """

    path: Path
    title: str
    study: str
    family: str
    base: tuple[str, ...]
    varies: tuple[str, ...]
    matched: str
    arms: Mapping[str, tuple[str, ...]]
    baseline: str
    columns: tuple[str, ...]
    claims: tuple[str, ...]
    published: Mapping[str, Any]
    scales: Mapping[str, Refinement]
    seeds: tuple[int, ...] | None
    content: Mapping[str, Any]
    tunes: Mapping[str, Tune | None] = field(default_factory=dict)
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sentences: Mapping[str, Sentence] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)
    recipes: Mapping[str, str] = field(default_factory=dict)
    universes: Mapping[str, Universe] = field(default_factory=dict)
    factorial: Factorial | None = None

    def at(self, scale: str) -> Sweep:
        """The sweep with the claims that it makes at a scale."""
        refined = self.scales.get(scale, Refinement())
        if refined.claims is None:
            return self
        scales = {**self.scales, scale: refined._replace(claims=None)}
        return replace(self, claims=refined.claims, sentences=refined.sentences, scales=scales)

    def seeds_at(self, scale: str) -> tuple[int, ...]:
        """The seeds of every arm: those of the sweep's block for the scale, else of the sweep, else of the recipe; the
        numbers of the settings if the sweep has a universe.
        """
        if (universe := self.universe_at(scale)) is not None:
            return tuple(range(universe.count))
        refined = self.scales.get(scale, Refinement()).seeds
        seeds = self.seeds if refined is None else refined
        return table_seeds(self.family, scale, self.recipes.get(scale)) if seeds is None else seeds

    def tune_at(self, scale: str) -> Tune | None:
        """The search of every arm at a scale, or None. Raises UserError if it uses a seed of the table."""
        tune = self.tunes.get(scale, self.tunes.get(""))
        if tune is not None and (both := set(tune.seeds) & set(self.seeds_at(scale))):
            raise UserError(f"{self.path}: 'tune' uses seed {min(both)} of the table", "give other seeds in tune.seeds")
        return tune

    def universe_at(self, scale: str) -> Universe | None:
        """The settings that take the place of seeds at a scale, or None."""
        return self.universes.get(scale, self.universes.get(""))

    @property
    def compared(self) -> tuple[str, ...]:
        """The arms that claims may be about: all but the twin of the baseline."""
        return tuple(arm for arm in self.arms if not (self.universes and arm == TWIN))

    def parse_claim(self, text: str) -> Claim:
        """Read a claim about these arms, effects and columns. Raises UserError for one that cannot be read, and for one
        about an effect that the design cannot tell from others.
        """
        effects = () if self.factorial is None else tuple(self.factorial.columns)
        claim = parse_claim(text, self.compared, self.columns, find_carrying(self.columns, self.varies), effects)
        for name in {name for pair in claim.pairs for name in (pair.arm, pair.versus) if BY in name}:
            assert self.factorial is not None
            self.factorial.require_clear(name)
        return claim

    def hash(self, scale: str) -> str:
        """The hash of what the file fixes before the first run at a scale.

        The blocks of other scales, what was revised, and a claim's plain sentence and owner do not count, nor do
        recipes: a run's own name covers their settings.
        """
        fixed = {key: value for key, value in self.content.items() if key not in ("scales", "recipes")}
        stated = self.at(scale)
        if stated.sentences:
            about = {claim: stated.sentences.get(claim, Sentence()).about for claim in stated.claims}
            fixed["claims"] = [claim if about[claim] == QUALITY else [claim, about[claim]] for claim in stated.claims]
        block = (self.content.get("scales") or {}).get(scale)
        if block is not None:
            block = {key: value for key, value in block.items() if key not in ("revised", "claims")}
        return digest({**fixed, "scale": block})

    def find_needed(self, claim: str) -> frozenset[str]:
        """The arms that a claim needs: those that it compares, and their models from scratch."""
        compared = {arm for pair in self.parse_claim(claim).pairs for arm in (pair.arm, pair.versus)}
        if self.factorial is not None and ZERO in compared:
            compared = set(self.factorial.arms) | (compared & set(self.arms))
        if self.universes:  # whose settings count by the baseline
            compared.add(self.baseline)
        return frozenset({SCRATCH, *compared, *(self.references[arm] for arm in compared & self.references.keys())})

    @property
    def claimed_columns(self) -> tuple[str, ...]:
        """The columns that the claims are about, in the file's order; without claims, all. The mean over tasks asks for
        each of them.
        """
        carrying = find_carrying(self.columns, self.varies)
        about = {column for text in self.claims for column in self.parse_claim(text).columns or carrying}
        claimed = (name for name in self.columns if name in about or (MEAN in about and is_task(name)))
        return tuple(claimed) or self.columns

    @property
    def all_overrides(self) -> tuple[str, ...]:
        """All overrides of the file."""
        refined = [part for block in self.scales.values() for part in (block.overrides, *block.arms.values())]
        return tuple(text for part in (self.base, *self.arms.values(), *refined) for text in part)

    @property
    def declared_keys(self) -> tuple[str, ...]:
        """The keys in which arms may differ: those that the sweep varies or tunes."""
        spaces = [key for tune in self.tunes.values() if tune is not None for key in tune.space]
        chosen = [text.partition("=")[0] for overrides in self.chosen.values() for text in overrides]
        twin = (REPLICATE,) if self.universes else ()
        return (*self.varies, *twin, *(key.replace("/", ".") for key in dict.fromkeys([*spaces, *chosen])))


def jobs(
    sweep: Sweep,
    scale: str,
    overrides: Sequence[str] = (),
    *,
    arms: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    study: str | None = None,
    anchor: bool = False,
) -> list[Job]:
    """The runs of a sweep, ordered by seed and then arm, so that paired runs end together.

    Args:
        overrides: the user's, for every arm; they come last.
        arms, seeds: only these; by default all arms and the seeds of the scale.
        study: a name other than the sweep's.
        anchor: whether the arm `from_scratch` is among them.

    Raises:
        UserError: for arms that the sweep does not have.
    """
    known = [*sweep.arms, *([SCRATCH] if anchor else [])]
    wanted = known if arms is None else list(arms)
    for name in wanted:
        if name not in (*sweep.arms, SCRATCH):
            raise UserError(f"{sweep.path} has no arm '{name}'", f"its arms: {', '.join(sweep.arms)}")
    seeds, universe = sweep.seeds_at(scale) if seeds is None else seeds, sweep.universe_at(scale)
    settings = [] if universe is None else universe.draw(max(seeds) + 1)

    @cache
    def compose_arm(arm: str, setting: int | None) -> tuple[str, ...]:
        return arm_overrides(sweep, scale, arm, overrides, None if setting is None else settings[setting])

    study = study or sweep.study
    return [
        Job(
            study,
            arm,
            seed,
            merge(compose_arm(arm, seed if settings else None), [f"study={study}", f"arm={arm}", f"seed={seed}"]),
        )
        for seed in seeds
        for arm in known
        if arm in wanted
    ]


def arm_overrides(
    sweep: Sweep, scale: str, arm: str, overrides: Sequence[str] = (), setting: Setting | None = None
) -> tuple[str, ...]:
    """The overrides that compose an arm, over the recipe of the scale (see `paribus.core.config.compose`).

    Those of the anchor are the baseline's without the stages after the first; those of a universe's twin are the
    baseline's. By default, the arm of a sweep with a universe is composed without any setting.
    """
    is_twin = bool(sweep.universes) and arm == TWIN
    source = sweep.baseline if arm == SCRATCH or is_twin else arm
    refined = sweep.scales.get(scale, Refinement())
    merged = merge(
        sweep.base,
        refined.overrides,
        setting_overrides(setting or {}),
        sweep.arms[source],
        refined.arms.get(source, ()),
        sweep.chosen.get(source, ()),
        refined.arms.get(SCRATCH, ()) if arm == SCRATCH else (),
        overrides,
        ["trainer.max_steps=0", "untrained=true"] if arm == SCRATCH else [],
        [f"{REPLICATE}=1"] if is_twin else [],
        [f"family={sweep.family}", f"scale={scale}", f"sweep_hash='{sweep.hash(scale)}'"],
        [f"recipe={name_recipe(sweep.family, scale, version)}"] if (version := sweep.recipes.get(scale)) else [],
    )
    if arm != SCRATCH:
        return merged
    # by a key (stages.further.trainer.max_steps) or by a choice (+masking@stages.further.masking=none)
    parts = {text: text.partition("=")[0].lstrip("+~").partition("@") for text in merged}
    return tuple(
        text for text, (group, _, package) in parts.items() if not f"{package or group}.".startswith("stages.")
    )


def merge(*levels: Iterable[str]) -> tuple[str, ...]:
    """Merge lists of overrides. If a key is given twice, the later one counts and keeps its place.

    As in Hydra, a value (`masking.rate=0.2`) outlasts a later choice of its group (`masking=geometric_span`); only a
    later `task=` drops the values of tasks that it does not name, and how they are fine-tuned.
    """
    kept: dict[str, str] = {}
    for text in (text for level in levels for text in level):
        key, _, value = text.partition("=")
        key = key.lstrip("+~")
        if key == "task":
            chosen = set(re.findall(r"[\w-]+", value))
            owners = {old: _OF_TASK.search(old) for old in kept}
            kept = {old: kept[old] for old, owner in owners.items() if owner is None or owner[1] in chosen}
        kept.pop(key, None)
        kept[key] = text
    return tuple(kept.values())


def quote(value: object) -> str:
    """Write a value so that Hydra's grammar reads it back unchanged."""
    text = str(value)
    plain = re.fullmatch(r"[A-Za-z_/][\w./+-]*", text, re.ASCII) and text.lower() not in HYDRA_WORDS
    return text if plain else "'" + text.replace("'", "\\'") + "'"
