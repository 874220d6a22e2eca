"""What is wrong with a config, in one line: errors of Hydra and OmegaConf, unknown keys, keys of earlier versions."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from paribus.core.config_names import PRESETS, choices, conf_dir, settings, top_keys
from paribus.core.errors import UserError, nearest, suggest
from paribus.core.files import is_name

REFUSED = re.compile(r"Could not override '([^'@]+)")  # what Hydra says of a key that it does not know
_TYPES = {  # what OmegaConf says of a wrong value: what to give instead
    "to Integer": "a whole number",
    "to Float": "a number",
    "valid bool": "true or false",
    "not a ListConfig": "a list, such as [0]",
    "with ListConfig": "a list, such as [0]",
    "DictConfig with": "a mapping, such as {key: value}",
    "to string": "a text",
    "to Dict[": "a mapping, such as {key: value}",
    "not Optional": "a value",
    "not optional": "a value",
    "Non optional": "a value",
}
# Keys of earlier versions by their names of today. Groups are written with a dot as well.
RENAMED = {
    "finetuning": "finetune.method",
    "finetune.bilstm": "finetune.head",
    "finetune.layers": "finetune.head.layers",
    "finetune.combine": "finetune.head.layers",
    "finetune.pooling": "finetune.head.pooling",
    "finetune.windows": "finetune.head.windows",
    "finetune.stride": "finetune.head.windows.stride",
    "finetune.most_windows": "finetune.head.windows.most",
    "finetune.siamese": "finetune.head.parts",
    "finetune.pooler": "finetune.head.pooler",
    "finetune.dropout": "finetune.head.dropout",
    "objective.encoding": "objective.view",
    "objective.disorder": "objective.shuffling",
    "objective.sight": "objective.attention_mask",
}
# Groups of which a run has several choices, each by a name
SLOTS = {"model/change": "+model/change@model.changes.NAME"}


@contextmanager
def explained() -> Iterator[None]:
    """Turn Hydra's and OmegaConf's composition errors into one UserError that suggests similar names."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise explain(error) from error


def explain(error: BaseException, choices_made: Mapping[str, str] = MappingProxyType({})) -> UserError:
    """The UserError for a failed composition: the cause in one line, with similar names if a key is unknown.

    choices_made: {group: its choice}, as far as they are known.
    """
    from omegaconf.errors import MissingMandatoryValue

    text = " ".join((str(error) or str(error.__cause__)).split())
    if key := REFUSED.search(text):
        cause: Any = error.__cause__
        beside = cause.parent_node if getattr(cause, "full_key", None) == key[1] and "." in key[1] else ()
        return unknown_key(key[1], [str(name) for name in beside or () if name != "_target_"], choices_made)
    if isinstance(error, MissingMandatoryValue):
        return UserError(f"{error.full_key} is missing", f"write {error.full_key}={str(error.key).upper()}")
    if several := re.match(r"Ambiguous value for argument '([^=]+)=(.+)' 1\.", text):
        mend = f"add -m for one run each, or write {several[1]}=[{several[2]}] for a list"
        return UserError(f"{several[1]}={several[2]} gives several values", mend)
    if chosen := re.search(r"Could not (?:find|load) '([^']+)'", text):
        group, _, name = chosen[1].rpartition("/")
        if (preset := chosen[1].partition("/"))[0] in PRESETS:
            group, name = preset[0], preset[2]
        listed = re.search(r"Available options in '[^']+': ([\w ]+?) Config search path", text)
        near = suggest(name, choices(group) or (listed[1].split() if listed else []))
        if group == "experiment" and is_name(name):
            near = f"{near} or " * near.startswith("did you mean") + f"write conf/experiment/{name}.yaml"
        return UserError(f"unknown choice {group}={name}", near)
    if deleted := re.match(r"Could not delete from config\. '([^']+)' does not exist", text):
        return unknown_key(deleted[1], (), choices_made)
    if text.startswith("Error merging override "):
        override = text.removeprefix("Error merging override ")
        said = " ".join(str(error.__cause__).split()).split(" full_key:")[0]
        wanted = next((words for part, words in _TYPES.items() if part in said), None)
        return UserError(f"{override} has the wrong type", f"give {wanted}" if wanted else said)
    if unread := getattr(error, "override", None):
        if "=" not in unread:
            return UserError(f"override {unread!r} has no value", f"write {unread}=VALUE")
        return UserError(f"override {unread!r} cannot be read", "write key=value and quote special characters")
    return UserError(text.split(" full_key:")[0])


def unknown_key(
    key: str, beside: Sequence[str] = (), choices_made: Mapping[str, str] = MappingProxyType({})
) -> UserError:
    """The error for a key that does not exist, or not in this config.

    beside: the names that its parent has. choices_made: {group: its choice}, as far as they are known.
    """
    from paribus.core.plugins import OptunaSweeperConf

    if key in SLOTS:
        return UserError(f"a choice of '{key}' needs a name of its own", f"write {SLOTS[key]}=CHOICE")
    parts = re.split("[./]", key)
    owners = ["/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1)]
    if (conf_dir() / key).is_dir() or key in _list_keys() or (owners and parts[-1] in settings(owners[0])):
        owner = next((name for name in owners if name in choices_made), parts[0])
        chosen = f"{owner}={choices_made[owner]}" if owner in choices_made else "this config"
        return UserError(f"'{key}' does not apply to {chosen}", f"leave it out, or choose another {owner}=")
    of_sweeper = {each.name for each in fields(OptunaSweeperConf) if not each.name.startswith("_")}
    if key in of_sweeper and not nearest(key, top_keys(), 0.8):
        return UserError(f"'{key}' is a key of the sweeper", f"write hydra.sweeper.{key}=VALUE")
    parent, _, last = key.rpartition(".")
    near = [f"{parent}.{name}" for name in nearest(last, beside)]
    if not near:
        groups = {path.parent.relative_to(conf_dir()).as_posix() for path in conf_dir().rglob("*.yaml")} - {"."}
        names = sorted(name for name in {*groups, *_list_keys()} if not name.endswith("_target_"))
        tail = [name for name in names if name.rpartition(".")[2] == last]
        near = list(dict.fromkeys(difflib.get_close_matches(key, names, n=3, cutoff=0.55) + tail[:3]))
    mend = f"did you mean {' or '.join(near)}?" if near else "see `paribus train --cfg job` for every key"
    return UserError(f"'{key}' is not a config group or key", mend)


def _list_keys() -> list[str]:
    """The dotted keys of the primary configs."""
    from omegaconf import OmegaConf

    from paribus.core.config import compose_uncached, flat

    composed = (OmegaConf.to_container(compose_uncached(name, []), resolve=False) for name in ("train", "run"))
    return [key for config in composed for key in flat(config)]


def check_keys(config: Mapping[str, Any]) -> None:
    """Raises UserError for a top-level key that `conf/train.yaml` does not have, because nothing would read it."""
    known = top_keys()
    if stray := next((str(key) for key in config if key not in known), None):
        raise unknown_key(stray)


def renamed(key: str) -> str | None:
    """The current name of a key from an earlier version; None for any other key."""
    dotted = key.replace("/", ".")
    for old, new in RENAMED.items():
        if dotted == old or dotted.startswith(f"{old}."):
            name = new + dotted.removeprefix(old)
            return group if (conf_dir() / (group := name.replace(".", "/"))).is_dir() else name
    return None
