"""Sweep files: one published table as arms, claims and seeds, and the runs that it expands to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.checksums import digest
from paribus.core.config import (
    choices,
    family_of,
    name_recipe,
    renamed,
    split_overrides,
    sweeps_dir,
    table_seeds,
    unknown_recipe,
)
from paribus.core.errors import UserError, located, nearest
from paribus.core.strict_yaml import load_strict, readable
from paribus.sweeps.ablations import BLOCKS, expand_arms
from paribus.sweeps.columns import check_columns
from paribus.sweeps.search.space import dimension
from paribus.sweeps.tuning import KEYS as TUNE_KEYS
from paribus.sweeps.tuning import SEEDS as TUNE_SEEDS
from paribus.sweeps.tuning import Tune
from paribus.verdict.claims import LOSS, OWNERS, QUALITY, SUBJECTS, Claim, Sentence
from paribus.verdict.claims import parse as parse_claim
from paribus.verdict.metrics import MEAN, find_carrying, find_incomparable, is_score, is_task, lower_is_better

SCRATCH = "from_scratch"  # the anchor arm: the baseline's model, fine-tuned without pre-training
TRIAL = "test"  # the scale that only tests whether a sweep runs; its budgets are too small to match
UNMATCHED = "none"  # for sweeps whose arms vary the budget itself
_BUDGETS = ("trainer.max_", "stages")  # keys that vary the budget
MATCHED = ("tokens", "predictions", "sequences", "steps", "flops", UNMATCHED)

_KEYS = (
    "study", "family", "recipes", "base", "varies", "matched", "arms", "baseline", "columns", "claims", "published",
    "scales", "seeds", "tune", SCRATCH,
)  # fmt: skip
_REQUIRED = ("study", "varies", "matched", "arms", "baseline", "columns")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
_OF_TASK = re.compile(r"(?:^|@)(?:tasks|finetune\.each)\.([\w-]+)")  # a key of one task
_NAMING = "use a letter first, then letters, digits, _ . -"
_ELSEWHERE = {  # what an override in a sweep file cannot set: what to type instead
    "seed": "write seeds: [0, 1] at the top or in a scale",
    "family": "write family: bert or family: t5 at the top",
    "scale": "write scale= on the command line",
    "study": "write study: NAME at the top",
    "arm": "write it as a name below arms",
}
_NO_NAMES = ("null", "none", "true", "false", "inf", "nan")  # Hydra reads these as values


def quote(value: object) -> str:
    """Write a value so that Hydra's grammar reads it back unchanged."""
    text = str(value)
    plain = re.fullmatch(r"[A-Za-z_/][\w./+-]*", text) and text.lower() not in _NO_NAMES
    return text if plain else "'" + text.replace("'", "\\'") + "'"


class Job(NamedTuple):
    """One run: `overrides` compose its whole config; `scale=` is among them."""

    study: str
    arm: str
    seed: int
    overrides: tuple[str, ...]

    @property
    def label(self) -> str:
        return label(self.arm, self.seed)


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
    `recipes`: {scale: the earlier version of its recipe that the sweep keeps}.
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

    def at(self, scale: str) -> Sweep:
        """The sweep with the claims that it makes at a scale."""
        own = self.scales.get(scale, Refinement())
        if own.claims is None:
            return self
        stated = {**self.scales, scale: own._replace(claims=None)}
        return replace(self, claims=own.claims, sentences=own.sentences, scales=stated)

    def hash(self, scale: str) -> str:
        """The hash of what the file fixes before the first run at a scale.

        The blocks of other scales, what was revised, and a claim's plain sentence and owner do not count, nor do
        recipes: a run's own name covers their settings.
        """
        fixed = {key: value for key, value in self.content.items() if key not in ("scales", "recipes")}
        stated = self.at(scale)
        if stated.sentences:
            fixed["claims"] = [stated._fix_claim(claim) for claim in stated.claims]
        block = (self.content.get("scales") or {}).get(scale)
        if block is not None:
            block = {key: value for key, value in block.items() if key not in ("revised", "claims")}
        return digest({**fixed, "scale": block})

    def find_needed(self, claim: str) -> frozenset[str]:
        """The arms that a claim needs: those that it compares, and their models from scratch."""
        read = parse_claim(claim, tuple(self.arms), self.columns, find_carrying(self.columns, self.varies))
        compared = {arm for pair in read.pairs for arm in (pair.arm, pair.versus)}
        return frozenset({SCRATCH, *compared, *(self.references[arm] for arm in compared & self.references.keys())})

    def _fix_claim(self, claim: str) -> str | list[str]:
        about = self.sentences.get(claim, Sentence()).about
        return claim if about == QUALITY else [claim, about]

    def seeds_at(self, scale: str) -> tuple[int, ...]:
        """The seeds of every arm: those of the sweep's block for the scale, else of the sweep, else of the recipe."""
        refined = self.scales.get(scale, Refinement()).seeds
        own = self.seeds if refined is None else refined
        return table_seeds(self.family, scale, self.recipes.get(scale)) if own is None else own

    def tune_at(self, scale: str) -> Tune | None:
        """The search of every arm at a scale, or None. Raises UserError if it uses a seed of the table."""
        tune = self.tunes.get(scale, self.tunes.get(""))
        if tune is not None and (both := set(tune.seeds) & set(self.seeds_at(scale))):
            raise UserError(f"{self.path}: 'tune' uses seed {min(both)} of the table", "give other seeds in tune.seeds")
        return tune

    @property
    def asked(self) -> tuple[str, ...]:
        """The columns that the claims are about, in the file's order; without claims, all. The mean over tasks asks for
        each of them.
        """
        carrying = find_carrying(self.columns, self.varies)
        claims = (parse_claim(text, tuple(self.arms), self.columns, carrying) for text in self.claims)
        about = {column for claim in claims for column in claim.columns or carrying}
        return (
            tuple(name for name in self.columns if name in about or (MEAN in about and is_task(name))) or self.columns
        )

    @property
    def written(self) -> tuple[str, ...]:
        """All overrides of the file."""
        refined = [part for block in self.scales.values() for part in (block.overrides, *block.arms.values())]
        return tuple(text for part in (self.base, *self.arms.values(), *refined) for text in part)

    @property
    def declared(self) -> tuple[str, ...]:
        """The keys in which arms may differ: those that the sweep varies or tunes."""
        spaces = [key for tune in self.tunes.values() if tune is not None for key in tune.space]
        chosen = [text.partition("=")[0] for overrides in self.chosen.values() for text in overrides]
        return (*self.varies, *(key.replace("/", ".") for key in dict.fromkeys([*spaces, *chosen])))


def label(arm: str, seed: int) -> str:
    """The name of a run in messages: `dynamic/seed0`."""
    return f"{arm}/seed{seed}"


def names() -> list[str]:
    """The sweeps that `load` finds by name: those of ./sweeps and the packaged ones."""
    return sorted({path.stem for folder in _folders() for path in folder.glob("*.yaml") if path.is_file()})


def _folders() -> list[Path]:
    return [Path.cwd() / "sweeps", sweeps_dir()]


def find(name: str) -> Path:
    """The file of a sweep: a path, ./sweeps/NAME.yaml or the packaged one.

    Raises UserError with similar names, and for the name of a search.
    """
    from paribus.sweeps.search.request import names as searches

    places = [Path(name)] if name.endswith((".yaml", ".yml")) else [root / f"{name}.yaml" for root in _folders()]
    for place in places:
        if os.path.isfile(place):  # unlike Path.is_file, for every name
            return place
    if name in searches():
        raise UserError(
            f"'{name}' is a search, not a sweep", f"`paribus run {name}` runs it, `paribus status {name}` shows it"
        )
    near = nearest(name, [*names(), *searches()])
    mend = f"did you mean {' or '.join(near)}?" if near else "`paribus run --help` lists the sweeps"
    raise UserError(f"unknown sweep '{name}'", mend)


def load(name: str) -> Sweep:
    """Read and check a sweep file, by name or path.

    Raises UserError naming the file and the key, if a key is unknown or missing, an arm does not exist, or a claim or
    the mapping to the paper's table cannot be read.
    """
    path = find(name)
    with readable(path):
        text = path.read_text(encoding="utf-8")
        content = _with_on(load_strict(text))
    if not isinstance(content, dict):
        raise UserError(f"{path} is not a sweep file", f"give the keys {', '.join(_REQUIRED)}")
    sweep = _sweep(path, text.partition("\n")[0].lstrip("# ").strip(), content)
    _check(sweep)
    return sweep


def _with_on(content: object) -> Any:
    """The content with `tune.on` as a string: YAML 1.1 reads the key `on` as true."""
    if not isinstance(content, dict):
        return content
    blocks = [content, *(content["scales"].values() if isinstance(content.get("scales"), dict) else ())]
    for block in blocks:
        if isinstance(block, dict) and isinstance(block.get("tune"), dict):
            block["tune"] = {"on" if key is True else key: value for key, value in block["tune"].items()}
    return content


def _sweep(path: Path, title: str, content: dict[str, Any]) -> Sweep:
    _known(path, "", content, _KEYS)
    if missing := [key for key in _REQUIRED if content.get(key) in (None, [], {}, "")]:
        raise UserError(f"{path} has no '{missing[0]}'", f"a sweep needs {', '.join(_REQUIRED)}")
    varies, base = _strings(path, "varies", content["varies"]), _overrides(path, "base", content.get("base"))
    claims, sentences = _claims(path, content.get("claims"))
    for name in varies:
        if new := renamed(name):
            raise UserError(f"{path}: '{name}' in 'varies' is now '{new}'", f"write {new}")
    return Sweep(
        path=path,
        title=title,
        study=str(content["study"]),
        family=str(content.get("family") or family_of(split_overrides(base).get("model", ""))),
        base=base,
        varies=tuple(name.replace("/", ".") for name in varies),
        matched=str(content["matched"]),
        arms=_arms(path, "arms", content["arms"]),
        baseline=str(content["baseline"]),
        columns=_strings(path, "columns", content["columns"]),
        claims=claims,
        published=_mapping(path, "published", content.get("published")),
        scales={
            name: _refinement(path, f"scales.{name}", block)
            for name, block in _mapping(path, "scales", content.get("scales")).items()
        },
        seeds=_seeds(path, "seeds", content.get("seeds")),
        content=content,
        tunes=_tunes(path, content),
        sentences=sentences,
        references={arm: str(other) for arm, other in _mapping(path, SCRATCH, content.get(SCRATCH)).items()},
        recipes={scale: str(version) for scale, version in _mapping(path, "recipes", content.get("recipes")).items()},
    )


def _refinement(path: Path, key: str, value: object) -> Refinement:
    block = _mapping(path, key, value)
    _known(path, f"{key}.", block, ("overrides", "arms", "seeds", "claims", "revised", "tune"))
    claims, sentences = _claims(path, block.get("claims"))
    return Refinement(
        claims=claims if "claims" in block else None,
        sentences=sentences,
        overrides=_overrides(path, f"{key}.overrides", block.get("overrides")),
        arms=_arms(path, f"{key}.arms", block.get("arms"), anchor=True),
        seeds=_seeds(path, f"{key}.seeds", block.get("seeds")),
        revised=_sentence(path, f"{key}.revised", block.get("revised", "")),
    )


def _sentence(path: Path, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise UserError(f"{path}: {key} is not a text", "say in a sentence what was changed, and why")
    return " ".join(value.split())


def _tunes(path: Path, content: Mapping[str, Any]) -> dict[str, Tune | None]:
    """The search of the file, and that of each scale that refines it or leaves it out (`tune: false`)."""
    base = content.get("tune")
    blocks = {"": base} if base is not None else {}
    blocks |= {name: block["tune"] for name, block in (content.get("scales") or {}).items() if "tune" in (block or {})}
    found = {}
    for scale, block in blocks.items():
        key = f"scales.{scale}.tune" if scale else "tune"
        common = base if isinstance(base, dict) else {}
        found[scale] = None if block is False else _tune(path, key, {**common, **_mapping(path, key, block)})
    return found


def _tune(path: Path, key: str, block: dict[str, Any]) -> Tune:
    _known(path, f"{key}.", block, TUNE_KEYS)
    if missing := [name for name in ("trials", "space", "on") if not block.get(name) and block.get(name) != 0]:
        raise UserError(f"{path} has no '{key}.{missing[0]}'", "a search needs trials, space and on")
    if not isinstance(block["trials"], int) or isinstance(block["trials"], bool):
        raise UserError(f"{path}: '{key}.trials' is not a whole number", "give the number of trials per arm")
    texts = _mapping(path, f"{key}.space", block["space"])
    with located(str(path)):
        return Tune(
            trials=block["trials"],
            space={name: dimension(str(name), text) for name, text in texts.items()},
            on=str(block["on"]),
            seeds=_seeds(path, f"{key}.seeds", block.get("seeds")) or TUNE_SEEDS,
            sampler=str(block.get("sampler", "grid")),
            texts=texts,
        )


def _known(path: Path, prefix: str, content: Mapping[str, Any], keys: Sequence[str]) -> None:
    for key in content:
        if key not in keys:
            raise UserError(f"{path} has the unknown key '{prefix}{key}'", f"known: {', '.join(keys)}")


def _mapping(path: Path, key: str, value: object) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise UserError(f"{path}: '{key}' is not a mapping", "write NAME: VALUE below it")
    return dict(value or {})


def _strings(path: Path, key: str, value: object) -> tuple[str, ...]:
    listed = [] if value is None else value
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        raise UserError(f"{path}: '{key}' is not a list of strings", f"write {key}: [A, B]")
    return tuple(listed)


def _claims(path: Path, value: Any) -> tuple[tuple[str, ...], dict[str, Sentence]]:
    """(The claims in their language, {claim: its plain sentence} for those that have one)."""
    listed = [] if value is None else value
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    for entry in entries:
        _known(path, "claims.", entry, ("claim", *Sentence._fields))
        if missing := [key for key in ("claim", "says", "whose") if not isinstance(entry.get(key), str)]:
            raise UserError(f"{path}: a claim has no '{missing[0]}'", "write claim, says and whose, or the claim alone")
        for key, known in (("whose", tuple(OWNERS)), ("about", SUBJECTS)):
            if entry.get(key, known[0]) not in known:
                raise UserError(f"{path}: '{key}: {entry[key]}' is unknown", f"use {', '.join(known)}")
    texts = [entry["claim"] if isinstance(entry, dict) else entry for entry in listed] if entries else listed
    sentences = {one["claim"]: Sentence(one["says"], one["whose"], one.get("about", QUALITY)) for one in entries}
    return _strings(path, "claims", texts), sentences


def _overrides(path: Path, key: str, value: object) -> tuple[str, ...]:
    listed = _strings(path, key, value)
    for text in listed:
        if "=" not in text and not text.startswith("~"):
            raise UserError(f"{path}: '{text}' in '{key}' is not an override", "write key=value or group=choice")
        if (name := text.partition("=")[0].lstrip("+~")) in _ELSEWHERE:
            raise UserError(f"{path}: '{key}' sets '{name}', which has no effect there", _ELSEWHERE[name])
    return listed


def _arms(path: Path, key: str, value: object, anchor: bool = False) -> dict[str, tuple[str, ...]]:
    arms = _mapping(path, key, value)
    arms = arms if anchor else expand_arms(path, arms)
    taken = _NO_NAMES if anchor else (*_NO_NAMES, SCRATCH)
    for name in arms:
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name.lower() in taken:
            raise UserError(f"{path}: '{name}' in '{key}' cannot name an arm", _NAMING)
    return {name: _overrides(path, f"{key}.{name}", listed) for name, listed in arms.items()}


def _seeds(path: Path, key: str, value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    numbers = isinstance(value, list) and all(isinstance(seed, int) and not isinstance(seed, bool) for seed in value)
    if not numbers or not value or min(value) < 0 or len(set(value)) < len(value):
        raise UserError(f"{path}: '{key}' is not a list of distinct seeds", "write [0, 1, 2]")
    return tuple(value)


def _check(sweep: Sweep) -> None:
    if not _NAME.fullmatch(sweep.study):
        raise UserError(f"{sweep.path}: study '{sweep.study}' cannot name a folder", _NAMING)
    if len(sweep.arms) < 2:
        near = [block for arm in sweep.arms for block in nearest(arm, BLOCKS, 0.8)]
        mend = f"did you mean {near[0]}?" if near else "give two arms, or run it with `paribus train`"
        raise UserError(f"{sweep.path}: a sweep needs two arms or more", mend)
    if sweep.baseline not in sweep.arms:
        raise UserError(
            f"{sweep.path}: baseline '{sweep.baseline}' is not an arm", f"its arms: {', '.join(sweep.arms)}"
        )
    if sweep.matched not in MATCHED and sweep.matched.rpartition(".")[2] not in MATCHED[:-1]:
        mend = f"use {', '.join(MATCHED)}, or STAGE.tokens and the like"
        raise UserError(f"{sweep.path}: matched '{sweep.matched}' is unknown", mend)
    if sweep.matched == UNMATCHED and not any(name.startswith(_BUDGETS) for name in sweep.varies):
        raise UserError(
            f"{sweep.path}: 'matched: none', but no arm varies a budget", "match a budget such as tokens, or vary one"
        )
    _check_scales(sweep)
    _all_arms(sweep, SCRATCH, [*sweep.references, *sweep.references.values()])
    for other in sweep.references.values():
        if "untrained=true" not in sweep.arms[other]:
            raise UserError(f"{sweep.path}: '{other}' in '{SCRATCH}' is pre-trained", "name an arm with untrained=true")
    for tune in sweep.tunes.values():
        if tune is not None and tune.on not in sweep.columns:
            raise UserError(f"{sweep.path}: 'tune.on' names the unknown column '{tune.on}'", _its_columns(sweep))
    if twice := [column for column in sweep.columns if sweep.columns.count(column) > 1]:
        raise UserError(f"{sweep.path}: 'columns' names {twice[0]} twice", "name it once")
    ours = [column for column in sweep.columns if column not in (sweep.published.get("metrics") or ())]
    check_columns(sweep.path, ours, sweep.written)  # a paper may have tasks that are not here
    carrying = find_carrying(sweep.columns, sweep.varies)
    with located(str(sweep.path)):
        for stated in (sweep, *(sweep.at(scale) for scale in sweep.scales)):
            for text in stated.claims:
                _check_losses(stated, parse_claim(text, tuple(sweep.arms), sweep.columns, carrying))
    _check_published(sweep)


def _check_scales(sweep: Sweep) -> None:
    known = choices(f"recipe/{sweep.family}") if sweep.scales else []
    for scale, version in sweep.recipes.items():
        if scale not in choices(f"recipe/{sweep.family}/{version}"):
            cause = f"{sweep.path}: 'recipes' names version '{version}' of scale={scale}, which does not exist"
            raise UserError(cause, "leave it out for today's recipe, or write v1 for the first")
    for scale, refinement in sweep.scales.items():
        if scale not in known:
            with located(f"{sweep.path}: 'scales'"):
                raise unknown_recipe(sweep.family, str(scale))
        _all_arms(sweep, f"scales.{scale}.arms", refinement.arms.keys() - {SCRATCH})
        for text in refinement.arms.get(SCRATCH, ()):
            if not text.startswith("finetune."):
                cause = f"{sweep.path}: '{text}' in 'scales.{scale}.arms.{SCRATCH}' is not a fine-tuning setting"
                raise UserError(cause, "the anchor is the baseline but for its fine-tuning: set finetune.KEY=VALUE")


def _check_losses(sweep: Sweep, claim: Claim) -> None:
    """A claim names a loss that measures something else in each arm only if it is about the loss itself."""
    named = claim.columns or ()
    losses = [column for column in named if lower_is_better(column) and not is_score(column)]
    itself = sweep.sentences.get(claim.text, Sentence()).about == LOSS
    if itself and (not named or len(losses) < len(named)):
        raise UserError(f"claim '{claim.text}' is 'about: {LOSS}', but not on losses alone", "write on LOSS after it")
    for column in () if itself else named:
        if why := find_incomparable(column, sweep.varies):
            cause = f"claim '{claim.text}' can never be decided on {column}, since {why.removeprefix('no verdict: ')}"
            other = f", or add 'about: {LOSS}' if the claim is about the loss itself" if column in losses else ""
            raise UserError(cause, f"leave {column} out{other}")


def _all_arms(sweep: Sweep, key: str, found: Iterable[str]) -> None:
    for name in found:
        if name not in sweep.arms:
            raise UserError(
                f"{sweep.path}: '{key}' names the unknown arm '{name}'", f"its arms: {', '.join(sweep.arms)}"
            )


def _check_published(sweep: Sweep) -> None:
    """The mapping to the paper: its table, {our arm: its row}, {our column: its metric}."""
    from paribus.verdict.published import table, value

    if not sweep.published:
        return
    _known(sweep.path, "published.", sweep.published, ("table", "rows", "metrics"))
    rows = _mapping(sweep.path, "published.rows", sweep.published.get("rows"))
    metrics = _mapping(sweep.path, "published.metrics", sweep.published.get("metrics"))
    _all_arms(sweep, "published.rows", rows)
    with located(str(sweep.path)):
        paper = table(str(sweep.published.get("table")))
        for row in rows.values():
            paper.row(str(row))
            for metric in metrics.values():
                value(paper.id, str(row), str(metric))
        if unknown := [column for column in metrics if column not in sweep.columns]:
            raise UserError(f"'published.metrics' names the unknown column '{unknown[0]}'", _its_columns(sweep))


def _its_columns(sweep: Sweep) -> str:
    return f"its columns: {', '.join(sweep.columns)}"


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
    settings = {arm: arm_overrides(sweep, scale, arm, overrides) for arm in known if arm in wanted}
    named = study or sweep.study
    return [
        Job(named, arm, seed, merge(own, [f"study={named}", f"arm={arm}", f"seed={seed}"]))
        for seed in (sweep.seeds_at(scale) if seeds is None else seeds)
        for arm, own in settings.items()
    ]


def arm_overrides(sweep: Sweep, scale: str, arm: str, overrides: Sequence[str] = ()) -> tuple[str, ...]:
    """The overrides that compose an arm, over the recipe of the scale (see `paribus.core.config.compose`)."""
    source = sweep.baseline if arm == SCRATCH else arm
    refined = sweep.scales.get(scale, Refinement())
    merged = merge(
        sweep.base,
        refined.overrides,
        sweep.arms[source],
        refined.arms.get(source, ()),
        sweep.chosen.get(source, ()),
        refined.arms.get(SCRATCH, ()) if arm == SCRATCH else (),
        overrides,
        ["trainer.max_steps=0", "untrained=true"] if arm == SCRATCH else [],
        [f"family={sweep.family}", f"scale={scale}", f"sweep_hash='{sweep.hash(scale)}'"],
        [f"recipe={name_recipe(sweep.family, scale, version)}"] if (version := sweep.recipes.get(scale)) else [],
    )
    return tuple(text for text in merged if not _is_of_stage(text)) if arm == SCRATCH else merged


def _is_of_stage(override: str) -> bool:
    """Whether it sets a stage after the first, by a key or by a choice such as +masking@stages.further.masking=none."""
    key = override.partition("=")[0].lstrip("+~").partition("@")
    return f"{key[2] or key[0]}.".startswith("stages.")


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
