"""Spans of BIO tags and their scores, by the rules of CoNLL's `conlleval` and of `seqeval`. Plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Span = tuple[str, int, int]  # kind, first word, the word behind the last


def is_bio(tags: Iterable[str]) -> bool:
    """Whether all tags are O, B-kind or I-kind."""
    return all(tag == "O" or (tag[:2] in ("B-", "I-") and len(tag) > 2) for tag in tags)


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans of one sentence.

    A span begins at B, and at an I that follows neither B nor I of its kind; it goes on through every I of its kind.
    """
    found: list[Span] = []
    kind, start = "", 0  # of the open span
    for at, tag in enumerate([*tags, "O"]):
        goes_on = bool(kind) and tag == f"I-{kind}"
        if kind and not goes_on:
            found.append((kind, start, at))
        if not goes_on:
            kind, start = tag[2:], at
    return found


def span_scores(predicted: Sequence[Sequence[str]], given: Sequence[Sequence[str]]) -> dict[str, float]:
    """`precision`, `recall` and `f1` over the spans of all sentences; 0 where nothing can be divided by."""
    right = guessed = there = 0
    for guess, truth in zip(predicted, given, strict=True):
        ours, theirs = set(spans(guess)), set(spans(truth))
        right, guessed, there = right + len(ours & theirs), guessed + len(ours), there + len(theirs)
    precision, recall = right / max(1, guessed), right / max(1, there)
    return {"precision": precision, "recall": recall, "f1": 2 * right / max(1, guessed + there)}
