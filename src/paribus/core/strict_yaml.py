"""YAML in which no key is given twice: PyYAML keeps the last one and says nothing."""

from __future__ import annotations

from functools import cache
from typing import Any


def load_strict(text: str) -> Any:
    """The content of a YAML document. Raises yaml.YAMLError, and ValueError naming a key that is given twice."""
    import yaml

    return yaml.load(text, _loader())  # a safe one


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
            found: dict[Any, Any] = super().construct_mapping(node, deep)
            return found

    return Strict
