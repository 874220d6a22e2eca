"""`paribus train`: one run, or a Hydra multirun."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import uuid4

import click

from paribus.core.arguments import Arguments, Flag, Verb
from paribus.core.config import compose, compose_whole, plain, require_keys
from paribus.core.config_errors import explained
from paribus.core.config_names import conf_dir, is_group
from paribus.core.errors import UserError
from paribus.runs.wandb_tracker import refuse_agent
from paribus.sweeps.request import CACHE, RUNS, SCALE

if TYPE_CHECKING:
    from omegaconf import DictConfig

MULTIRUN = {"-m", "--multirun"}
_SINGULAR = {"seeds": "seed", "arms": "arm"}
_FLAGS_WITH_VALUE = (
    "--config-name", "--config-path", "--config-dir", "--package", "-cn", "-cp", "-cd", "-p", "--info", "--cfg", "-c",
    "-i",
)  # fmt: skip
COMPLETION = ("-sc", "--shell-completion")


def _describe_config(page: click.HelpFormatter) -> None:
    """The groups and keys of the config with their defaults and comments, for the help."""
    from paribus.core.config_names import default_choices, describe_choice, plain_keys

    page.write_text("The config and its defaults, before family= and the recipe of scale= apply.")
    with page.section("Groups (group=choice); the shell completes the choices"):
        page.write_dl([(f"{one}={name}", describe_choice(one, name)) for one, name in default_choices().items()])
    with page.section("Keys (key=value)"):
        page.write_dl([(f"{key.name}={key.default}", key.comment) for key in plain_keys()], col_max=40)
    page.write_paragraph()
    page.write_text("`paribus train --cfg job` prints every key with its value, including those of the groups.")


@click.command(
    cls=Verb,
    params=[
        SCALE,
        RUNS,
        CACHE,
        Flag("-m", "multirun: one run per combination of values"),
        Flag("--cfg", "print the config and train nothing: --cfg job"),
    ],
    example="paribus train masking.rate=0.4 seed=1",
    raw=True,
    overrides=True,
    more=_describe_config,
)
def train(given: Arguments) -> int:
    """Train one run: pre-train, evaluate, fine-tune, record. This is a Hydra application: -m trains one run for
    every combination of the values in key=a,b.
    \f
    The status is 1 if a run diverged. The config is composed and checked first, its node `hydra`
    included, since Hydra makes objects of that before it hands a config on. In a multirun, a job with bad input is
    reported and the others still run; the status is then 2. Under a launcher that starts its own processes, all
    jobs run too; then the first error is raised.
    """
    import hydra

    from paribus.core.recipes import with_recipe

    flags, overrides = read_arguments(given.argv)
    several, here = bool(MULTIRUN & set(flags)), os.getpid()
    if several:
        refuse_agent()
        places = [text.partition("=")[2] for text in overrides if text.startswith("hydra.sweep.dir=")]
        if places and not any(text.startswith(f"{RUNS.config}=") for text in overrides):
            overrides = [*overrides, f"{RUNS.config}={places[-1]}"]  # the runs are then below `hydra.sweep.dir`
    failures: list[UserError] = []
    folders: list[Path] = []
    ended: Path | None = None  # of a multirun, whose jobs may be other processes
    with explained():
        if "--hydra-help" not in flags:
            config = check_config(overrides, checked="--cfg" in flags or "-c" in flags)
            if several:
                ended = Path(str(config.paths.runs)).expanduser().absolute() / f".ended-{uuid4().hex}.jsonl"
            overrides = with_recipe(overrides)

        def job(_: DictConfig) -> float | dict[str, float] | None:
            from hydra.core.hydra_config import HydraConfig
            from hydra.types import RunMode

            from paribus.training.run import run

            hydra_config = HydraConfig.get()
            if hydra_config.mode == RunMode.MULTIRUN:  # each run of `scale=smoke,cpu` has a recipe of its own
                cfg = compose(list(hydra_config.overrides.task))
            else:
                cfg = _without_hydra(config)
            if cfg.trial is not None:
                return run_trial(cfg)  # the search reports its errors
            try:
                folder = run(cfg)
                if ended is None:
                    folders.append(folder)
                else:
                    ended.parent.mkdir(parents=True, exist_ok=True)  # not there yet if each run has its own `run_dir`
                    with ended.open("a", encoding="utf-8") as file:
                        file.write(json.dumps([hydra_config.job.num, str(folder.absolute())]) + "\n")
                return report_loss(folder, silent=several)
            except UserError as error:
                if os.getpid() != here:  # a launcher's process: it hands the error back, which ends the multirun
                    raise
                failures.append(error)
                print(f"paribus: {error}", file=sys.stderr)
                return None

        os.environ["HYDRA_FULL_ERROR"] = "1"  # errors reach `explained` instead of Hydra's own printer
        sys.argv = ["paribus train", *flags, *overrides]
        try:
            hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="train")(job)()
        finally:
            folders += read_ended(ended)
    if len(folders) > 1:
        from paribus.reports.multirun import tabulate

        print(tabulate(folders))
    diverged = any(_read(folder)["status"] != "done" for folder in folders)
    return 2 if failures else 1 if diverged else 0


def read_ended(path: Path | None) -> list[Path]:
    """The folders of a command's runs, in the order of its jobs, from the file in which their processes list them."""
    if path is None or not path.is_file():
        return []
    lines = sorted(json.loads(text) for text in path.read_text(encoding="utf-8").splitlines())
    path.unlink()
    here = Path.cwd()
    folders = [Path(folder) for _, folder in lines]
    return [folder.relative_to(here) if folder.is_relative_to(here) else folder for folder in folders]


def check_config(overrides: Sequence[str], checked: bool) -> DictConfig:
    """The config of the command, of a multirun that of its first run, if everything in it may be used.

    Args:
        checked: whether its values are checked as a run checks them, before Hydra prints them.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from paribus.core.plugins import check_hydra
    from paribus.core.trust import check_composed
    from paribus.core.values import check_top

    parsed = OverridesParser.create().parse_overrides(list(overrides))
    swept = {at: override for at, override in enumerate(parsed) if override.is_sweep_override()}
    if hydras := next((override for override in swept.values() if override.key_or_group.startswith("hydra")), None):
        raise UserError(f"{hydras.input_line} gives several values", f"give {hydras.key_or_group} one value")
    values = {  # of each sweep, as single overrides; none of an interval
        at: []
        if override.is_interval_sweep()
        else [f"{override.get_key_element()}={value}" for value in override.sweep_string_iterator()]
        for at, override in swept.items()
    }
    firsts = [values[at][:1] if at in swept else [text] for at, text in enumerate(overrides)]
    config = compose_whole([text for part in firsts for text in part])
    check_composed(config)
    check_hydra(config.hydra)
    check_top(plain(_without_hydra(config)))
    for at, texts in values.items():  # another file may bring another class
        for text in texts[1:] if is_group(swept[at].key_or_group) else ():
            others = [*firsts[:at], [text], *firsts[at + 1 :]]
            try:
                other = compose_whole([text for part in others for text in part])
            except UserError:  # it is reported when its turn comes
                continue
            check_composed(other)
    if checked:
        from paribus.training.description import Run

        Run.of(plain(_without_hydra(config)))
    return config


def _without_hydra(config: DictConfig) -> DictConfig:
    """A composed config without Hydra's own node."""
    from omegaconf import OmegaConf

    return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])


def read_arguments(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """(Hydra's flags with their values, the overrides)."""
    flags: list[str] = []
    overrides: list[str] = []
    waiting = False  # for the value of a flag
    for text in argv:
        if waiting or text.startswith("-"):
            flags.append(text)
            waiting = text in _FLAGS_WITH_VALUE
        else:
            overrides.append(text)
    if any(flag.startswith(COMPLETION) for flag in flags):
        raise UserError("Hydra's shell completion does not know paribus", "use `paribus completion bash`")
    check_flags(flags)
    require_keys(overrides)
    if "--hydra-help" in flags:  # Hydra's page, which knows no key of ours
        return ["--hydra-help"], []
    searches = any(re.match("search=(?!none$)", text) for text in overrides)
    if searches and not MULTIRUN & set(flags):
        raise UserError("a search needs a multirun", "add -m")
    config = {option.name: option.config for option in (RUNS, CACHE)}  # `runs=` as `paths.runs=`, as in every verb
    overrides = [_renamed(text, config) for text in overrides]
    for option in (RUNS, CACHE):
        for text in overrides:
            if text.startswith(f"{option.config}="):
                option.type(text.partition("=")[2], option)
    if "hydra/sweeper=arms" in overrides:  # Hydra refuses a single value of a key that the config lacks
        overrides = [_renamed(text, _SINGULAR) for text in overrides]
    return flags, overrides


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """An override whose key has the name that `names` gives it."""
    key, equals, value = text.partition("=")
    return f"{names.get(key, key)}{equals}{value}"


def check_flags(flags: Sequence[str]) -> None:
    """Raises UserError if Hydra refuses them: its own parser would print a page."""
    from hydra._internal.utils import get_args_parser

    def refuse(message: str) -> NoReturn:
        raise UserError(f"train: {message}", "see `paribus train --help` and `paribus train --hydra-help`")

    parser = get_args_parser()
    parser.error = refuse  # type: ignore[method-assign]
    given = parser.parse_args(list(flags))
    if given.config_dir or given.config_name or given.config_path:  # they would be read after the check of our config
        raise UserError(
            "train: Hydra's --config-dir, --config-name and --config-path are not used", "write into ./conf"
        )
    if given.cfg and given.multirun:
        raise UserError("train: --cfg prints one config", "leave -m out")


def report_loss(folder: Path, silent: bool) -> float | None:
    """The held-out loss of a run. Prints one JSON object on the run, unless a table of all runs follows."""
    from paribus.verdict.metrics import held_out_loss

    record = _read(folder)
    if not silent:
        print(json.dumps({"run": str(folder), "status": record["status"], "metrics": record.get("metrics", {})}))
    return held_out_loss(record.get("metrics", {}))


def _read(folder: Path) -> dict[str, Any]:
    from paribus.runs.folder import RECORD

    record: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    return record


def run_trial(cfg: DictConfig) -> dict[str, float]:
    """The values that a search may optimize: metrics and budget (`flops`, ...) and the held-out `loss`."""
    from paribus.sweeps.search.pruning import reporter
    from paribus.training.run import run
    from paribus.verdict.metrics import LOSS, held_out_loss

    record = _read(run(cfg, reporter(cfg.trial)))
    if record["status"] != "done":
        raise UserError(f"the run {record['status']}: {record.get('error', '')}")
    loss = held_out_loss(record["metrics"])
    return {**record["budget"], **record["metrics"], **({} if loss is None else {LOSS: loss})}
