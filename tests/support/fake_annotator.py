"""Spans by a rule: runs of capitalized words."""

from __future__ import annotations

import re


def capitals(sentence: str) -> list[tuple[int, int]]:
    """Runs of capitalized words, such as `Old Red House`."""
    return [found.span() for found in re.finditer(r"\b[A-Z]\w*(?:\s+[A-Z]\w*)*", sentence)]


def nothing(sentence: str) -> list[tuple[int, int]]:
    return []


def beyond(sentence: str) -> list[tuple[int, int]]:
    return [(0, len(sentence) + 1)]
