"""Answers to questions, as data sets in the layout of SQuAD and its relatives spell them."""

from __future__ import annotations

from typing import Any, TypeGuard

from paribus.core.errors import UserError
from paribus.tasks.tables.labels import read_number

TEXT, START = "text", "answer_start"


def is_answer(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a value is one answer, or a mapping of lists of answers."""
    return isinstance(value, dict) and {TEXT, START} <= value.keys()


def gather_answers(value: object) -> object:
    """Answers as `{text: [...], answer_start: [...]}`: also a list of an answer each, and none for null. Offsets that
    are texts become numbers. Any other value stays as it is.
    """
    if value is None or value == []:
        return {TEXT: [], START: []}
    if isinstance(value, list) and all(map(is_answer, value)):
        value = {name: [answer[name] for answer in value] for name in (TEXT, START)}
    if is_answer(value) and isinstance(value[START], list):
        return {TEXT: value[TEXT], START: [_read_offset(start) for start in value[START]]}
    return value


def _read_offset(start: object) -> object:
    """The whole number that a text spells; anything else as it is."""
    number = read_number(start.strip()) if isinstance(start, str) else None
    return start if number is None or number % 1 else int(number)


def read_answers(texts: object, starts: object, where: str) -> tuple[list[str], list[int]]:
    """The answers to a question and their first characters in its context; an answer without text is none.

    Raises UserError, whose message begins with `where`, for offsets that do not belong to the texts or are no whole
    numbers.
    """
    texts, starts = ([] if given is None else given for given in (texts, starts))
    if not isinstance(texts, list) or not isinstance(starts, list):
        raise UserError(f"{where} has no lists of text and answer_start", 'give {"text": [...], "answer_start": [...]}')
    if len(texts) != len(starts):
        raise UserError(f"{where} has {len(texts)} answers and {len(starts)} offsets", "fix the row")
    answers, places = [], []
    for text, start in zip(texts, starts, strict=True):
        if not text and start is None:
            continue
        if not isinstance(text, str):
            what = "no text" if text is None else f"{type(text).__name__}, not text,"
            raise UserError(f"{where} has {what} for the answer at {start!r}", "fix the row or leave it out")
        if isinstance(start, bool) or not isinstance(start, int | float) or start != start // 1:
            cause = f"{where}: the answer_start {start!r} of {text[:40]!r} is not a whole number"
            raise UserError(cause, "fix answer_start or leave the row out")
        answers.append(text)
        places.append(int(start))
    return answers, places
