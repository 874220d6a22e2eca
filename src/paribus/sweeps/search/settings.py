"""The settings of a search, read from `hydra.sweeper` and checked before the first trial."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from paribus.core.build import build
from paribus.core.checksums import digest
from paribus.core.config import compose
from paribus.core.config_errors import explained
from paribus.core.errors import UserError, suggest
from paribus.core.recipes import without_recipe
from paribus.core.trust import check_name
from paribus.core.values import check_types
from paribus.sweeps.search.space import Choice, Dimension, dimension
from paribus.sweeps.search.storage import JOURNAL, without_password
from paribus.verdict.metrics import LOSS

if TYPE_CHECKING:
    from hydra.types import HydraContext
    from omegaconf import DictConfig
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial

DIRECTIONS = ("minimize", "maximize")
_URL = "use journal:FILE, sqlite:///FILE or postgresql://..."
_COMPONENT = "write a mapping with the _target_ of a class, or choose hydra/sweeper/sampler=NAME"
_OUR_KEYS = {"trial", "evaluation", "objective"}  # keys of our own application, whose jobs return their metrics by name
_NOT_SEMANTIC = ("hydra", "paths", "profile", "logger", "trial", "run_dir", "sweep_hash", "search")


@dataclass(frozen=True)
class Settings:
    """A search.

    Args:
        fixed: overrides of every trial.
        signature: hash of the space, the objective and the fixed config.
        reports: whether runs get the key `trial`, through which they report to the pruner.
        logger: of the config; gets a summary of the search.
        ours: whether the application is `paribus train`, whose jobs get the recipe that their overrides imply.
    """

    space: Mapping[str, Dimension]
    fixed: tuple[str, ...]
    directions: tuple[str, ...]
    objectives: tuple[str, ...]
    url: str
    study: str
    folder: Path
    signature: str
    trials: int
    jobs: int
    sampler: Mapping[str, Any]
    pruner: Mapping[str, Any] | None
    seeds: tuple[int, ...]
    retries: int
    max_failure_rate: float
    timeout: float | None
    resume: bool | str
    conditional: Callable[[Trial], None] | None
    reports: bool
    logger: Mapping[str, Any] | None = None
    ours: bool = False

    @property
    def seed(self) -> int:
        return int(self.sampler.get("seed") or 0)

    @property
    def ordered(self) -> bool:
        """Whether a grid is run in its order. Optuna's GridSampler repeats points if there are several workers."""
        return self._sampler_class == "GridSampler"

    @property
    def _sampler_class(self) -> str:
        return str(self.sampler["_target_"]).rsplit(".", 1)[-1]

    def build_sampler(self, seed: int) -> BaseSampler:
        """The sampler of one draw; a quasi-random sequence keeps one seed."""
        from optuna.samplers import RandomSampler

        if self.ordered:
            return RandomSampler(seed)  # the ledger queues the points
        arguments = {**self.sampler, "seed": self.seed if self._sampler_class == "QMCSampler" else seed}
        if self._sampler_class == "TPESampler":
            arguments.setdefault("constant_liar", len(self.directions) == 1)
        sampler: BaseSampler = build(arguments)
        return sampler


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_whole(value: object, least: int) -> bool:
    return type(value) is int and value >= least


def _is_number(value: object, least: float, most: float = math.inf) -> bool:
    return type(value) in (int, float) and least <= cast("float", value) <= most and math.isfinite(cast("float", value))


def _is_component(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("_target_"), str)


def _are_texts(value: object) -> bool:
    return value is None or (_as_list(value) != [] and all(map(_is_text, _as_list(value))))


_KEYS: Mapping[str, tuple[Callable[[Any], bool], str]] = {  # of hydra.sweeper: (whether it takes a value, what to give)
    "sampler": (_is_component, _COMPONENT),
    "direction": (
        lambda value: value is not None and _are_texts(value) and set(_as_list(value)) <= set(DIRECTIONS),
        f"use {' or '.join(DIRECTIONS)}, or a list of them",
    ),
    "storage": (lambda value: value is None or (_is_text(value) and ":" in value), _URL),
    "study_name": (lambda value: value is None or _is_text(value), "give a name, or null"),
    "n_trials": (lambda value: _is_whole(value, 1), "give an integer of at least 1"),
    "n_jobs": (lambda value: _is_whole(value, 1), "give an integer of at least 1"),
    "max_failure_rate": (lambda value: _is_number(value, 0, 1), "give a number from 0 to 1"),
    "params": (lambda value: value is None or isinstance(value, Mapping), "write {KEY: interval(a, b)}"),
    "custom_search_space": (lambda value: value is None or _is_text(value), "give module.function, or null"),
    "pruner": (lambda value: value is None or _is_component(value), "write {_target_: optuna.pruners.CLASS}, or null"),
    "seeds": (
        lambda value: value is None or all(_is_whole(seed, 0) for seed in _as_list(value)),
        "give a list of integers, such as [0, 1, 2], or null",
    ),
    "resume": (lambda value: isinstance(value, bool) or value == "force", "give true, false or force"),
    "trial_timeout": (lambda value: value is None or (_is_number(value, 0) and value > 0), "give seconds, or null"),
    "retries": (lambda value: _is_whole(value, 0), "give an integer of at least 0"),
    "objective": (_are_texts, "give the name of a metric, or a list with one for each direction"),
    "folder": (lambda value: value is None or _is_text(value), "give a folder, or null"),
}


def check_settings(given: Mapping[str, Any]) -> None:
    """Check the resolved keys of `hydra.sweeper`. Raises UserError naming the first that is unknown or has no use."""
    for key, value in given.items():
        if key.startswith("_"):
            continue
        if key not in _KEYS:
            raise UserError(f"unknown key 'hydra.sweeper.{key}'", suggest(key, list(_KEYS)))
        fits, mend = _KEYS[key]
        if not fits(value):
            shown = "null" if value is None else without_password(str(value))[:60]
            raise UserError(f"hydra.sweeper.{key}={shown} cannot be used", mend)
    for key in ("sampler", "pruner"):
        if given[key] is not None:
            check_types(given[key], f"hydra.sweeper.{key}")


def try_sampler(sampler: Mapping[str, Any], direction: object) -> None:
    """Draw two trials of a toy search: some samplers import a package, or look at their settings, only then.

    Raises UserError if the sampler's package is not installed, and for settings that it refuses.
    """
    import optuna

    place, name = "hydra.sweeper.sampler", str(sampler["_target_"]).rsplit(".", 1)[-1]
    if name == "GridSampler":  # our ledger runs a grid
        return
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    directions = _as_list(direction)
    quarter: optuna.distributions.BaseDistribution = optuna.distributions.FloatDistribution(0, 1, step=0.25)
    space = {"x": quarter, "y": quarter}  # which every sampler can draw from
    try:
        study = optuna.create_study(sampler=build(dict(sampler)), directions=directions)
        for _ in range(2):
            study.tell(study.ask(space), [0.0] * len(directions))
    except ImportError as error:
        package = error.name or str(error).partition("'")[2].partition("'")[0]
        cause = f"{name} needs the package '{package}', which is not installed"
        raise UserError(cause, f"pip install {package}, or choose another hydra/sweeper/sampler=") from error
    except (UserError, ValueError, TypeError, AssertionError) as error:
        raise UserError(f"{place} cannot be used ({error})", f"see the arguments of {name} in Optuna") from error


def read_settings(
    given: Mapping[str, Any], config: DictConfig, context: HydraContext, arguments: Sequence[str]
) -> Settings:
    """Read `hydra.sweeper` and the command line. Raises UserError naming the key that cannot be used."""
    from omegaconf import OmegaConf

    given = {
        key: OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
        for key, value in given.items()
    }
    check_settings(given)
    ours = config.keys() >= _OUR_KEYS
    space, fixed = _read_space(given, context, without_recipe(arguments) if ours else arguments)
    directions = tuple(_as_list(given["direction"]))
    objectives, seeds = tuple(_as_list(given["objective"])), tuple(_as_list(given["seeds"]))
    _check(given, space, directions)
    try_sampler(given["sampler"], given["direction"])
    with explained():  # the config of a trial without its parameters, unresolved
        composed = compose(fixed) if ours else context.config_loader.load_sweep_config(config, list(fixed))
    base: Any = OmegaConf.to_container(composed, resolve=False)
    if not objectives and ours and len(directions) == 1:
        objectives = (LOSS,)
    if len(objectives) != len(directions) and (objectives or ours):
        cause = f"hydra.sweeper.objective names {len(objectives)} objectives for {len(directions)} directions"
        raise UserError(cause, "give one name for each, such as [mlm_loss, flops]")
    texts, custom = {key: repr(part) for key, part in space.items()}, given["custom_search_space"]
    fixed_config = {key: value for key, value in base.items() if key not in _NOT_SEMANTIC}
    signature = digest([[texts, custom, directions, objectives, seeds], fixed_config])
    study = given["study_name"] or f"search-{signature}"
    folder = Path(given["folder"] or Path(str(config.hydra.sweep.dir)) / study)
    storage = given["storage"]
    url = without_password(storage) if storage else f"{JOURNAL}{(folder / 'journal.log').resolve()}"
    return Settings(
        space, fixed, directions, objectives, url, study, folder, signature,
        trials=given["n_trials"], jobs=given["n_jobs"],
        sampler=given["sampler"], pruner=given["pruner"],
        seeds=seeds, retries=given["retries"],
        max_failure_rate=float(given["max_failure_rate"]), timeout=given["trial_timeout"], resume=given["resume"],
        conditional=_load_conditional(custom, fixed),
        reports="trial" in base or given["pruner"] is not None, logger=base.get("logger") if "trial" in base else None,
        ours=ours,
    )  # fmt: skip


def _read_space(
    given: Mapping[str, Any], context: HydraContext, arguments: Sequence[str]
) -> tuple[dict[str, Dimension], tuple[str, ...]]:
    """`params` and then the command line, split into the space and the fixed overrides."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parser = OverridesParser.create(config_loader=context.config_loader)
    texts: dict[str, Any] = dict(given["params"] or {})
    for override in parser.parse_overrides(list(arguments)):
        key, equals, value = str(override.input_line).partition("=")
        texts.pop(key, None)
        texts[key] = value if equals else None
    space: dict[str, Dimension] = {}
    fixed: list[str] = []
    for key, value in texts.items():
        if value is None:
            fixed.append(key)
        elif isinstance(value, list) or parser.parse_override(f"{key}={value}").is_sweep_override():
            space[key] = dimension(key, value)
        else:
            fixed.append(f"{key}={value}")
    return space, tuple(fixed)


def _check(given: Mapping[str, Any], space: Mapping[str, Dimension], directions: Sequence[str]) -> None:
    if given["pruner"] is not None and len(directions) > 1:
        raise UserError("hydra.sweeper.pruner needs one objective", "remove the pruner, or give one direction")
    if not space and given["custom_search_space"] is None:
        raise UserError("the search has no space", "give hydra.sweeper.params or key=interval(a, b)")
    wide = [key for key, part in space.items() if not isinstance(part, Choice)]
    if wide and "GridSampler" in str(given["sampler"]["_target_"]):
        mend = f"give choice(...) or range(...) for {wide[0]}, or use another sampler"
        raise UserError(f"a grid needs a finite space, but {wide[0]} is an interval", mend)
    try:
        if given["pruner"] is not None:
            build(given["pruner"])
    except UserError as error:
        raise UserError(f"hydra.sweeper.pruner cannot be built ({error})", "see its arguments in Optuna") from error


def _load_conditional(path: str | None, fixed: Sequence[str]) -> Callable[[Trial], None] | None:
    if path is None:
        return None
    from hydra.utils import get_method
    from omegaconf import OmegaConf

    check_name(path, "hydra.sweeper.custom_search_space")
    try:
        function = get_method(path)
    except Exception as error:
        raise UserError(f"hydra.sweeper.custom_search_space={path} cannot be imported", str(error)) from error
    cfg = OmegaConf.from_dotlist([text.lstrip("+") for text in fixed if "=" in text])
    return lambda trial: function(cfg, trial)


def _as_list(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def hide_password(config: DictConfig, settings: dict[str, Any]) -> None:
    """Remove the password of a PostgreSQL URL from everything that Hydra writes or logs; libpq still gets it."""
    from omegaconf import open_dict

    storage = settings.get("storage")
    if not isinstance(storage, str) or (clean := without_password(storage)) == storage:
        return
    settings["storage"] = clean
    with open_dict(config):
        config.hydra.sweeper.storage = clean
        overrides = config.hydra.overrides.hydra
        for at, text in enumerate(overrides):
            if text.lstrip("+").startswith("hydra.sweeper.storage="):
                overrides[at] = f"hydra.sweeper.storage='{clean}'"
