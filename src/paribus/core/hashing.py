"""Stable hashes of plain data."""

from __future__ import annotations

import hashlib
import json


def canonical(value: object) -> str:
    """Plain data (dict, list, str, int, float, bool, None) as canonical JSON: equal data give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(value: object, length: int = 12) -> str:
    """The first `length` hex digits of the SHA-256 of `canonical(value)`."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:length]
