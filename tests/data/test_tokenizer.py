"""Trained and loaded tokenizers: sizes, special tokens, words, determinism, the layout of transformers."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stories import story

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.data.tokens import words
from paribus.data.tokens.pretrained import Pretrained, wrap
from paribus.data.tokens.tokenizer import Tokenizer, load_vocabulary
from paribus.data.tokens.trained import BPE, Trained, Unigram, WordPiece
from paribus.data.tokens.vocabulary import Entries

KINDS: dict[str, type[Trained]] = {"wordpiece": WordPiece, "bpe": BPE, "unigram": Unigram}
SIZES = {"wordpiece": 150, "bpe": 330, "unigram": 120}
EXTRA = "The unbelievable words, (in 2023) don't end. 他喜欢北京。 3rd [MASK] <s> x_y = a+b"
TEXTS = [*(story(number) for number in range(40)), *[EXTRA] * 3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokenizers")


@pytest.fixture(scope="module")
def trained(folder: Path) -> dict[str, Tokenizer]:
    return {kind: KINDS[kind](SIZES[kind]).build(TEXTS, folder / kind) for kind in KINDS}


def words_of(tokenizer: Tokenizer, text: str) -> list[str]:
    """The words as their letters in the text, by offsets."""
    encoding = tokenizer.backend.encode(text, add_special_tokens=False)
    ids, starts = tokenizer.encode([text])[0]
    assert list(ids) == encoding.ids
    found: list[list[int]] = []
    for (begin, end), start in zip(encoding.offsets, starts, strict=True):
        if start:
            found.append([begin, end])
        found[-1] = [min(found[-1][0], begin), max(found[-1][1], end)]
    return [text[begin:end].strip() for begin, end in found]


@pytest.mark.parametrize("kind", KINDS)
def test_vocabulary_has_the_size_asked_for_and_distinct_special_tokens(
    kind: str, trained: dict[str, Tokenizer]
) -> None:
    tokenizer = trained[kind]
    vocabulary = tokenizer.vocabulary
    assert vocabulary.size == SIZES[kind] == tokenizer.backend.get_vocab_size()
    assert sorted(tokenizer.backend.get_vocab().values()) == list(range(SIZES[kind]))
    roles = [vocabulary.pad, vocabulary.unk, vocabulary.cls, vocabulary.sep, vocabulary.mask]
    assert tuple(sorted(roles)) == vocabulary.specials == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unbelievable words", ["unbelievable", "words"]),
        ("(in 2023), 3rd.", ["(", "in", "2023", ")", ",", "3rd", "."]),
        ("don't  end", ["don", "'", "t", "end"]),
        ("他喜欢 Peking北京。", ["他", "喜", "欢", "Peking", "北", "京", "。"]),
        ("  leading spaces", ["leading", "spaces"]),
        ("two  spaces,   three \n\t lines", ["two", "spaces", ",", "three", "lines"]),
        ("x_y=a+b", ["x", "_", "y", "=", "a", "+", "b"]),
    ],
)
def test_words(kind: str, text: str, expected: list[str], trained: dict[str, Tokenizer]) -> None:
    assert words_of(trained[kind], text) == expected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(["old", "Sailor", "unbelievable", ",", "'", "(", "2023", "北京", "x3", "-", "é"]), max_size=9
    )
)
def test_all_kinds_cut_the_same_words(trained: dict[str, Tokenizer], parts: list[str]) -> None:
    for text in (" ".join(parts), "".join(parts)):
        counts = {kind: sum(int(starts.sum()) for _, starts in tok.encode([text])) for kind, tok in trained.items()}
        assert len(set(counts.values())) == 1, (text, counts)


@pytest.mark.parametrize("kind", KINDS)
def test_words_are_those_of_our_pre_tokenizers(kind: str, trained: dict[str, Tokenizer]) -> None:
    tokenizer = trained[kind]
    for text in TEXTS[-6:]:
        encoding = tokenizer.backend.encode(text, add_special_tokens=False)
        numbers = np.array([-1, *encoding.word_ids])
        assert tokenizer.encode([text])[0][1].tolist() == (np.diff(numbers) != 0).astype(int).tolist()


@st.composite
def spaced_words(draw: st.DrawFn) -> list[str]:
    """Words of several scripts with marks and digits, none of which a space, a mark or a Han character ends."""
    bases = draw(st.sampled_from(["नदकिे", "பெரிய", "שלום", "كتاب", "abcéü", "Ωσία", "реки", "x1h20"]))
    marks = draw(st.sampled_from(["", "\u0301", "\u093f\u0902", "\u05b8\u05c1", "\u0650", "\u200d", "\ufe0f", "7"]))
    letters = st.sampled_from(bases).filter(lambda c: unicodedata.category(c)[0] != "M")
    word = st.lists(letters, min_size=1, max_size=4).map(lambda parts: "".join(part + marks for part in parts))
    return draw(st.lists(word, min_size=1, max_size=6))


@settings(max_examples=150, deadline=None)
@given(spaced_words())
def test_a_foreign_byte_level_tokenizer_cuts_no_word(foreign: Tokenizer, parts: list[str]) -> None:
    """Its pre-tokenizer is GPT-2's, which ends words at marks and digits; white space alone separates these."""
    for text in (" ".join(parts), unicodedata.normalize("NFD", " ".join(parts))):
        assert int(foreign.encode([text])[0][1].sum()) == len(parts)
        assert words_of(foreign, text) == text.split(" ")


@pytest.fixture(scope="module")
def foreign() -> Tokenizer:
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet))
    return wrap(PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>"))


def test_a_mark_that_a_normalizer_drops_starts_no_word_and_hides_none(trained: dict[str, Tokenizer]) -> None:
    for text in ("\u200b\u0301Sailor old", "x\u00ad\u0301y z", "'\u0301a b", "\ufefffirst second"):
        assert int(trained["wordpiece"].encode([text])[0][1].sum()) == (3 if "'" in text else 2), text


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("नदी के किनारे पेड़", "नदी के किनारे पेड़"),
        ("Мой Йод, ёлка", "мой йод, ёлка"),
        ("Élève Ώρα Ünïté и мой", "eleve ωρα unite и мой"),
        ("שָׁלוֹם كِتَاب é1\u0301", "שָׁלוֹם كِتَاب e1"),
    ],
)
def test_accents_of_latin_and_greek_letters_alone_are_stripped(text: str, seen: str, tmp_path: Path) -> None:
    tokenizer = WordPiece(90).build([*TEXTS, *[text] * 20], tmp_path)
    assert tokenizer.backend.normalizer is not None
    nfc = unicodedata.normalize("NFC", seen)
    assert tokenizer.backend.normalizer.normalize_str(text) == nfc
    assert tokenizer.backend.normalizer.normalize_str(unicodedata.normalize("NFD", text)) == nfc


def test_a_text_of_latin_and_greek_letters_has_berts_normalizer(tmp_path: Path) -> None:
    tokenizer = WordPiece(70).build([*TEXTS[:9], "é naïve Ώρα ❤️ 1️⃣ ¹"] * 9, tmp_path)
    assert type(tokenizer.backend.normalizer).__name__ == "BertNormalizer"


def test_lost_letters(trained: dict[str, Tokenizer], tmp_path: Path) -> None:
    berts = trained["wordpiece"]  # trained on English and Han characters: other letters are unknown
    assert berts.count_lost(["the old sailor", "élève"]) == (0, 17)
    assert berts.count_lost(["мой old"]) == (5, 7)  # й has a mark, which counts
    lost, letters = trained["bpe"].count_lost(["नदी के", "мой"])
    assert (lost, letters) == (0, 9)


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_special_tokens_in_a_text_are_text(kind: str, trained: dict[str, Tokenizer], folder: Path) -> None:
    for tokenizer in (trained[kind], Tokenizer.load(folder / kind)):
        vocabulary = tokenizer.vocabulary
        ids, _ = tokenizer.encode(["[MASK] a [SEP] <mask> </s> <s> <pad> [CLS] <extra_id_0>"])[0]
        assert not {vocabulary.mask, vocabulary.sep, vocabulary.cls, vocabulary.pad} & set(ids.tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_its_sentences_one_by_one(kind: str, trained: dict[str, Tokenizer]) -> None:
    sentences = ["", *TEXTS[:3], "  ", "\ud800 lone", EXTRA]
    together = trained[kind].encode(sentences)
    assert len(together) == len(sentences)
    for sentence, (ids, starts) in zip(sentences, together, strict=True):
        alone = trained[kind].encode([sentence])[0]
        assert ids.tolist() == alone[0].tolist()
        assert starts.tolist() == alone[1].tolist()
        assert not len(starts) or starts[0] == 1
    assert len(together[0][0]) == len(together[4][0]) == 0
    assert trained[kind].encode([]) == []


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_word_has_the_same_pieces_at_the_start_and_inside(kind: str, trained: dict[str, Tokenizer]) -> None:
    (first, _), (inside, _) = trained[kind].encode(["sailor", "old sailor"])
    assert inside.tolist()[-len(first) :] == first.tolist()


TRAIN = """
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path
from test_tokenizer import KINDS, SIZES, TEXTS
for kind, size in SIZES.items():
    KINDS[kind](size).build(TEXTS, Path(sys.argv[1]) / kind)
"""


def test_training_again_gives_the_same_bytes(trained: dict[str, Tokenizer], folder: Path, tmp_path: Path) -> None:
    for threads in ("1", "3"):
        place = tmp_path / threads
        env = {
            **os.environ,
            "RAYON_NUM_THREADS": threads,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
        }
        subprocess.run([sys.executable, "-c", TRAIN, str(place)], check=True, env=env)
        for kind in KINDS:
            name = f"{kind}/tokenizer.json"
            assert (place / name).read_bytes() == (folder / name).read_bytes(), kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_training_again_on_real_text_gives_the_same_bytes(kind: str, shared: Path, tmp_path: Path) -> None:
    lines = (shared / "novels-en-txt" / "train.txt").read_text().split("\n")[:6000]
    for number in range(3):
        KINDS[kind](4096).build(lines, tmp_path / str(number))
    assert len({(tmp_path / str(n) / "tokenizer.json").read_bytes() for n in range(3)}) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_loads_the_folder(kind: str, trained: dict[str, Tokenizer], folder: Path) -> None:
    from transformers import AutoTokenizer

    theirs, ours = AutoTokenizer.from_pretrained(folder / kind), trained[kind]
    vocabulary = ours.vocabulary
    for role in ("pad", "unk", "cls", "sep", "mask"):
        assert getattr(theirs, f"{role}_token_id") == getattr(vocabulary, role)
    first, second = (ids.tolist() for ids, _ in ours.encode(["old sailor", "a river"]))
    assert theirs("old sailor")["input_ids"] == [vocabulary.cls, *first, vocabulary.sep]
    pair = theirs("old sailor", "a river")
    assert pair["input_ids"] == [vocabulary.cls, *first, vocabulary.sep, *second, vocabulary.sep]
    assert pair["token_type_ids"] == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    assert theirs.decode(first) == "old sailor"
    assert len(theirs) == vocabulary.size


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_tokenizer_comes_back(kind: str, trained: dict[str, Tokenizer], folder: Path) -> None:
    again = pickle.loads(pickle.dumps(Tokenizer.load(folder / kind)))
    assert again.vocabulary == trained[kind].vocabulary == load_vocabulary(folder / kind)[0]
    assert again.name == kind
    assert again.encode([EXTRA])[0][0].tolist() == trained[kind].encode([EXTRA])[0][0].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_sentinels_lie_on_top_in_descending_order(kind: str, tmp_path: Path) -> None:
    size = SIZES[kind]
    tokenizer = KINDS[kind](size, sentinels=3).build(TEXTS, tmp_path)
    assert [tokenizer.backend.token_to_id(f"<extra_id_{k}>") for k in range(3)] == [size + 2, size + 1, size]
    assert tokenizer.vocabulary.size == size + 3
    assert tokenizer.vocabulary.specials == (0, 1, 2, 3, 4, size, size + 1, size + 2)
    assert (tokenizer.vocabulary.sentinels, tokenizer.vocabulary.first_sentinel) == (3, size + 2)
    assert Tokenizer.load(tmp_path).vocabulary == tokenizer.vocabulary
    again = Pretrained(str(tmp_path)).build((), tmp_path / "again").vocabulary
    assert (again.sentinels, again.first_sentinel) == (3, size + 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_larger_than_the_text_can_give(kind: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.vocab_size=50000 .* gives (\d+)") as caught:
        KINDS[kind](50_000).build(TEXTS, tmp_path / "no")
    size = int(str(caught.value).split(" gives ")[1].split(":")[0])
    assert KINDS[kind](size).build(TEXTS, tmp_path / "yes").vocabulary.size == size


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_without_room(kind: str) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.vocab_size=6 .* at least"):
        KINDS[kind](6)


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_rare_characters_have_no_entries(kind: str, tmp_path: Path) -> None:
    texts = [*TEXTS, "".join(map(chr, range(0x4E00, 0x4F00)))]
    tokenizer = KINDS[kind](100, alphabet=40).build(texts, tmp_path)
    han = [piece for piece in tokenizer.backend.get_vocab() if words.HAN.search(piece)]
    assert len(han) < 10
    assert tokenizer.encode(["\u4eff"])[0][0].tolist()[-1] == tokenizer.vocabulary.unk


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_a_text_whose_words_are_characters_fills_its_vocabulary(kind: str, tmp_path: Path) -> None:
    texts = ["".join(chr(0x4E00 + number * step % 300) for number in range(300)) for step in (1, 7, 11)]
    assert KINDS[kind](200).build(texts, tmp_path / "half").vocabulary.size == 200
    with pytest.raises(UserError, match=r"gives (\d+): .* tokenizer\.alphabet=300 with .*vocab_size=(\d+)$") as caught:
        KINDS[kind](2000, alphabet=100).build(texts, tmp_path / "no")
    size, larger = re.findall(r"gives (\d+): .* tokenizer\.vocab_size=(\d+)$", str(caught.value))[0]
    assert KINDS[kind](int(size), alphabet=100).build(texts, tmp_path / "less").vocabulary.size == int(size)
    assert KINDS[kind](int(larger), alphabet=300).build(texts, tmp_path / "more").vocabulary.size == int(larger)
    with pytest.raises(UserError, match=r"or raise tokenizer\.alphabet=300$"):
        KINDS[kind](200, alphabet=100).build(texts, tmp_path / "no")


@pytest.fixture(scope="module")
def gpt_like(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as GPT-2's: one special token, no mask, no frame, truncation left on."""
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, pre_tokenizers, trainers

    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    backend.train_from_iterator(TEXTS, trainer)
    return written(backend, tmp_path_factory.mktemp("gpt"), bos_token="<|endoftext|>", eos_token="<|endoftext|>")


@pytest.fixture(scope="module")
def llama_like(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose tokenizer has no pre-tokenizer, so that its word ids say nothing."""
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, normalizers

    scores = [("<unk>", 0.0), ("</s>", 0.0), *((f"▁{w}", -2.0) for w in ("old", "sail", "a")), ("or", -3.0)]
    backend = Backend(models.Unigram([*scores, *((c, -9.0) for c in "▁abcdefghijklmnopqrstuvwxyz.,北京")], 0, False))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Metaspace()
    return written(backend, tmp_path_factory.mktemp("llama"), unk_token="<unk>", eos_token="</s>")


def written(backend: Any, folder: Path, **roles: str) -> Path:
    from transformers import PreTrainedTokenizerFast

    backend.enable_truncation(4)
    backend.enable_padding(length=16)
    PreTrainedTokenizerFast(tokenizer_object=backend, **roles).save_pretrained(folder)
    return folder


def test_pretrained_maps_roles_and_adds_the_missing_ones(gpt_like: Path, tmp_path: Path) -> None:
    tokenizer = Pretrained(str(gpt_like)).build((), tmp_path)
    vocabulary = tokenizer.vocabulary
    end = tokenizer.backend.token_to_id("<|endoftext|>")
    assert vocabulary.cls == vocabulary.sep == end
    assert len({vocabulary.mask, vocabulary.pad, end}) == 3
    assert vocabulary.size == max(tokenizer.backend.get_vocab().values()) + 1
    ids, starts = tokenizer.encode(["old sailor walked again and again. 北京"])[0]
    assert len(ids) > 8
    assert starts.sum() == 9


def test_pretrained_words_without_a_pre_tokenizer(llama_like: Path, tmp_path: Path) -> None:
    tokenizer = Pretrained(str(llama_like), sentinels=2).build((), tmp_path)
    assert words_of(tokenizer, "old sailor, a b.北京") == ["old", "sailor", ",", "a", "b", ".", "北", "京"]
    assert tokenizer.backend.token_to_id("<extra_id_0>") == tokenizer.vocabulary.size - 1
    assert [int(starts.sum()) for _, starts in tokenizer.encode(["old sailor", "北京", "a"])] == [2, 2, 1]


def test_pretrained_keeps_a_saved_one_as_it_is(folder: Path, trained: dict[str, Tokenizer], tmp_path: Path) -> None:
    again = Pretrained(str(folder / "wordpiece"), vocab_size=99).build((), tmp_path)
    assert again.vocabulary == trained["wordpiece"].vocabulary
    assert again.encode([EXTRA])[0][0].tolist() == trained["wordpiece"].encode([EXTRA])[0][0].tolist()


def test_pretrained_bad_names(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.name=\./nowhere"):
        Pretrained("./nowhere")
    with pytest.raises(UserError, match=r"tokenizer\.name=.* cannot be loaded"):
        Pretrained(str(tmp_path)).build((), tmp_path / "out")
    with pytest.raises(UserError, match="holds no saved tokenizer"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("choice", [*KINDS, "pretrained"])
def test_every_choice_composes(choice: str) -> None:
    from paribus.core.build import build

    extra = ["tokenizer.name=some-name"] if choice == "pretrained" else []
    cfg = compose([f"tokenizer={choice}", "tokenizer.vocab_size=300", *extra])
    identity = build(cfg.tokenizer).identity()
    assert identity["kind"] == choice
    assert "name" not in identity


@pytest.mark.parametrize("kind", KINDS)
def test_spellings_have_no_marks_of_words(kind: str, trained: dict[str, Tokenizer], folder: Path) -> None:
    vocabulary = trained[kind].vocabulary
    entries = Entries(folder / kind, vocabulary.size, None)
    spellings = replace(vocabulary, entries=entries).spellings
    assert len(spellings) == vocabulary.size
    assert spellings[vocabulary.mask] == trained[kind].backend.id_to_token(vocabulary.mask)
    ids = [token for row, _ in trained[kind].encode(["old sailor", "the river"]) for token in row.tolist()]
    assert "".join(spellings[token] for token in ids) == "oldsailortheriver"
    again = pickle.loads(pickle.dumps(entries))
    assert "spellings" not in vars(again)
    assert again.spellings == spellings


def test_bytes_that_are_no_text_stay_as_they_are_written(gpt_like: Path, tmp_path: Path) -> None:
    tokenizer = Pretrained(str(gpt_like)).build((), tmp_path / "made")
    spellings = Entries(tmp_path / "made", tokenizer.vocabulary.size, None).spellings
    number = tokenizer.backend.token_to_id("Ã")
    assert spellings[number] == "Ã"
    assert not any(text.startswith(("Ġ", " ")) for text in spellings)


def test_a_vocabulary_without_a_text_has_no_counts(trained: dict[str, Tokenizer]) -> None:
    with pytest.raises(UserError, match="take the vocabulary of prepared data"):
        _ = trained["wordpiece"].vocabulary.count_V
