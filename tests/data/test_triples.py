"""Knowledge as text: triples of code and of WordNet's files, what a line asks for, what is hidden."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.corruption.masking.one_span import Asked
from paribus.data.annotators import Asked as AskedPart
from paribus.data.corpus.docstrings import split_module
from paribus.data.corpus.triples import Triple, Triples, ask, read_code, read_synsets
from paribus.training.description import Run
from paribus.training.run import run
from paribus.training.streams import training_examples

SOURCE = """
class Pickler(io.Base, Other):
    def dump(self, thing: int, *, quietly=False) -> list[str]:
        def inner(part): ...

    def _own(self, never): ...

class _Hidden(Pickler): ...
async def load(path): ...
"""
NOUN = """\
  1 This software and database is being provided to you, the LICENSEE, by
00001740 03 n 01 entity 0 003 ~ 00001930 n 0000 ~ 00002137 n 0000 ;c 09999999 n 0000 | that which exists
00001930 03 n 02 physical_entity 0 thing b 002 @ 00001740 n 0000 ! 00002137 n 0101 | an entity that exists
00002137 03 n 01 abstraction 0 001 @ 00001740 n 0000 | a general concept
"""
ADJ = """\
00003000 00 a 01 able(p) 0 001 & 00003100 a 0000 | having means
00003100 00 s 01 fit 0 001 = 00001930 n 0000 | apt
"""


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    """Three nouns and two adjectives in the layout of Debian's wordnet-base."""
    folder = tmp_path / "wordnet"
    folder.mkdir()
    for part, text in (("noun", NOUN), ("verb", ""), ("adj", ADJ), ("adv", "")):
        (folder / f"data.{part}").write_text(text)
    return folder


@pytest.fixture
def triples(arguments: list[str]) -> list[str]:
    """Overrides of a run of seconds on the triples of a small distribution."""
    kept = [text for text in arguments if not text.startswith("corpus")]
    return [*kept, "corpus=triples", "corpus.distributions=[packaging]"]


def test_the_triples_of_code_are_read_from_its_source(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    assert read_code(("joblib.module", str(path))) == [
        ("Pickler", "is in module", "joblib.module"), ("Pickler", "inherits from", "Base"),
        ("Pickler", "inherits from", "Other"), ("dump", "is in module", "joblib.module"),
        ("thing", "is a parameter of", "dump"), ("quietly", "is a parameter of", "dump"),
        ("dump", "returns", "list[str]"),
        ("inner", "is in module", "joblib.module"), ("part", "is a parameter of", "inner"),
        ("load", "is in module", "joblib.module"), ("path", "is a parameter of", "load"),
    ]  # fmt: skip
    path.write_text("def broken(:")
    assert read_code(("joblib.module", str(path))) == []


def test_the_relations_of_wordnet_are_read_from_its_files(wordnet: Path, tmp_path: Path) -> None:
    synsets = [found for part in ("noun", "adj") for found in read_synsets(wordnet / f"data.{part}")]
    known = {synset.key: synset.word for synset in synsets}
    assert [triple for synset in synsets for triple in synset.triples(known)] == [
        ("physical entity", "is a kind of", "entity"), ("physical entity", "is the opposite of", "abstraction"),
        ("abstraction", "is a kind of", "entity"), ("able", "is like", "fit"),
        ("fit", "is a value of", "physical entity"),
    ]  # fmt: skip
    documents = list(Triples([], str(wordnet), relations=0.0).documents(tmp_path / "cache"))
    assert documents[0].text.splitlines()[0] == "physical entity is a kind of : entity"
    (wordnet / "data.verb").write_text("no synset at all\n")
    with pytest.raises(UserError, match=r"data\.verb, line 1 is not a WordNet synset"):
        list(Triples([], str(wordnet)).documents(tmp_path / "cache"))


def test_a_line_asks_for_the_tail_or_for_the_relation() -> None:
    triple = Triple("Pickler", "inherits from", "Base")
    lines = [ask(triple, relation=False), ask(triple, relation=True)]
    assert lines == ["Pickler inherits from : Base", "Pickler , Base : inherits from"]
    found = list(AskedPart().spans([*lines, "no question"]))
    assert [line[a:b] for line, [(a, b)] in zip(lines, found, strict=False)] == ["Base", "inherits from"]
    assert found[-1] == []


def test_documents_are_modules_that_are_held_out_as_docstrings_are(tmp_path: Path) -> None:
    tails, both = (list(Triples(["packaging"], relations=share).documents(tmp_path)) for share in (0.0, 0.5))
    assert len(tails) == len(both) > 5
    assert all(found.split == split_module(found.id, 0.2) for found in both)
    lines = [line for found in both for line in found.text.splitlines()]
    assert len(lines) == len([line for found in tails for line in found.text.splitlines()])
    share = sum(" , " in line.partition(" : ")[0] for line in lines) / len(lines)
    assert 0.4 < share < 0.6
    assert all(line.count(" : ") == 1 for line in lines)


def test_the_masking_hides_exactly_what_is_asked_for(triples: list[str]) -> None:
    chosen = Run.of(compose([*triples, "masking=asked", "objective.view.mask=1", "objective.view.random=0",
                             "objective.view.keep=0"]))  # fmt: skip
    data = chosen.data()
    examples = training_examples(chosen, data)
    views: Any = examples.views(0, range(8))
    text, colon = views.text, int(data.tokenizer.encode([":"])[0][0][0])
    hidden_BL = views.inputs.ids_BL == data.vocabulary.mask
    for row in range(8):
        for line in range(text.sentence_BL[row].max() + 1):
            own_L = text.sentence_BL[row] == line
            behind_L = own_L & (np.cumsum(own_L & (text.ids_BL[row] == colon)) > 0) & text.free_BL[row]
            behind_L[np.flatnonzero(own_L & (text.ids_BL[row] == colon))[0]] = False
            assert (hidden_BL[row] & own_L == behind_L).all()
    assert 0.2 < hidden_BL.sum() / text.free_BL.sum() < 0.6


def test_a_stage_on_triples_has_a_record(arguments: list[str]) -> None:
    stage = ["+corpus@stages.knowledge.corpus=triples", "stages.knowledge.corpus.distributions=[packaging]"]
    masks = ["+masking@stages.knowledge.masking=asked", "+stages.knowledge.objective.view.mask=1.0",
             "+stages.knowledge.objective.view.random=0.0", "+stages.knowledge.objective.view.keep=0.0"]  # fmt: skip
    steps = ["trainer.max_steps=2", "+stages.knowledge.trainer.max_steps=2"]
    found = json.loads((run(compose([*arguments, *stage, *masks, *steps])) / "result.json").read_text())
    first, second = (each["realised"] for each in found["stages"])
    assert second["masking_rate"] > 1.5 * first["masking_rate"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (["corpus.distributions=[]"], "corpus=triples has no source"),
        (["corpus.distributions=[no-such-thing]"], "no-such-thing is not installed"),
        (["corpus.wordnet=/nowhere"], "/nowhere/data.noun does not exist"),
        (["corpus.relations=2"], "corpus.relations=2"),
        (["masking=asked", "masking.rate=0.3"], "masking.rate"),
    ],
)
def test_what_is_no_knowledge_is_told(
    triples: list[str], bad: list[str], said: str, refused_run: Callable[..., str]
) -> None:
    assert said in refused_run(*triples, *bad)


def test_text_without_questions_is_told(arguments: list[str], refused_run: Callable[..., str]) -> None:
    assert "masking.annotator finds no span in the training text" in refused_run(*arguments, "masking=asked")
    assert Asked().annotator == AskedPart()
