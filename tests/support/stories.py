"""Paragraphs of made-up sentences."""

from __future__ import annotations

WORDS = [
    "the",
    "a",
    "one",
    "every",
    "old",
    "small",
    "red",
    "quiet",
    "sailor",
    "captain",
    "river",
    "house",
    "garden",
    "letter",
    "winter",
    "morning",
    "road",
    "friend",
    "sister",
    "walked",
    "wrote",
    "opened",
    "crossed",
    "remembered",
    "watched",
    "carried",
    "found",
    "and",
    "but",
    "because",
    "while",
    "near",
    "under",
    "before",
    "after",
    "slowly",
    "never",
    "again",
    "often",
]


def story(number: int, sentences: int = 12) -> str:
    """A deterministic paragraph of made-up sentences."""
    lines = []
    for at in range(sentences):
        state = number * 7919 + at * 104729
        picked = [WORDS[(state >> shift) * 31 % len(WORDS)] for shift in range(4, 14)]
        lines.append(" ".join(picked).capitalize() + ".")
    return " ".join(lines)
