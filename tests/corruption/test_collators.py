"""The collators for other people's loops: the command line's bits, three families of tokenizers, any workers."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from fake_store import FakeStore
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch.utils.data import DataLoader
from transformers import AutoConfig, AutoModelForMaskedLM, AutoModelForSeq2SeqLM, PreTrainedTokenizerFast

from paribus import collators
from paribus.core.build import build
from paribus.core.config import compose, plain
from paribus.core.errors import UserError
from paribus.corruption.collators.collator import Collator
from paribus.corruption.collators.encoder import EncoderCollator
from paribus.corruption.collators.features import FeatureCollator
from paribus.corruption.collators.text_to_text import EncoderDecoderCollator
from paribus.corruption.examples import Examples
from paribus.corruption.masking.infilling import Infilling
from paribus.corruption.masking.whole_row import Rotation
from paribus.corruption.views.replace import Replace
from paribus.data.formats.full_sentences import FullSentences
from paribus.data.formats.windows import Windows
from paribus.data.tokens.pretrained import wrap

SENTENCES = [
    "The quick brown foxes, don't jump over the lazy dogs unbelievably.",
    "Pre-training of language models: a survey of twenty studies (2020).",
    "Masks are drawn anew in every epoch, or never.",
    "Nobody reads a word that nobody wrote.",
] * 12
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"<extra_id_{k}>" for k in reversed(range(30)))]
FAMILIES = ("wordpiece", "bytes", "unigram")
IN_PLACE = {
    "bernoulli": collators.mask_tokens,
    "whole_word": collators.mask_whole_words,
    "geometric_span": collators.mask_spans,
    "ngram": collators.mask_ngrams,
}


def wordpiece() -> tuple[Tokenizer, Any]:
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    return made, trainers.WordPieceTrainer(vocab_size=140, special_tokens=SPECIALS)


def byte_level() -> tuple[Tokenizer, Any]:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return made, trainers.BpeTrainer(vocab_size=360, special_tokens=SPECIALS, initial_alphabet=alphabet)


def unigram() -> tuple[Tokenizer, Any]:
    made = Tokenizer(models.Unigram())
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    return made, trainers.UnigramTrainer(vocab_size=140, special_tokens=SPECIALS, unk_token="[UNK]")


@cache
def tokenizer(family: str) -> PreTrainedTokenizerFast:
    made, trainer = {"wordpiece": wordpiece, "bytes": byte_level, "unigram": unigram}[family]()
    made.train_from_iterator(SENTENCES, trainer)
    ends = [(name, made.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    roles = {f"{role}_token": f"[{role.upper()}]" for role in ("pad", "unk", "cls", "sep", "mask")}
    return PreTrainedTokenizerFast(tokenizer_object=made, **roles)


def store(family: str) -> FakeStore:
    batch = wrap(tokenizer(family)).flat(SENTENCES)
    edges = np.concatenate([[0], np.cumsum(batch.length_S)]).astype(np.int64)
    documents = np.arange(0, len(SENTENCES) + 1, 4)
    return FakeStore(batch.ids_T.astype(np.uint16), batch.word_start_T, edges, documents)


def open_examples(family: str, collator: FeatureCollator, input_format: Any, packer: Collator, length: int) -> Examples:
    """The examples of a run with this corruption and seed."""
    vocabulary = wrap(tokenizer(family)).vocabulary
    return Examples(store(family), input_format, collator.corruption, packer, vocabulary, collator.seed, length)


@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize("masking", IN_PLACE)
@pytest.mark.parametrize("family", FAMILIES)
def test_masks_are_those_of_a_run(family: str, masking: str, epoch: int) -> None:
    collator = IN_PLACE[masking](tokenizer(family), 0.2, seed=5)
    examples = open_examples(family, collator, FullSentences(64), EncoderCollator(), 64)
    rows = np.arange(6)
    text, wanted = examples.views(epoch, rows).text, examples.batch(epoch, rows)
    collator.set_epoch(epoch)
    found = collator(
        [
            {"input_ids": row[:n].tolist(), "example_id": at}
            for at, row, n in zip(rows, text.ids_BL, text.length_B, strict=True)
        ]
    )
    assert (found["input_ids"].numpy() == wanted["ids_BL"]).all()
    assert (np.flatnonzero(found["labels"].numpy() != -100) == wanted["slot_P"]).all()
    assert (found["labels"].numpy().reshape(-1)[wanted["slot_P"]] == wanted["target_P"]).all()
    assert (found["attention_mask"].numpy().sum(1) == text.length_B).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("make", [collators.corrupt_spans, collators.infill_text])
def test_what_is_read_and_written_is_that_of_a_run(family: str, make: Any) -> None:
    collator = make(tokenizer(family), seed=2)
    examples = open_examples(family, collator, Windows(48), EncoderDecoderCollator(), 48)
    views = examples.views(1, rows := np.arange(5))
    wanted, text = examples.batch(1, rows), views.text
    features = [
        {"input_ids": ids[:n].tolist(), "word_start": starts[:n].tolist(), "example_id": at}
        for at, ids, starts, n in zip(rows, text.ids_BL, text.start_BL, text.length_B, strict=True)
    ]
    collator.set_epoch(1)
    found = collator(features)
    assert (found["input_ids"].numpy() == wanted["ids_BL"]).all()
    assert (found["labels"].numpy() == wanted["label_BT"]).all()


@pytest.mark.parametrize("masking", IN_PLACE)
def test_the_defaults_are_those_of_the_config(masking: str) -> None:
    config = plain(compose(["scale=test", f"masking={masking}", "masking.rate=0.15"]))
    collator = IN_PLACE[masking](tokenizer("wordpiece"))
    assert build(config["masking"]) == collator.corruption.masking
    assert build(config["objective"]["view"]) == collator.corruption.inputs


@pytest.mark.parametrize("family", FAMILIES)
def test_words_stay_whole_with_every_family_and_need_no_second_column(family: str) -> None:
    fast = tokenizer(family)
    collator = collators.mask_whole_words(fast, 0.3, masks="static", view=Replace(1.0, 0.0, 0.0))
    encoded = fast(SENTENCES[0])
    batch = collator([{"input_ids": encoded["input_ids"]}])
    masked = (batch["labels"][0] != -100).numpy()
    assert masked.any()
    for word in re.finditer("[A-Za-z]+", SENTENCES[0]):
        at = [k for k, (a, b) in enumerate(encoded.encodings[0].offsets) if a < word.end() and b > word.start()]
        assert masked[at].all() or not masked[at].any(), word[0]


def test_a_row_that_begins_within_a_word_is_read_by_its_characters() -> None:
    fast = tokenizer("wordpiece")
    own = wrap(fast)
    ids = own.flat(["unbelievably jumping foxes."]).ids_T.tolist()
    (whole,), (cut,) = own.find_starts([ids]), own.find_starts([ids[1:]])
    assert whole.tolist()[2:] == cut.tolist()[1:]
    assert own.find_starts([[]])[0].tolist() == []


def loop(collator: FeatureCollator, workers: int, epochs: int = 2) -> list[list[int]]:
    """All examples of each epoch as the model reads them, in the order of the data."""
    data = [
        {"input_ids": tokenizer("wordpiece")(text)["input_ids"], "example_id": at}
        for at, text in enumerate(SENTENCES[:8])
    ]
    found = []
    loader: DataLoader[Any] = DataLoader(data, batch_size=3, collate_fn=collator, num_workers=workers)  # type: ignore[arg-type]
    for epoch in range(epochs):
        collator.set_epoch(epoch)
        found += [
            row[mask.bool()].tolist()
            for batch in loader
            for row, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)
        ]
    return found


def test_workers_and_batches_change_no_mask_and_the_schedule_says_what_does() -> None:
    dynamic = loop(collators.mask_spans(tokenizer("wordpiece"), seed=3), 0)
    assert dynamic == loop(collators.mask_spans(tokenizer("wordpiece"), seed=3), 2)
    assert dynamic != loop(collators.mask_spans(tokenizer("wordpiece"), seed=4), 0)
    assert dynamic[:8] != dynamic[8:]
    static = loop(collators.mask_spans(tokenizer("wordpiece"), seed=3, masks="static"), 0)
    assert static[:8] == static[8:] == dynamic[:8]
    copies = loop(collators.mask_spans(tokenizer("wordpiece"), seed=3, masks=2), 0, 4)
    assert copies[:16] == copies[16:] == dynamic


def test_equal_tokens_have_equal_masks_without_ids() -> None:
    fast = tokenizer("bytes")
    collator = pickle.loads(pickle.dumps(collators.mask_tokens(fast, masks="static")))
    one = {"input_ids": fast(SENTENCES[0])["input_ids"]}
    other = {"input_ids": fast(SENTENCES[1])["input_ids"]}
    first, second = collator([one, other, one]), collator([one])
    width = second["labels"].shape[1]
    assert torch.equal(first["labels"][0], first["labels"][2])
    assert torch.equal(first["labels"][0, :width], second["labels"][0])


def test_padded_examples_and_segments_are_read_as_they_are_meant() -> None:
    fast = tokenizer("wordpiece")
    ids = fast(SENTENCES[0])["input_ids"]
    collator = collators.mask_tokens(fast, masks="static")
    padded = {"input_ids": [*ids, 0, 0, 0], "attention_mask": [1] * len(ids) + [0] * 3, "example_id": 1}
    segments = {"input_ids": ids, "token_type_ids": [0] * 5 + [1] * (len(ids) - 5), "example_id": 1}
    first, second = collator([padded]), collator([segments])
    assert torch.equal(first["input_ids"], second["input_ids"])
    assert second["token_type_ids"].sum() == len(ids) - 5


@pytest.mark.parametrize("make", [collators.mask_tokens, collators.corrupt_spans])
def test_padding_changes_no_mask(make: Any) -> None:
    fast = tokenizer("wordpiece")
    ids, starts = fast(SENTENCES[0])["input_ids"], [1, 0] * 40
    collator = make(fast, masks="static")
    plain = collator([{"input_ids": ids, "word_start": starts[: len(ids)]}])
    for before, after in ((3, 0), (0, 3), (2, 1)):
        pads = ([fast.pad_token_id] * before, [fast.pad_token_id] * after)
        padded = {
            "input_ids": [*pads[0], *ids, *pads[1]],
            "word_start": [*pads[0], *starts[: len(ids)], *pads[1]],
            "attention_mask": [0] * before + [1] * len(ids) + [0] * after,
        }
        found = collator([padded])
        assert all(torch.equal(found[name], plain[name]) for name in plain)


def test_further_columns_of_numbers_are_part_of_the_batch() -> None:
    fast = tokenizer("wordpiece")
    ids = fast(SENTENCES[0])["input_ids"]
    places = [*range(len(ids)), 0, 0]
    feature = {"input_ids": [*ids, 0, 0], "attention_mask": [1] * len(ids) + [0, 0], "position_ids": places}
    more = {"next_sentence_label": 1, "weight": 0.5}
    batch = collators.mask_tokens(fast, masks="static")([{**feature, **more}, {**feature, **more}])
    assert batch["position_ids"].shape == batch["input_ids"].shape
    assert batch["position_ids"][1].tolist() == places[: len(ids)] + [0] * (batch["input_ids"].shape[1] - len(ids))
    assert (batch["next_sentence_label"].tolist(), batch["weight"].tolist()) == ([1, 1], [0.5, 0.5])
    assert batch["weight"].dtype == torch.float32
    written = collators.corrupt_spans(fast, masks="static")([{"input_ids": ids, **more}])
    assert written["next_sentence_label"].tolist() == [1]


@pytest.mark.parametrize(
    ("make", "more", "message"),
    [
        (
            collators.mask_tokens,
            {"labels": [1, 2]},
            r"have labels, which the masks replace: remove_columns\('labels'\)",
        ),
        (collators.mask_tokens, {"text": "a b"}, "have text, which is not one number per example or token"),
        (collators.mask_tokens, {"boxes": [1, 2, 3]}, "have boxes, which is not one number per example or token"),
        (collators.corrupt_spans, {"position_ids": [0, 1]}, "have position_ids, which is not one number per example:"),
    ],
)
def test_columns_that_no_batch_can_have_are_refused_by_name(make: Any, more: dict[str, Any], message: str) -> None:
    fast = tokenizer("wordpiece")
    feature = {"input_ids": fast(SENTENCES[0])["input_ids"]}
    with pytest.raises(UserError, match=message):
        make(fast, masks="static")([{**feature, **more}])
    with pytest.raises(UserError, match=r"only some examples have \w+|have labels"):
        make(fast, masks="static")([{**feature, **more}, feature])


def test_what_cannot_work_is_refused_with_what_to_do() -> None:
    fast = tokenizer("wordpiece")
    feature = {"input_ids": fast(SENTENCES[0])["input_ids"]}
    with pytest.raises(UserError, match=r"call set_epoch\(epoch\)"):
        collators.mask_tokens(fast)([feature])
    with pytest.raises(UserError, match="masks=dynamik"):
        collators.mask_tokens(fast, masks="dynamik")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="nothing to predict in place"):
        collators.mask_in_place(fast, Infilling(0.3))
    with pytest.raises(UserError, match="no mask token"):
        collators.mask_tokens(PreTrainedTokenizerFast(tokenizer_object=fast.backend_tokenizer, pad_token="[PAD]"))
    with pytest.raises(UserError, match="not a fast tokenizer"):
        collators.mask_tokens(object())  # type: ignore[arg-type]
    with pytest.raises(UserError, match="nothing to predict in place"):
        collators.mask_in_place(fast, Rotation())


@pytest.mark.parametrize("family", FAMILIES)
def test_without_a_decoder_words_are_not_guessed(family: str) -> None:
    bare = pickle.loads(pickle.dumps(tokenizer(family)))
    bare.backend_tokenizer.decoder = None
    feature = {"input_ids": bare(SENTENCES[0])["input_ids"]}
    with pytest.raises(UserError, match=r"has no decoder, .* give each example the column word_start"):
        collators.mask_whole_words(bare, masks="static")([feature])
    collators.mask_tokens(bare, masks="static")([feature])
    collators.mask_whole_words(bare, masks="static")([{**feature, "word_start": [1] * len(feature["input_ids"])}])


def test_sentinels_that_are_missing_or_ascend_are_refused() -> None:
    made, trainer = unigram()
    trainer.special_tokens = ["[PAD]", "[UNK]"]
    made.train_from_iterator(SENTENCES, trainer)
    bare = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]")
    with pytest.raises(UserError, match=r"no sentinels <extra_id_0>.*reversed\(range\(100\)\)"):
        collators.corrupt_spans(bare)
    bare.add_special_tokens({"additional_special_tokens": [f"<extra_id_{k}>" for k in range(100)]})
    with pytest.raises(UserError, match="do not descend from <extra_id_0>"):
        collators.corrupt_spans(bare)


def test_the_tokenizer_is_not_changed() -> None:
    fast = tokenizer("unigram")
    before = fast.backend_tokenizer.to_str()
    collators.corrupt_spans(fast, masks="static")([{"input_ids": fast(SENTENCES[0])["input_ids"]}])
    assert fast.backend_tokenizer.to_str() == before


def test_importing_paribus_loads_neither_torch_nor_anything_else_that_is_large() -> None:
    large = {"torch", "numpy", "pandas", "wandb", "hydra", "transformers"}
    script = f"import sys, paribus; print(sorted({large} & set(sys.modules)), dir(paribus))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("[] ")
    assert "collators" in shown


TINY = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
SEQ2SEQ = {"d_model": 16, "num_layers": 1, "num_heads": 2, "d_kv": 8, "d_ff": 32, "decoder_start_token_id": 0}
BART = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 32}
BART |= {"decoder_attention_heads": 2, "decoder_ffn_dim": 32, "bos_token_id": 2, "eos_token_id": 3}


@pytest.mark.parametrize(
    ("kind", "make", "settings"),
    [
        ("distilbert", collators.mask_spans, {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 32}),
        ("modernbert", collators.mask_whole_words, TINY),
        ("electra", collators.mask_ngrams, TINY | {"embedding_size": 16}),
        ("deberta-v2", collators.mask_tokens, TINY),
        ("t5", collators.corrupt_spans, SEQ2SEQ),
        ("bart", collators.infill_text, BART),
    ],
)
def test_models_of_transformers_take_the_batch(kind: str, make: Any, settings: dict[str, Any]) -> None:
    fast = tokenizer("wordpiece")
    batch = make(fast, masks="static")([{"input_ids": fast(text)["input_ids"]} for text in SENTENCES[:4]])
    config = AutoConfig.for_model(kind, vocab_size=len(fast), pad_token_id=0, **settings)
    auto = AutoModelForSeq2SeqLM if kind in ("t5", "bart") else AutoModelForMaskedLM
    loss = auto.from_config(config)(**batch).loss
    loss.backward()
    assert 1.0 < loss.item() < 20.0
