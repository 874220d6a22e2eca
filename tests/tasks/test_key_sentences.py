"""Which sentences of a long text are read in place of all of it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.data.corpus.sentences import Lines
from paribus.data.tokens.tokenizer import EncodedSentences
from paribus.models.heads.choices import Classifier
from paribus.tasks.examples import Example
from paribus.tasks.key_sentences import CENTRAL, RANDOM, keep_sentences
from paribus.tasks.types.classification import Classification
from paribus.tasks.types.multiple_choice import MultipleChoice
from paribus.tasks.types.tagging import Tagging


class Words:
    """A tokenizer whose tokens are words."""

    def locate(self, sentences: list[str]) -> tuple[EncodedSentences, np.ndarray[Any, Any]]:
        spans = [[match.span() for match in re.finditer(r"\S+", sentence)] for sentence in sentences]
        offset_T2 = np.array([span for row in spans for span in row], np.int64).reshape(-1, 2)
        empty = np.zeros(len(offset_T2), np.uint32)
        return EncodedSentences(empty, empty.astype(np.uint8), np.array([*map(len, spans)])), offset_T2


def kept(kind: str, texts: dict[str, list[str]], room: int, seed: int = 0) -> dict[str, list[str]]:
    examples = {split: [Example(text, None, 1) for text in of_set] for split, of_set in texts.items()}
    found = keep_sentences(examples, kind, room, Words(), Lines(), seed)  # type: ignore[arg-type]
    return {split: [row.text for row in rows] for split, rows in found.items()}


LONG = "\n".join(f"s{number} of words" for number in range(9))


@pytest.mark.parametrize("room", [1, 7, 26, 27, 40])
def test_random_sentences_fill_the_room_in_the_order_of_the_text(room: int) -> None:
    ((text,),) = kept(RANDOM, {"train": [LONG]}, room).values()
    assert len(text.split()) == min(room, 27)
    numbers = [int(word[1:]) for word in text.split() if re.fullmatch(r"s\d", word)]
    assert numbers == sorted(numbers)
    assert (text == LONG) == (room >= 27)


def test_random_sentences_depend_on_the_seed_and_the_text_alone() -> None:
    others = [f"{LONG}\nand {number}" for number in range(5)]
    alone = kept(RANDOM, {"train": [LONG]}, 9)["train"][0]
    assert kept(RANDOM, {"train": [*others, LONG], "validation": [LONG]}, 9)["validation"] == [alone]
    assert len({kept(RANDOM, {"train": [LONG]}, 9, seed)["train"][0] for seed in range(20)}) > 10
    assert len({text.replace("and", "") for text in kept(RANDOM, {"train": others}, 9)["train"]}) > 1


def test_central_sentences_have_the_words_of_their_text() -> None:
    text = "the weather is fine\nmatrices have rows\nmatrices have rows and columns\nrows of matrices\nhello there"
    assert kept(CENTRAL, {"train": [text]}, 11)["train"] == [
        "matrices have rows matrices have rows and columns rows of matrices"
    ]
    cut = kept(CENTRAL, {"train": [text]}, 4)["train"][0]
    assert len(cut.split()) == 4
    assert "weather" not in cut


def test_how_rare_words_are_is_counted_in_train_alone() -> None:
    common, rare = "a common word", "some rare thing"
    text = f"{common}\n{rare}"
    train = [common] * 50
    first = kept(CENTRAL, {"train": train, "validation": [text]}, 3)["validation"]
    assert kept(CENTRAL, {"train": train, "validation": [text, *[rare] * 50]}, 3)["validation"][:1] == first


def test_pairs_options_and_tokens_are_refused() -> None:
    settings = FineTuning(head=Classifier(), truncation=CENTRAL)
    classes = Classification(("a", "b"))
    classes.check_settings(settings, "tasks.x")
    classes.check_fit(settings, [Example("one", None, 0)])
    with pytest.raises(UserError, match=f"finetune.truncation={CENTRAL} is set, but the task has pairs"):
        classes.check_fit(settings, [Example("one", "two", 0)])
    for kind in (MultipleChoice(("a", "b")), Tagging(("O", "B-x"))):
        with pytest.raises(UserError, match=f"finetune.truncation={CENTRAL} is for labels of single texts"):
            kind.check_settings(settings, "tasks.x")
