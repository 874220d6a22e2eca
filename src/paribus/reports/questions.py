"""What kind of question a study asks. Verdicts are counted apart by kind: one share over all would say nothing."""

from __future__ import annotations

from collections.abc import Iterable

CHOICE = "a choice in pre-training"
FURTHER = "pre-training at all, or more of it"
TUNING = "a choice in fine-tuning"
QUESTIONS = (CHOICE, FURTHER, TUNING)
_OF_TUNING = {"finetune", "task", "tasks"}
_OF_AMOUNT = {"untrained", "corpus", "trainer", "name"}  # whether, on what, and how long a checkpoint was trained


def sort_questions(found: Iterable[str]) -> list[str]:
    """Kinds, with or without what follows them after a comma, in the order of `QUESTIONS`."""
    return sorted(
        {*found}, key=lambda one: (next(at for at, kind in enumerate(QUESTIONS) if one.startswith(kind)), one)
    )


def find_question(varies: Iterable[str]) -> str:
    """The kind of a study whose arms differ in these keys of the config."""
    keys = [key.replace("/", ".").split(".") for key in varies]
    trained = [key for key in keys if key[0] not in _OF_TUNING]
    if keys and not trained:
        return TUNING
    begun = [key for key in trained if key[0] in ("untrained", "stages") or key == ["model", "name"]]
    amounts = [key for key in trained if _OF_AMOUNT & {key[0], key[-1], *key[2:3]}]
    return FURTHER if begun and amounts == trained else CHOICE
