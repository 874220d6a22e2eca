"""The code and package versions that made a record.

The text of a study: its display name, and the check that no command mixes runs on different texts.
"""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paribus import __version__
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.runs import store
from paribus.runs.archive import RECORD, RunFolder
from paribus.runs.identity import Identity
from paribus.runs.record import read_record
from paribus.runs.store import RESULTS

PACKAGES = (
    "torch", "pytorch-lightning", "transformers", "tokenizers", "datasets", "hydra-core", "omegaconf", "numpy",
    "scipy", "torchmetrics", "wandb", "optuna",
)  # fmt: skip


@cache
def versions() -> Mapping[str, str]:
    """{package: version} of what computes the numbers, with Python's and our own. What is imported does not change."""
    found = {"python": platform.python_version(), "paribus": __version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return MappingProxyType(found)


def git_state() -> dict[str, Any] | None:
    """{"commit", "dirty"} of the checkout that this code runs from; None outside of one.

    Committed results compute nothing: a sweep that adds its records to them leaves the checkout clean.
    """
    top = Path(__file__).parents[3]
    if not (top / ".git").exists():
        return None
    commit = _git(top, "rev-parse", "HEAD")
    changed = _git(top, "status", "--porcelain", "-uno", "--", ":/", f":(exclude,top){RESULTS}")
    return {"commit": commit, "dirty": bool(changed)} if commit else None


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


_PLACES = ("path", "name", "hub", "config", "of", "sets", "_target_")


def name_text(corpus: Mapping[str, Any]) -> str:
    """The display name of a corpus, from its config: `docstrings`, `my_books`, `Salesforce/wikitext`."""
    if path := corpus.get("path"):
        return Path(str(path)).name
    if isinstance(sets := corpus.get("sets"), Mapping):
        return " and ".join(str(one.get("name")) for one in sets.values())
    if isinstance(inner := corpus.get("of"), Mapping):
        return f"{name_text(inner)}, cleaned"
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(corpus.get("_target_", "")).rpartition(".")[2])
    return words.lower() or "unknown"


def check_text(
    root: Path, study: str, scale: str, identities: Mapping[str, Identity], corpora: Mapping[str, Mapping[str, Any]]
) -> None:
    """Refuse to replace the runs of a study on one text by runs on another.

    Args:
        root: of the run folders.
        identities: {arm/seed<k>: of the new run}.
        corpora: {arm: the config of its text}.

    Raises:
        UserError: if the last command's runs are on another text. If only the content of the text has changed, a
            message says so.
    """
    manifest = store.read_manifest(root, study, scale)
    for label, signature in (manifest.runs if manifest else {}).items():
        arm = label.rpartition("/seed")[0]
        if label in identities and arm in corpora and signature != identities[label].signature:
            folder = identities[label].folder
            name = folder.name.replace(identities[label].signature, signature)
            old, _ = read_record(folder.with_name(name) / RECORD)
            if old is None or old.text in (None, identities[label].data["text"]):
                continue
            config = store.read_config(RunFolder(folder.with_name(name))) or {}
            _compare(study, scale, config.get("corpus") or {}, corpora[arm])
            return


def _compare(study: str, scale: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    before, now = name_text(old), name_text(new)
    if any(old.get(key) != new.get(key) for key in _PLACES):
        own = "".join(letter if letter.isalnum() else "_" for letter in Path(now).stem.lower())
        cause = f"{study} at scale={scale} has a table on the text {before}, and this command trains on {now}"
        raise UserError(cause, f"add study=NAME, such as study={study}_{own}")
    say(f"The text {now} has changed since the last run: the new runs replace the table of {study} at scale={scale}.")
