"""The text of a study: its display name, and the check that no command mixes runs on different texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.runs import store
from paribus.runs.identity import Identity
from paribus.runs.record import read_record
from paribus.runs.stored import RECORD, RunFolder

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
