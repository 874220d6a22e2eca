"""Sweep files: found by name, read, and checked before anything is composed.

Two blocks below `arms` generate arms: leave one part out, or change one at a time.

    arms:
      leave_one_out: [masking=whole_word, objective=mlm_nsp]      # full, without_masking, without_objective
      one_at_a_time: [masking.rate=0.4, optimizer.lr=1e-3]        # base, rate_0.4, lr_1e-3

A mapping {name: override or overrides} names the parts: `leave_one_out: {nsp: objective=mlm_nsp}` gives without_nsp.

Instead of `arms`, a file may have a `design` and its `factors` (`factorial_file.py`).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from paribus.core.config import split_overrides
from paribus.core.config_errors import renamed
from paribus.core.config_names import choices, is_group, load_mapping, load_strict, readable, roots, sweeps_dir
from paribus.core.errors import UserError, located, nearest
from paribus.core.recipes import family_of, unknown_recipe
from paribus.sweeps.columns import check_columns
from paribus.sweeps.factorial_file import FACTORIAL_KEYS, generate_arms, read_factorial
from paribus.sweeps.search.space import dimension
from paribus.sweeps.sweep import HYDRA_WORDS, MATCHED, SCRATCH, UNMATCHED, Refinement, Sweep
from paribus.sweeps.tuning import SEEDS as TUNE_SEEDS
from paribus.sweeps.tuning import Tune
from paribus.sweeps.universe import DIRECTIONS, REPLICATE, TWIN, Universe, find_key
from paribus.verdict import published
from paribus.verdict.claims import LOSS, OWNERS, QUALITY, SUBJECTS, Claim, Sentence
from paribus.verdict.metrics import find_incomparable, is_score, lower_is_better
from paribus.verdict.power import MOST_SEEDS

_KEYS = (
    "study", "family", "recipes", "base", "varies", "matched", "arms", "baseline", "columns", "claims", "published",
    "scales", "seeds", "tune", "universe", SCRATCH, *FACTORIAL_KEYS,
)  # fmt: skip
_REQUIRED = ("study", "varies", "matched", "arms", "baseline", "columns")
_SCALE_KEYS = ("overrides", "arms", "seeds", "claims", "revised", "tune", "universe", "factors")
_UNIVERSE_KEYS = ("settings", "seed", "factors", "known")
_TUNE_KEYS = ("trials", "space", "on", "seeds", "sampler")
_BUDGETS = ("trainer.max_", "stages")  # keys that vary the budget
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
_HOW_TO_NAME = "use a letter first, then letters, digits, _ . -"
_ELSEWHERE = {  # what an override in a sweep file cannot set: what to type instead
    "seed": "write seeds: [0, 1] at the top or in a scale",
    "family": "write family: bert or family: t5 at the top",
    "scale": "write scale= on the command line",
    "study": "write study: NAME at the top",
    "arm": "write it as a name below arms",
}
LEAVE_ONE_OUT, ONE_AT_A_TIME = BLOCKS = ("leave_one_out", "one_at_a_time")


def names() -> list[str]:
    """The sweeps that `load` finds by name: those of ./sweeps and the packaged ones."""
    return sorted({path.stem for folder in _folders() for path in folder.glob("*.yaml") if path.is_file()})


def search_names() -> list[str]:
    """The searches of `conf/search`: ours, and those in the working directory's `conf`."""
    return [name for name in choices("search") if name != "none"]


def _folders() -> list[Path]:
    return [Path.cwd() / "sweeps", sweeps_dir()]


def find(name: str) -> Path:
    """The file of a sweep: a path, ./sweeps/NAME.yaml or the packaged one.

    Raises UserError with similar names, and for the name of a search.
    """
    places = [Path(name)] if name.endswith((".yaml", ".yml")) else [root / f"{name}.yaml" for root in _folders()]
    for place in places:
        if os.path.isfile(place):  # unlike Path.is_file, for every name
            return place
    if name in search_names():
        raise UserError(
            f"'{name}' is a search, not a sweep", f"`paribus run {name}` runs it, `paribus status {name}` shows it"
        )
    near = nearest(name, [*names(), *search_names()])
    mend = f"did you mean {' or '.join(near)}?" if near else "`paribus run --help` lists the sweeps"
    if name.endswith((".yaml", ".yml")):
        raise UserError(f"there is no sweep file {name}", "give the path of one, or the name of a sweep")
    raise UserError(f"unknown sweep '{name}', neither in {_folders()[0]} nor packaged", mend)


def load(name: str) -> Sweep:
    """Read and check a sweep file, by name or path.

    Raises UserError naming the file and the key, if a key is unknown or missing, an arm does not exist, or a claim or
    the mapping to the paper's table cannot be read.
    """
    path = find(name)
    with readable(path):
        text = path.read_text(encoding="utf-8")
        content = load_strict(text)
    if not isinstance(content, dict):
        raise UserError(f"{path} is not a sweep file", f"give the keys {', '.join(_REQUIRED)}")
    scales = content.get("scales")  # YAML 1.1 reads the key `tune.on` as true
    for block in (content, *(scales.values() if isinstance(scales, dict) else ())):
        if isinstance(block, dict) and isinstance(tune := block.get("tune"), dict):
            block["tune"] = {"on" if key is True else key: value for key, value in tune.items()}
    _refuse_unknown(path, "", content, _KEYS)
    written = content  # as the file has it, which its hash covers
    with located(str(path)):
        factorial = read_factorial(content)
    if factorial is not None:
        content = generate_arms(path, content, factorial)
    if missing := [key for key in _REQUIRED if content.get(key) in (None, [], {}, "")]:
        raise UserError(f"{path} has no '{missing[0]}'", f"a sweep needs {', '.join(_REQUIRED)}")
    varies, base = _strings(path, "varies", content["varies"]), _overrides(path, "base", content.get("base"))
    claims, sentences = _claims(path, content.get("claims"))
    for key in varies:
        if new := renamed(key):
            raise UserError(f"{path}: '{key}' in 'varies' is now '{new}'", f"write {new}")
    arms = _arms(path, "arms", _generate_arms(path, _mapping(path, "arms", content["arms"])), (SCRATCH,))
    universes, baseline = _read_universes(path, content), str(content["baseline"])
    if universes and TWIN in arms:
        raise UserError(f"{path}: an arm is named '{TWIN}', which a universe adds by itself", "rename or remove it")
    if universes and baseline in arms:
        arms[TWIN] = (*arms[baseline], f"{REPLICATE}=1")
    sweep = Sweep(
        path=path,
        title=text.partition("\n")[0].lstrip("# ").strip(),
        study=str(content["study"]),
        family=str(content.get("family") or family_of(split_overrides(base).get("model", ""))),
        base=base,
        varies=tuple(key.replace("/", ".") for key in varies),
        matched=str(content["matched"]),
        arms=arms,
        baseline=baseline,
        columns=_strings(path, "columns", content["columns"]),
        claims=claims,
        published=_mapping(path, "published", content.get("published")),
        scales={
            scale: _read_refinement(path, f"scales.{scale}", block)
            for scale, block in _mapping(path, "scales", content.get("scales")).items()
        },
        seeds=_seeds(path, "seeds", content.get("seeds")),
        content=written,
        tunes=_read_tunes(path, content),
        sentences=sentences,
        references={arm: str(other) for arm, other in _mapping(path, SCRATCH, content.get(SCRATCH)).items()},
        recipes={scale: str(version) for scale, version in _mapping(path, "recipes", content.get("recipes")).items()},
        universes=universes,
        factorial=factorial,
    )
    _require_hashable(path, "", written)
    _check(sweep)
    return sweep


def _read_refinement(path: Path, key: str, value: object) -> Refinement:
    block = _mapping(path, key, value)
    _refuse_unknown(path, f"{key}.", block, _SCALE_KEYS)
    claims, sentences = _claims(path, block.get("claims"))
    overrides = _overrides(path, f"{key}.overrides", block.get("overrides"))
    arms = _arms(path, f"{key}.arms", _mapping(path, f"{key}.arms", block.get("arms")))
    seeds = _seeds(path, f"{key}.seeds", block.get("seeds"))
    revised = block.get("revised", "")
    if not isinstance(revised, str):
        raise UserError(f"{path}: {key}.revised is not a text", "say in a sentence what was changed, and why")
    return Refinement(
        claims=claims if "claims" in block else None,
        sentences=sentences,
        overrides=overrides,
        arms=arms,
        seeds=seeds,
        revised=" ".join(revised.split()),
    )


def _read_tunes(path: Path, content: Mapping[str, Any]) -> dict[str, Tune | None]:
    """The search of the file, and that of each scale that refines it or leaves it out (`tune: false`)."""
    base = content.get("tune")
    blocks = {"": base} if base is not None else {}
    blocks |= {name: block["tune"] for name, block in (content.get("scales") or {}).items() if "tune" in (block or {})}
    tunes: dict[str, Tune | None] = {}
    for scale, block in blocks.items():
        key = f"scales.{scale}.tune" if scale else "tune"
        shared = base if isinstance(base, dict) else {}
        tunes[scale] = None if block is False else _read_tune(path, key, {**shared, **_mapping(path, key, block)})
    return tunes


def _read_tune(path: Path, key: str, block: dict[str, Any]) -> Tune:
    _refuse_unknown(path, f"{key}.", block, _TUNE_KEYS)
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


def _read_universes(path: Path, content: Mapping[str, Any]) -> dict[str, Universe]:
    """The universe of the file, and that of each scale that refines it: {scale: universe}, with "" for the others."""
    listed = _mapping(path, "scales", content.get("scales"))
    scales = {name: _mapping(path, f"scales.{name}", block) for name, block in listed.items()}
    blocks = {name: block["universe"] for name, block in scales.items() if "universe" in block}
    if content.get("universe") is None:
        if blocks:
            cause = f"{path}: 'scales.{next(iter(blocks))}.universe' refines a universe that the sweep does not have"
            raise UserError(cause, "write universe: {settings: 12, factors: {...}} at the top")
        return {}
    for key, mend in (
        ("seeds", "remove it: the numbers of the settings are the seeds"),
        ("tune", "remove it, and make what it tunes a factor of the universe"),
    ):
        places = [key] * (key in content) + [f"scales.{name}.{key}" for name, block in scales.items() if key in block]
        if places:
            raise UserError(f"{path}: '{places[0]}' and 'universe' exclude each other", mend)
    base = _mapping(path, "universe", content["universe"])
    universes = {"": _read_universe(path, "universe", base)}
    for name, block in blocks.items():
        key = f"scales.{name}.universe"
        universes[name] = _read_universe(path, key, {**base, **_mapping(path, key, block)})
    return universes


def _read_universe(path: Path, key: str, block: dict[str, Any]) -> Universe:
    _refuse_unknown(path, f"{key}.", block, _UNIVERSE_KEYS)
    count, seed = block.get("settings"), block.get("seed", 0)
    if not isinstance(count, int) or isinstance(count, bool) or not 2 <= count <= MOST_SEEDS:
        raise UserError(f"{path}: '{key}.settings' is not a whole number from 2 to {MOST_SEEDS}", "write settings: 12")
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise UserError(f"{path}: '{key}.seed' is not a whole number", "write seed: 0")
    texts = _mapping(path, f"{key}.factors", block.get("factors"))
    if not texts:
        raise UserError(f"{path} has no '{key}.factors'", "write factors: {model.layers: [2, 3, 4]}")
    for factor, values in texts.items():
        listed = [str(value) for value in values] if isinstance(values, list) else []
        if twice := [value for value in listed if listed.count(value) > 1]:
            raise UserError(f"{path}: '{key}.factors.{factor}' lists {twice[0]} twice", "list it once")
        if (named := find_key(str(factor))) in (*_ELSEWHERE, REPLICATE):
            raise UserError(f"{path}: '{key}.factors' names '{named}', which is no setting", "remove it")
    known = _mapping(path, f"{key}.known", block.get("known"))
    for arm, direction in known.items():
        if direction not in DIRECTIONS:
            raise UserError(f"{path}: '{key}.known.{arm}' is {direction}", f"write {arm}: {' or '.join(DIRECTIONS)}")
    with located(f"{path}: {key}.factors"):
        factors = {str(name): dimension(str(name), values) for name, values in texts.items()}
    return Universe(count, seed, factors, texts, {str(arm): str(direction) for arm, direction in known.items()})


def _require_hashable(path: Path, key: str, value: object) -> None:
    """Raises UserError naming the key of a value that a record cannot hold: a date, infinity or not a number."""
    if isinstance(value, Mapping):
        for name, below in value.items():
            _require_hashable(path, f"{key}.{name}".lstrip("."), below)
    elif isinstance(value, list):
        for item in value:
            _require_hashable(path, key, item)
    elif isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{path}: '{key}' has the value {value}", "write a finite number")
    elif not isinstance(value, str | int | float | None):
        raise UserError(
            f"{path}: '{key}' has the value {value}, which YAML reads as a {type(value).__name__}", "quote it"
        )


def _refuse_unknown(path: Path, prefix: str, content: Mapping[str, Any], keys: Sequence[str]) -> None:
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


def _overrides(path: Path, key: str, value: object) -> tuple[str, ...]:
    listed = _strings(path, key, value)
    for text in listed:
        if "=" not in text and not text.startswith("~"):
            raise UserError(f"{path}: '{text}' in '{key}' is not an override", "write key=value or group=choice")
        if (name := text.partition("=")[0].lstrip("+~")) in _ELSEWHERE:
            raise UserError(f"{path}: '{key}' sets '{name}', which has no effect there", _ELSEWHERE[name])
    return listed


def _seeds(path: Path, key: str, value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    numbers = isinstance(value, list) and all(isinstance(seed, int) and not isinstance(seed, bool) for seed in value)
    if not numbers or not value or min(value) < 0 or len(set(value)) < len(value):
        raise UserError(f"{path}: '{key}' is not a list of distinct seeds", "write [0, 1, 2]")
    return tuple(value)


def _claims(path: Path, value: Any) -> tuple[tuple[str, ...], dict[str, Sentence]]:
    """(The claims in their language, {claim: its plain sentence} for those that have one)."""
    listed = [] if value is None else value
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    for entry in entries:
        _refuse_unknown(path, "claims.", entry, ("claim", *Sentence._fields))
        if missing := [key for key in ("claim", "says", "whose") if not isinstance(entry.get(key), str)]:
            raise UserError(f"{path}: a claim has no '{missing[0]}'", "write claim, says and whose, or the claim alone")
        for key, known in (("whose", tuple(OWNERS)), ("about", SUBJECTS)):
            if entry.get(key, known[0]) not in known:
                raise UserError(f"{path}: '{key}: {entry[key]}' is unknown", f"use {', '.join(known)}")
    texts = [entry["claim"] if isinstance(entry, dict) else entry for entry in listed] if entries else listed
    sentences = {one["claim"]: Sentence(one["says"], one["whose"], one.get("about", QUALITY)) for one in entries}
    return _strings(path, "claims", texts), sentences


def _arms(path: Path, key: str, arms: Mapping[Any, Any], reserved: Sequence[str] = ()) -> dict[str, tuple[str, ...]]:
    for name in arms:
        usable = isinstance(name, str) and _NAME.fullmatch(name) and name.lower() not in (*HYDRA_WORDS, *reserved)
        if not usable:
            raise UserError(f"{path}: '{name}' in '{key}' cannot name an arm", _HOW_TO_NAME)
    return {name: _overrides(path, f"{key}.{name}", listed) for name, listed in arms.items()}


def _generate_arms(path: Path, arms: Mapping[str, Any]) -> dict[str, Any]:
    """The arms with the blocks that generate arms written out, {name: overrides}.

    Raises UserError for a block without parts, and for a name that two arms have.
    """
    written: dict[str, Any] = {}
    for name, value in arms.items():
        generated = {name: value}
        if name in BLOCKS:
            parts = _read_parts(path, name, value)
            if name == ONE_AT_A_TIME:
                generated = {"base": [], **parts}
            else:
                kept = {"full": list(parts)}
                kept |= {f"without_{left}": [part for part in parts if part != left] for left in parts}
                generated = {arm: [text for part in kept[arm] for text in parts[part]] for arm in kept}
        if taken := written.keys() & generated.keys():
            raise UserError(f"{path}: two arms are named '{min(taken)}'", "name the parts: {NAME: key=value}")
        written |= generated
    return written


def _read_parts(path: Path, block: str, value: object) -> dict[str, list[str]]:
    """{name of a part: its overrides}. A part without a name is `masking` where it is left out, else `rate_0.4`."""
    if isinstance(value, dict) and value:
        return {str(name): part if isinstance(part, list) else [part] for name, part in value.items()}
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise UserError(f"{path}: 'arms.{block}' is not a list of overrides", f"write {block}: [key=value, key=value]")
    parts: dict[str, list[str]] = {}
    for override in value:
        key, _, chosen = override.lstrip("+~").partition("=")
        name = re.split(r"[./@]", key)[-1]
        if block == ONE_AT_A_TIME and chosen:
            name += "_" + re.sub(r"[^A-Za-z0-9_.-]+", "_", chosen)
        if name in parts:
            raise UserError(
                f"{path}: two parts of 'arms.{block}' are named '{name}'", "name the parts: {NAME: key=value}"
            )
        parts[name] = [override]
    return parts


def _check(sweep: Sweep) -> None:
    """Raises UserError for the first thing in the file that does not fit the rest of it."""
    if not _NAME.fullmatch(sweep.study):
        raise UserError(f"{sweep.path}: study '{sweep.study}' cannot name a folder", _HOW_TO_NAME)
    if len(sweep.arms) < 2:
        near = [block for arm in sweep.arms for block in nearest(arm, BLOCKS, 0.8)]
        mend = f"did you mean {near[0]}?" if near else "give two arms, or run it with `paribus train`"
        raise UserError(f"{sweep.path}: a sweep needs two arms or more", mend)
    if sweep.baseline not in sweep.arms:
        its_arms = f"its arms: {', '.join(sweep.arms)}"
        raise UserError(f"{sweep.path}: baseline '{sweep.baseline}' is not an arm", its_arms)
    if sweep.matched not in MATCHED and sweep.matched.rpartition(".")[2] not in MATCHED[:-1]:
        mend = f"use {', '.join(MATCHED)}, or STAGE.tokens and the like"
        raise UserError(f"{sweep.path}: matched '{sweep.matched}' is unknown", mend)
    if sweep.matched == UNMATCHED and not any(name.startswith(_BUDGETS) for name in sweep.varies):
        raise UserError(
            f"{sweep.path}: 'matched: none', but no arm varies a budget", "match a budget such as tokens, or vary one"
        )
    _check_scales(sweep)
    _check_universes(sweep)
    _require_arms(sweep, SCRATCH, [*sweep.references, *sweep.references.values()])
    for other in sweep.references.values():
        if "untrained=true" not in sweep.arms[other]:
            raise UserError(f"{sweep.path}: '{other}' in '{SCRATCH}' is pre-trained", "name an arm with untrained=true")
    for tune in sweep.tunes.values():
        if tune is not None and tune.on not in sweep.columns:
            raise UserError(f"{sweep.path}: 'tune.on' names the unknown column '{tune.on}'", _its_columns(sweep))
    if twice := [column for column in sweep.columns if sweep.columns.count(column) > 1]:
        raise UserError(f"{sweep.path}: 'columns' names {twice[0]} twice", "name it once")
    ours = [column for column in sweep.columns if column not in (sweep.published.get("metrics") or ())]
    check_columns(sweep.path, ours, sweep.all_overrides)  # a paper may have tasks that are not here
    with located(str(sweep.path)):
        for stated in (sweep, *(sweep.at(scale) for scale in sweep.scales)):
            for text in stated.claims:
                _check_losses(stated, sweep.parse_claim(text))
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
        _require_arms(sweep, f"scales.{scale}.arms", refinement.arms.keys() - {SCRATCH})
        for text in refinement.arms.get(SCRATCH, ()):
            if not text.startswith("finetune."):
                cause = f"{sweep.path}: '{text}' in 'scales.{scale}.arms.{SCRATCH}' is not a fine-tuning setting"
                raise UserError(cause, "the anchor is the baseline but for its fine-tuning: set finetune.KEY=VALUE")


def _check_universes(sweep: Sweep) -> None:
    """A factor belongs to the settings alone: no arm sets it, a part of it, or what holds it.

    An arm may choose the group that holds it if its choice has the key: the value of the setting outlasts the choice.
    """
    refined = (refinement.arms.items() for refinement in sweep.scales.values())
    for universe in sweep.universes.values():
        _require_arms(sweep, "universe.known", universe.known)
        if sweep.baseline in universe.known or TWIN in universe.known:
            raise UserError(f"{sweep.path}: 'universe.known' names the baseline", "name an arm that is better or worse")
        for arm, overrides in (*sweep.arms.items(), *chain.from_iterable(refined)):
            for text in overrides:
                key = find_key(text)
                for factor in universe.factors:
                    varied = find_key(factor)
                    sets = f"{key}.".startswith(f"{varied}.") or f"{varied}.".startswith(f"{key}.")
                    if sets and not _leaves_free(text, varied):
                        cause = f"{sweep.path}: the arm {arm} sets '{key}', and the universe varies '{factor}'"
                        raise UserError(cause, "take it out of universe.factors, or out of the arm")


def _leaves_free(override: str, factor: str) -> bool:
    """Whether an override chooses a group, such as `input=segment_pair`, and its choice has the factor as a key."""
    group, _, choice = override.partition("=")
    below, _, key = factor.rpartition(".")
    if not is_group(group) or below != group.replace("/", ".") or choice not in choices(group):
        return False
    return any(key in load_mapping(path) for root in roots() if (path := root / group / f"{choice}.yaml").is_file())


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


def _check_published(sweep: Sweep) -> None:
    """The mapping to the paper: its table, {our arm: its row}, {our column: its metric}."""
    if not sweep.published:
        return
    _refuse_unknown(sweep.path, "published.", sweep.published, ("table", "rows", "metrics"))
    rows = _mapping(sweep.path, "published.rows", sweep.published.get("rows"))
    metrics = _mapping(sweep.path, "published.metrics", sweep.published.get("metrics"))
    _require_arms(sweep, "published.rows", rows)
    with located(str(sweep.path)):
        paper = published.table(str(sweep.published.get("table")))
        for row in rows.values():
            paper.row(str(row))
            for metric in metrics.values():
                published.value(paper.id, str(row), str(metric))
        if unknown := [column for column in metrics if column not in sweep.columns]:
            raise UserError(f"'published.metrics' names the unknown column '{unknown[0]}'", _its_columns(sweep))


def _require_arms(sweep: Sweep, key: str, arms: Iterable[str]) -> None:
    for name in arms:
        if name not in sweep.arms:
            its_arms = f"its arms: {', '.join(sweep.arms)}"
            raise UserError(f"{sweep.path}: '{key}' names the unknown arm '{name}'", its_arms)


def _its_columns(sweep: Sweep) -> str:
    return f"its columns: {', '.join(sweep.columns)}"
