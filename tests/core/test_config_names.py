"""The keys that config files set, with their defaults and comments, are read off the files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from paribus.core.config import flat
from paribus.core.config_names import Key, conf_dir, list_keys, plain_keys, read_header

FILES = sorted(conf_dir().rglob("*.yaml"))
WRITTEN = """# @package tasks.mine
# What it is,
#   in two lines.
a: 1.0e-3   # a number # of some kind
b:
  c: null
  d: [1,
    2]      # on two lines
e:          # a list
  - one     # not told
  - two
_target_: builtins.int
f: "x # y"
"""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(conf_dir()).as_posix())
def test_every_key_of_a_file_is_listed_once_with_its_value(path: Path) -> None:
    content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    listed = {key.name: yaml.safe_load(key.default) for key in list_keys(path)}
    for name, value in listed.items():
        found = content
        for part in _parts(content, name):
            found = found[part]
        assert value == found, name
    kept = {key: value for key, value in content.items() if key not in ("defaults", "_target_")}
    leaves = {key for key in flat(kept) if not key.endswith("_target_")}
    assert {key for key in leaves if not any(key == name or key.startswith(f"{name}.") for name in listed)} == set()


def _parts(content: object, name: str) -> list[str]:
    """The keys that lead to a name; a key may have dots itself, such as those of a search space."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        if isinstance(content, dict) and (key := ".".join(parts[:size])) in content:
            return [key, *(_parts(content[key], ".".join(parts[size:])) if size < len(parts) else [])]
    raise AssertionError(f"{name} is not in the file")


def test_a_comment_belongs_to_the_key_on_its_line(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(WRITTEN)
    assert list_keys(tmp_path / "mine.yaml") == [
        Key("a", "1.0e-3", "a number # of some kind"),
        Key("b.c", "null", ""),
        Key("b.d", "[1, 2]", "on two lines"),
        Key("e", "[one, two]", "a list"),
        Key("f", '"x # y"', ""),
    ]
    assert read_header(tmp_path / "mine.yaml") == ["What it is,", "in two lines."]


def test_the_plain_keys_of_a_run_are_explained() -> None:
    assert {"seed", "scale", "study"} <= {key.name for key in plain_keys()}
    assert [key.name for key in plain_keys() if not key.comment] == []
