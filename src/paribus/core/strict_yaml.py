"""The user's YAML files: what is wrong in one line, and no key is given twice, of which PyYAML keeps the last one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError


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
