"""The pages of the site that are written when it is built: config keys, commands, packaged sweeps, and the README.

A hook of mkdocs; see `.mkdocs.yml`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import click
import yaml

from paribus.commands.cli import VERBS, load
from paribus.core.config_names import (
    PRESETS,
    Key,
    conf_dir,
    default_choices,
    groups,
    list_keys,
    plain_keys,
    read_header,
    sweeps_dir,
)
from paribus.core.settings import GROUPS

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

GENERATED = {"Config keys": "config-keys.md", "Commands": "commands.md", "Sweeps": "sweeps.md"}  # {title: file}
ROOT = Path(__file__).parents[1]
FILES = (*PRESETS, "search")  # groups whose files set keys of other groups: each file has a table of its own
_TYPES = {int | None: " (a whole number)", float | None: " (a number)", str | None: " (text)"}  # of a key that is null
SHOWN = 3  # different defaults, or choices, that a cell lists
KEYS = """# Config keys

`paribus train KEY=VALUE` sets a key. `paribus train GROUP=CHOICE` chooses a file of `conf/GROUP`. Every verb that
trains accepts both. This page is generated from the files and their comments. `paribus train --cfg job` prints every
key of a command with its value.

A file in `conf/GROUP` of your working directory adds a choice of your own.

"""
COMMANDS = """# Commands

`paribus VERB --help` prints the same text, and `paribus train --help` lists the most important config keys too.

"""
SWEEPS = """# Sweeps that come with Paribus

Run one with `paribus run SWEEP`. `paribus plan SWEEP scale=cpu` estimates the cost first, and `paribus published SWEEP`
prints the paper's own table. [Your own sweep](own-sweep.md) explains the files.

"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages to those of the folder."""
    from mkdocs.structure.files import File

    written = dict(zip(GENERATED.values(), (write_keys(), write_commands(), write_sweeps()), strict=True))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, text in {**written, "index.md": readme.replace("](docs/", "](")}.items():
        files.append(File.generated(config, name, content=text))
    pages = [readme, *(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md")))]
    for image in dict.fromkeys(re.findall(r"!\[[^\]]*\]\((?:\.\./)?(analysis/[^)]+)\)", "".join(pages))):
        files.append(File.generated(config, image, abs_src_path=str(ROOT / image)))
    return files


def on_page_markdown(markdown: str, **given: Any) -> str:
    """Link the titles of these pages and the committed pictures, which the files of the folder cannot link.

    In code, GitHub's `\\|` is a bar.
    """
    markdown = markdown.replace("](../analysis/", "](analysis/")
    for title, name in GENERATED.items():
        markdown = markdown.replace(f"*{title}*", f"[{title}]({name})")
    return re.sub(r"`[^`\n]+`", lambda code: code[0].replace("\\|", "|"), markdown)


def write_commands() -> str:
    """A section for each verb with its `--help`."""
    pages = []
    for name in VERBS:
        verb = copy(load(name))
        verb.more = None  # the keys and the sweeps have pages of their own
        page = verb.get_help(
            click.Context(verb, info_name=f"paribus {name}", terminal_width=100, help_option_names=["-h", "--help"])
        )
        pages.append(f"## {name}\n\n```text\n{page}\n```\n")
    return COMMANDS + "\n".join(pages)


def write_sweeps() -> str:
    """A row for each packaged sweep with the first line of its comment."""
    rows = ([f"`{path.stem}`", read_header(path)[0]] for path in sorted(sweeps_dir().glob("*.yaml")))
    return SWEEPS + _table(["sweep", "what it is"], rows)


def write_keys() -> str:
    """The plain keys of a run, and a section for each config group."""
    rows = ([f"`{key.name}`", key.comment, _code(key.default)] for key in plain_keys())
    plain = _table(["key", "what it is", "default"], rows)
    return f"{KEYS}## Keys without a group\n\n{plain}\n" + "\n".join(map(_write_group, groups()))


def _write_group(group: str) -> str:
    folder = conf_dir() / group
    paths = sorted(folder.rglob("*.yaml") if group in FILES else folder.glob("*.yaml"))
    names = {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}
    usual = {"": default_choices()[group]} if group in default_choices() else _find_usual(group)
    head = f"## {group}\n\n`{group}=CHOICE`" + (f"; the default is {_show_defaults(usual)}.\n" if usual else ".\n")
    if group in FILES:
        return f"{head}\n" + "\n".join(_write_file(group, name, path) for name, path in names.items())
    choices = _table(["choice", "what it is"], ([f"`{name}`", _describe(path)] for name, path in names.items()))
    columns, rows = ["key", "what it is", "default", "choices that have it"], list(_merge(group, names))
    if len(names) == 1:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return f"{head}\n{choices}\n{_table(columns, rows)}"


def _find_usual(group: str) -> dict[str, str]:
    """{choice of the group above: the choice that its file makes of this one}."""
    above, _, name = group.rpartition("/")
    found = ((path.stem, _read_defaults(path)) for path in sorted((conf_dir() / above).glob("*.yaml")))
    return {choice: _plain(defaults[name]) for choice, defaults in found if name in defaults}


def _write_file(group: str, name: str, path: Path) -> str:
    """A section on a file whose keys are of other groups."""
    chosen = (
        Key(key.removeprefix("override ").lstrip("/"), _plain(choice), "")
        for key, choice in _read_defaults(path).items()
        if key.startswith("override ")
    )
    rows = ([f"`{key.name}`", _code(key.default), key.comment] for key in (*chosen, *list_keys(path)))
    return f"### {group}={name}\n\n{_describe(path)}\n\n{_table(['key', 'value', 'why'], rows)}"


def _read_defaults(path: Path) -> dict[str, Any]:
    """{group as the file names it: choice} of the list `defaults` of a file."""
    content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    return {
        group: choice
        for entry in content.get("defaults", ())
        if isinstance(entry, dict)
        for group, choice in entry.items()
    }


def _plain(choice: Any) -> str:
    return f"[{', '.join(choice)}]" if isinstance(choice, list) else "null" if choice is None else str(choice)


def _merge(group: str, paths: Mapping[str, Path]) -> Iterable[list[str]]:
    """A row for each meaning of each key, whatever choices have it; a key without a comment has the one of others."""
    found: dict[str, dict[str, dict[str, str]]] = {}  # {key: {comment: {choice: default}}}
    for choice, path in paths.items():
        for key in list_keys(path):
            found.setdefault(_package(group, path) + key.name, {}).setdefault(key.comment, {})[choice] = key.default
    types = get_type_hints(GROUPS[group]) if group in GROUPS else {}
    for name, meanings in found.items():
        if len(meanings) > 1:
            next(own for comment, own in meanings.items() if comment).update(meanings.pop("", {}))
        kind = _TYPES.get(types.get(name.rpartition(".")[2]), "")
        for comment, defaults in meanings.items():
            shown = _show_defaults(defaults) + (kind if set(defaults.values()) == {"null"} else "")
            yield [f"`{name}`", comment, shown, _show_choices(list(defaults), list(paths))]


def _package(group: str, path: Path) -> str:
    """What stands before the keys of a file, with a dot."""
    told = re.match(r"# @package (\S+)", path.read_text(encoding="utf-8"))
    name = told[1] if told else group.replace("/", ".")
    return "" if name == "_global_" else f"{re.sub(r'^tasks[.].*', 'tasks.NAME', name)}."


def _show_defaults(defaults: Mapping[str, str]) -> str:
    (most, _), *others = Counter(defaults.values()).most_common()
    if len(others) >= SHOWN:
        return "differs"
    rest = (f"{_code(value)} for {', '.join(one for one in defaults if defaults[one] == value)}" for value, _ in others)
    return "; ".join([_code(most), *rest])


def _show_choices(having: list[str], known: list[str]) -> str:
    lacking = [name for name in known if name not in having]
    if not lacking:
        return "all"
    return f"all but {', '.join(lacking)}" if len(lacking) < min(SHOWN, len(having)) else ", ".join(having)


def _describe(path: Path) -> str:
    """The comment at the top of a file, commands as code; a source ends its sentence."""
    lines = (f"`{line}`" if line.startswith(("paribus ", "make ")) else line for line in read_header(path))
    return " ".join(f"{line}." if "   " in line and line[-1] not in ".:;," else line for line in lines)


def _code(value: str) -> str:
    return "required" if value == "???" else f"`{value}`"


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    if len(lines) == 2:
        return ""
    return "".join(f"| {' | '.join(map(_escape, cells))} |\n" for cells in lines)


def _escape(cell: str) -> str:
    """A cell that Markdown shows as it is: bars, angle brackets and stars outside of code count as text."""
    parts = cell.replace("|", "\\|").split("`")
    texts = (
        re.sub(r"([*\[])", r"\\\1", part.replace("<", "&lt;")) if at % 2 == 0 else part for at, part in enumerate(parts)
    )
    return "`".join(texts)
