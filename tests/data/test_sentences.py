"""Sentence splitters: where they cut, and that nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core.errors import UserError
from paribus.data.corpus.sentences import Blingfire, Lines, Pysbd, Splitter

TEXT = st.text(
    st.one_of(st.characters(codec="utf-8"), st.sampled_from(" .!?。！？」”\"'\u200b\ufeff\x00\t\nabcABC中文")),
    max_size=80,
)


def black(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("splitter", [Blingfire(), Lines()])
@settings(max_examples=300, deadline=None)
@given(TEXT)
def test_no_character_is_lost(splitter: Splitter, text: str) -> None:
    found = splitter(text)
    assert black("".join(found)) == black(text)
    assert all(sentence.strip() for sentence in found)


@settings(max_examples=40, deadline=None)
@given(TEXT)
def test_pysbd_loses_nothing(text: str) -> None:
    pytest.importorskip("pysbd")
    assert black("".join(Pysbd()(text))) == black(text)


def test_english() -> None:
    text = "Dr. Smith paid 3.50 dollars, e.g. for tea. He left! Did he? Yes."
    assert Blingfire()(text) == ["Dr. Smith paid 3.50 dollars, e.g. for tea.", "He left!", "Did he?", "Yes."]


def test_chinese_with_quotes_and_mixed_text() -> None:
    text = "你好。他说：“走吧！”然后走了！？「好。」後來 He came back. 真的？是的。"
    wanted = ["你好。", "他说：“走吧！”", "然后走了！？", "「好。」", "後來 He came back.", "真的？", "是的。"]
    assert Blingfire()(text) == wanted


def test_sentences_survive_characters_that_blingfire_leaves_out() -> None:
    assert Blingfire()("One\u200b here. Two there. Three.") == ["One\u200b here.", "Two there.", "Three."]


def test_lines() -> None:
    assert Lines()("One. Two.\n Three. \n") == ["One. Two.", "Three."]


def test_pysbd_by_language() -> None:
    pytest.importorskip("pysbd")
    assert Pysbd()("He met Dr. Smith. They spoke.") == ["He met Dr. Smith.", "They spoke."]
    with pytest.raises(UserError, match=r"corpus\.sentences\.language=xx"):
        Pysbd("xx")


def test_pysbd_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pysbd", None)
    with pytest.raises(UserError, match="pip install"):
        Pysbd()
