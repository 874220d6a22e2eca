"""The folders, groups, choices and keys of the config, read from its files without Hydra.

Of the user's YAML files: what is wrong in one line, and no key is given twice, of which PyYAML keeps the last one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.errors import UserError

PRESETS = ("family", "recipe", "experiment", "debug")  # groups of `# @package _global_`, in the order of precedence


def conf_dir() -> Path:
    """The shipped config groups. A `conf` folder in the working directory extends them (Hydra's search path)."""
    return _packaged("conf")


def sweeps_dir() -> Path:
    """The published tables as sweep files."""
    return _packaged("sweeps")


def _packaged(name: str) -> Path:
    """A folder at the top of a checkout, or inside the package of a wheel."""
    package = Path(__file__).parents[1]
    inside, checkout = package / "_files" / name, package.parents[1] / name
    return inside if inside.is_dir() else checkout


def roots() -> tuple[Path, Path]:
    """Where config groups are: the shipped `conf`, and that of the working directory."""
    return conf_dir(), Path.cwd() / "conf"


def is_group(name: str) -> bool:
    """Whether a config group has this name, such as `masking/schedule`."""
    return any((root / name).is_dir() for root in roots())


def choices(group: str) -> list[str]:
    """The choices of a config group, shipped and the user's own; those of presets may be in folders."""
    pattern = "**/*.yaml" if group in PRESETS else "*.yaml"
    paths = ((root / group, path) for root in roots() for path in (root / group).glob(pattern))
    return sorted({path.relative_to(folder).with_suffix("").as_posix() for folder, path in paths})


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
    lines = [line for line in _primary()["defaults"] if isinstance(line, dict)]  # not `_self_`
    return {
        key.split()[-1]: "null" if choice is None else str(choice)
        for line in lines
        for key, choice in line.items()
        if not key.startswith("override ")
    }


def plain_keys() -> list[Key]:
    """The primary config's keys that are neither groups nor mappings."""
    mappings = {key for key, value in _primary().items() if isinstance(value, dict)}
    return [one for one in list_keys(conf_dir() / "train.yaml") if one.name.partition(".")[0] not in mappings]


class Key(NamedTuple):
    """A key of a config file. default: as written in the file; comment: the comment beside it."""

    name: str
    default: str
    comment: str


def list_keys(path: Path) -> list[Key]:
    """The keys that a config file sets, those in mappings with a dot; without its defaults and classes."""
    import yaml

    text = path.read_text(encoding="utf-8")
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    return list(_walk(root, "", text)) if root else []


def _walk(mapping: Any, prefix: str, text: str) -> Iterator[Key]:
    """The keys below a node of YAML."""
    import yaml

    for key, value in mapping.value:
        name = f"{prefix}{key.value}"
        if name == "defaults" or key.value == "_target_":
            continue
        if isinstance(value, yaml.MappingNode) and value.value and not value.flow_style:
            yield from _walk(value, f"{name}.", text)
        else:
            block = isinstance(value, yaml.CollectionNode) and not value.flow_style
            end = (key if block else value).end_mark.index
            comment = re.match(r":?\s*#\s*(.*)", text[end:].partition("\n")[0])
            yield Key(name, _write_on_one_line(value, text, block), comment[1] if comment else "")


def _write_on_one_line(value: Any, text: str, block: bool) -> str:
    """A value as it stands in the file, a list of several lines in brackets."""
    written = text[value.start_mark.index : value.end_mark.index]
    if not block:
        return " ".join(written.split()) or "null"
    items = [line.strip()[1:].partition(" #")[0].strip() for line in written.splitlines() if line.strip()]
    return f"[{', '.join(items)}]"


def read_header(path: Path) -> list[str]:
    """The lines of comment at the top of a config file, without its `@package`."""
    lines = iter(path.read_text(encoding="utf-8").splitlines())
    comments = takewhile(lambda line: line.startswith("#"), lines)
    return [line.lstrip("# ") for line in comments if not re.match(r"#\s*(@|$)", line)]


def describe_choice(group: str, choice: str) -> str:
    """The first line of comment in the file of a choice; empty if it has none."""
    for root in roots():
        if (path := root / group / f"{choice}.yaml").is_file():
            return next(iter(read_header(path)), "")
    return ""


def top_keys() -> frozenset[str]:
    """The keys at the top of every config: those of the primary config, and the groups of its defaults."""
    lines = _primary()["defaults"]
    return frozenset(_primary()) | {group for line in lines if isinstance(line, dict) for group in line}


def top_level() -> set[str]:
    """What may be typed before the `=` of an override without a dot."""
    return {*groups(), *_primary()}


@cache
def _primary() -> dict[str, Any]:
    import yaml

    content: dict[str, Any] = yaml.safe_load((conf_dir() / "train.yaml").read_text(encoding="utf-8"))
    return content


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raises UserError that names the file, and the line, if the block cannot read it as YAML."""
    import yaml

    try:
        yield
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 ({error.reason} at byte {error.start})", "convert the file") from error
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror or error})", "check the file and its permissions"
        ) from error
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1},"
        raise UserError(f"{path}{line} is not valid YAML", str(error.problem)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid YAML", str(error)) from error


def load_strict(text: str) -> Any:
    """The content of a YAML document. Raises yaml.YAMLError, and ValueError naming a key that is given twice."""
    import yaml

    return yaml.load(text, _loader())  # a safe one


def load_mapping(path: Path) -> dict[str, Any]:
    """The content of a YAML file; empty if the file is. Raises UserError for one that is no mapping in YAML."""
    with readable(path):
        content = load_strict(path.read_text(encoding="utf-8")) or {}
    require_mapping(path, content)
    return dict(content)


def require_mapping(path: Path, content: object) -> None:
    """Raises UserError if the content of a file is not a mapping."""
    if not isinstance(content, Mapping):
        raise UserError(f"{path} has no keys", "write 'key: value' on each line")


@cache
def _loader() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Strict(base):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            lines: dict[str, int] = {}
            for key, _ in node.value:
                name, line = str(key.value), key.start_mark.line + 1
                if name in lines:
                    raise ValueError(f"'{name}' is given twice, in lines {lines[name]} and {line}")
                lines[name] = line
            mapping: dict[Any, Any] = super().construct_mapping(node, deep)
            return mapping

    return Strict
