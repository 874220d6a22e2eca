"""What made a record: code, package versions and text. No command mixes runs on different texts in one study."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paribus import __version__
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.git import ask_git
from paribus.runs.folder import RECORD, RunFolder
from paribus.runs.identity import Identity
from paribus.runs.manifest import read_manifest
from paribus.runs.record import read_record
from paribus.runs.store import RESULTS

CHECKOUT = Path(__file__).parents[3]  # that this code runs from; not a checkout if the package was installed
PACKAGES = (
    "torch", "pytorch-lightning", "transformers", "tokenizers", "datasets", "hydra-core", "omegaconf", "numpy",
    "scipy", "torchmetrics", "wandb", "optuna",
)  # fmt: skip


@cache
def versions() -> Mapping[str, str]:
    """{package: version} of what computes the numbers, with Python's and our own. What is imported does not change."""
    known = {"python": platform.python_version(), "paribus": __version__}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            known[package] = version(package)
    return MappingProxyType(known)


def git_state() -> dict[str, Any] | None:
    """{"commit", "dirty"} of the checkout that this code runs from; None outside of one.

    Committed results compute nothing: a sweep that adds its records to them leaves the checkout clean.
    """
    if not (CHECKOUT / ".git").exists():
        return None
    commit = ask_git(CHECKOUT, "rev-parse", "HEAD")
    changed = ask_git(CHECKOUT, "status", "--porcelain", "-uno", "--", ":/", f":(exclude,top){RESULTS}")
    return {"commit": commit.decode().strip(), "dirty": bool(changed)} if commit else None


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
        corpora: {arm/seed<k>: the config of its text}.

    Raises:
        UserError: if the last command's runs are on another text. If only the content of the text has changed, a
            message says so.
    """
    manifest = read_manifest(root, study, scale)
    for label, signature in (manifest.runs if manifest else {}).items():
        if label not in identities or label not in corpora or signature == identities[label].signature:
            continue
        folder = identities[label].folder
        old_folder = folder.with_name(folder.name.replace(identities[label].signature, signature))
        old, _ = read_record(old_folder / RECORD)
        if old is None or old.text in (None, identities[label].data["text"]):
            continue
        before, now = (RunFolder(old_folder).read_config() or {}).get("corpus") or {}, corpora[label]
        table, text = f"{study} at scale={scale}", name_text(now)
        if all(before.get(key) == now.get(key) for key in _PLACES):
            say(f"The text {text} has changed since the last run: the new runs replace the table of {table}.")
            return
        suffix = "".join(letter if letter.isalnum() else "_" for letter in Path(text).stem.lower())
        cause = f"{table} has a table on the text {name_text(before)}, and this command trains on {text}"
        raise UserError(cause, f"add study=NAME, such as study={study}_{suffix}")
