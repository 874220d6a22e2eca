"""Nothing of other packages is replaced: not on import, and not by a run, a search or a W&B log."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WATCH = """
import importlib, pkgutil, sys, types

FOREIGN = (
    "hydra", "omegaconf", "pytorch_lightning", "lightning_fabric", "wandb", "optuna", "torchmetrics", "datasets",
    "transformers.models.bert", "transformers.modeling_utils", "torch.nn.modules", "torch.optim", "logging",
)
for name in (
    "hydra.main", "hydra._internal.hydra", "hydra._internal.config_loader_impl", "hydra._internal.defaults_list",
    "hydra._internal.config_repository", "hydra.core.plugins", "pytorch_lightning", "torchmetrics", "optuna",
    "lightning_fabric.utilities.registry", "wandb", "wandb.sdk.lib.service.service_port_file", "datasets",
    "pytorch_lightning.trainer.connectors.callback_connector", "transformers.models.bert.modeling_bert",
    "pytorch_lightning.trainer.connectors.signal_connector", "wandb.sdk.launch.inputs.internal",
):
    importlib.import_module(name)

def snapshot():
    # functions and classes of every module, and the members of every class; what a library counts or caches is no code
    found = {}
    for name, module in list(sys.modules.items()):
        if not name.startswith(tuple(f"{one}." for one in FOREIGN)) and name not in FOREIGN:
            continue
        found[name, "", ""] = module
        for attribute, value in list(vars(module).items()) if isinstance(module, types.ModuleType) else ():
            if isinstance(value, types.ModuleType) or not callable(value):
                continue
            found[name, attribute, ""] = value
            if isinstance(value, type) and value.__module__ == name:
                for member, own in list(vars(value).items()):
                    if callable(own) or isinstance(own, (property, classmethod, staticmethod)):
                        found[name, attribute, member] = own
    return found

def is_their_own(key, value):
    # wandb.init puts methods of its run in the place of wandb.log and others
    return str(getattr(value, "__module__", "")).partition(".")[0] == key[0].partition(".")[0]

def changed(before):
    after = snapshot()
    new = {key: after.get(key) for key, value in before.items() if after.get(key) is not value}
    return sorted(".".join(filter(None, key)) for key, value in new.items() if not is_their_own(key, value))

before = snapshot()
"""
IMPORTS = """
import paribus
for module in pkgutil.walk_packages(paribus.__path__, "paribus."):
    if module.name != "paribus.__main__":
        importlib.import_module(module.name)
print(len(before) > 3000, changed(before))
"""
RUNS = """
from paribus.commands.cli import main
arguments = sys.argv[1:]
assert main(["train", *arguments, "logger=wandb", "seed=1"]) == 0
assert main(["train", "-m", *arguments, "logger=none", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=1", "seed=0",
             "optimizer.lr=interval(1e-4,1e-3)"]) == 0
print(len(before) > 3000, changed(before))
"""
OTHER = """
import hydra, sys
from omegaconf import OmegaConf

@hydra.main(version_base="1.3", config_path=".", config_name="other")
def main(cfg):
    print(OmegaConf.to_yaml(cfg), sorted(name for name in sys.modules if "paribus" in name))

main()
"""


def python(code: str, *arguments: str, cwd: Path) -> str:
    environment = {**os.environ, "WANDB_MODE": "offline"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_importing_all_of_paribus_replaces_nothing(tmp_path: Path) -> None:
    assert python(WATCH + IMPORTS, cwd=tmp_path).splitlines()[-1] == "True []"


@pytest.mark.slow
def test_a_run_a_search_and_a_wandb_log_replace_nothing(arguments: list[str], tmp_path: Path) -> None:
    assert python(WATCH + RUNS, *arguments, cwd=tmp_path).splitlines()[-1] == "True []"


def test_another_hydra_application_composes_the_same_and_imports_nothing_of_ours(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("scale: smoke\nfamily: bert\nrecipe: none\n")
    (tmp_path / "conf" / "experiment").mkdir(parents=True)
    (tmp_path / "app.py").write_text(OTHER)
    done = subprocess.run(
        [sys.executable, "app.py", "scale=nonsense"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "scale: nonsense\nfamily: bert\nrecipe: none\n []\n", done.stderr
