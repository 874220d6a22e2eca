"""What the tests of left-to-right and right-to-left models share."""

from __future__ import annotations

from typing import Any

LENGTH = 48


def changed(batch: dict[str, Any], column: int) -> dict[str, Any]:
    """The same rows with another token there."""
    ids_BL = batch["ids_BL"].clone()
    ids_BL[:, column] = 5 + (ids_BL[:, column] + 1) % 900
    return {**batch, "ids_BL": ids_BL}
