"""The names that a config has, read from the files alone: for help pages and shells, without Hydra."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from paribus.core.config import PRESETS, conf_dir, roots


def groups() -> list[str]:
    """Every config group, such as `masking` and `masking/schedule`; folders of presets are not groups."""
    paths = (path.parent.relative_to(root) for root in roots() for path in root.rglob("*.yaml"))
    names = {path.parts[0] if path.parts and path.parts[0] in PRESETS else path.as_posix() for path in paths}
    return sorted(names - {"."})


def settings(group: str) -> list[str]:
    """The keys that the choices of a group have, such as `rate` for `masking`."""
    files = [path for root in roots() for path in (root / group).glob("*.yaml")]
    keys = {key for path in files for key in re.findall(r"^(\w+):", path.read_text(encoding="utf-8"), re.MULTILINE)}
    return sorted(keys - {"defaults", "hydra", "_target_"})


def default_choices() -> dict[str, str]:
    """{group: its choice if the user names none}, in the order of the primary config."""
    return {
        group: "null" if choice is None else str(choice)
        for entry in _primary()["defaults"]
        for group, choice in _choice(entry)
    }


def plain_keys() -> dict[str, Any]:
    """{key: default} of the primary config's keys that are neither groups nor mappings."""
    kept = {key: value for key, value in _primary().items() if key != "defaults"}
    return {key: value for key, value in kept.items() if not isinstance(value, dict)}


def key_comments() -> dict[str, str]:
    """{key: what the primary config says beside it}, of its plain keys."""
    lines = (conf_dir() / "train.yaml").read_text(encoding="utf-8").splitlines()
    found = (re.fullmatch(r"(\w+):.*?\s#\s*(.+)", line) for line in lines)
    return {one[1]: one[2] for one in found if one}


def describe_choice(group: str, choice: str) -> str:
    """The first line of comment in the file of a choice; empty if it has none."""
    for root in roots():
        if (path := root / group / f"{choice}.yaml").is_file():
            lines = path.read_text(encoding="utf-8").splitlines()
            return next((line[1:].strip() for line in lines if re.match(r"#\s*[^@\s]", line)), "")
    return ""


def top_level() -> set[str]:
    """What may be typed before the `=` of an override without a dot."""
    return {*groups(), *_primary()}


def _choice(entry: Any) -> Iterator[tuple[str, Any]]:
    """The group and the choice of a line of the defaults; nothing for `_self_` and `override ...`."""
    pairs = entry.items() if isinstance(entry, dict) else ()
    yield from ((key.split()[-1], choice) for key, choice in pairs if not key.startswith("override "))


@cache
def _primary() -> dict[str, Any]:
    import yaml

    content: dict[str, Any] = yaml.safe_load((conf_dir() / "train.yaml").read_text(encoding="utf-8"))
    return content
