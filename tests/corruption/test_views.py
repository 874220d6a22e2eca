"""What is read and what is written: golden vectors, round trips, legal pairs, and the arrays of both layouts."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from fake_store import MASK, PAD, SEP, FakeStore, random_store, store_of
from fake_text import noise
from fake_windows import INPUTS, MASKINGS, TARGETS, VOCABULARY, corruption, golden, tokens, windows
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core.errors import UserError
from paribus.corruption.collators.encoder import EncoderCollator
from paribus.corruption.collators.text_to_text import EncoderDecoderCollator, SingleStreamCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples, measure
from paribus.corruption.masking.infilling import Infilling
from paribus.corruption.masking.one_span import Fragment as MassFragment
from paribus.corruption.masking.single_tokens import Iid
from paribus.corruption.views.replace import MaskTokens
from paribus.corruption.views.sentinels import SharedSentinel, UniqueSentinel
from paribus.corruption.views.tokens import Drop, Fragment, Full
from paribus.data.formats.windows import Windows
from paribus.data.sequences import Marks

LEGAL = [
    *product(["random_spans", "random_spans_50", "iid"], ["unique", "shared", "drop", "mask", "mask_random"], TARGETS),
    *product(["prefix", "deletion", "fragment"], ["unique", "shared", "drop", "mask", "mask_80_10_10"], TARGETS),
    *product(["infilling", "infilling_exact"], ["shared", "shared_mask", "drop"], ["full", "drop"]),
    *product(["infilling_sentences"], ["shared", "drop"], ["full"]),
    *product(["permute", "sentence_permutation", "rotation"], ["permuted"], ["full"]),
    ("all", "nothing", "full"),
]
LEGAL = [row for row in LEGAL if row[2] != "fragment" or row[0] in ("prefix", "fragment")]


@pytest.mark.parametrize(
    ("view", "row"),
    [
        (MaskTokens(), [999, 999, 12, 13, 999, 15]),
        (SharedSentinel(), [999, 12, 13, 999, 15]),
        (UniqueSentinel(), [999, 12, 13, 998, 15]),
        (Drop(), [12, 13, 15]),
        (Drop("text"), [10, 11, 14]),
        (UniqueSentinel("text"), [10, 11, 999, 14, 998]),
        (SharedSentinel("text"), [10, 11, 999, 14, 999]),
        (SharedSentinel(symbol="mask"), [MASK, 12, 13, MASK, 15]),
        (Full(), [10, 11, 12, 13, 14, 15]),
    ],
)
def test_the_golden_vector_of_t5(view: Any, row: list[int]) -> None:
    text, marks = golden()
    found = view(text, marks, noise(1), VOCABULARY)
    assert tokens(found, 0) == [*row, SEP]
    assert view.length(6, 3, 2) == len(row) + 1


def test_masks_need_no_sentinel() -> None:
    bare = replace(VOCABULARY, sentinels=0)
    Corruption(Infilling(0.3), SharedSentinel(symbol="mask"), Full()).check(63, bare)
    with pytest.raises(UserError, match=r"tokenizer\.sentinels=0"):
        Corruption(Infilling(0.3), SharedSentinel(), Full()).check(63, bare)


def test_fragments_keep_their_places() -> None:
    text, _ = golden()
    marks = Marks(np.array([[0, 0, 1, 1, 1, 0]], np.int16))
    found = Fragment()(text, marks, noise(1), VOCABULARY)
    assert (found.ids_BL.tolist(), found.place_BL.tolist()) == ([[12, 13, 14]], [[2, 3, 4]])


def filled(read: list[int], written: list[int], shared: bool = False) -> list[int]:
    """The text from inputs and targets with sentinels, unique or shared; the targets may start without one, since noise
    may come first (T5's quirk).
    """
    spans: list[list[int]] = [[]]
    for token in written[:-1]:
        if token >= 900:
            spans.append([])
        else:
            spans[-1].append(token)
    if spans[0] == []:
        spans = spans[1:]
    text: list[int] = []
    for token in read[:-1]:
        if token >= 900:
            text += spans.pop(0) if shared else spans[999 - token]
        else:
            text.append(token)
    return text


@given(
    lengths=st.lists(st.integers(2, 120), min_size=1, max_size=6),
    seed=st.integers(0, 99),
    masking=st.sampled_from(["random_spans", "random_spans_50", "iid", "deletion", "prefix", "fragment"]),
)
@settings(max_examples=80, deadline=None)
def test_sentinels_give_the_text_back(lengths: list[int], seed: int, masking: str) -> None:
    text = windows(lengths, seed)
    views = corruption(masking, "unique", "unique")(text, noise(len(lengths), seed), VOCABULARY)
    for row in range(len(lengths)):
        assert filled(tokens(views.inputs, row), tokens(views.targets, row)) == tokens(text, row)
    views = corruption(masking, "shared", "shared")(text, noise(len(lengths), seed), VOCABULARY)
    for row in range(len(lengths)):
        assert filled(tokens(views.inputs, row), tokens(views.targets, row), shared=True) == tokens(text, row)


@given(
    lengths=st.lists(st.integers(2, 70), min_size=1, max_size=5), seed=st.integers(0, 99), case=st.sampled_from(LEGAL)
)
@settings(max_examples=150, deadline=None)
def test_every_legal_pair_holds_the_text(lengths: list[int], seed: int, case: tuple[str, str, str]) -> None:
    text, made = windows(lengths, seed), corruption(*case)
    made.check(max(lengths), VOCABULARY)
    views = made(text, noise(len(lengths), seed), VOCABULARY)
    span_BL = views.marks.span_BL
    for row, length in enumerate(lengths):
        original = tokens(text, row)
        kept = [token for token, span in zip(original, span_BL[row], strict=False) if not span]
        hidden = [token for token, span in zip(original, span_BL[row], strict=False) if span]
        read, written = tokens(views.inputs, row), tokens(views.targets, row)
        if case[1] in ("unique", "shared", "shared_mask", "drop") and case[0] != "infilling_sentences":
            assert [token for token in read[:-1] if MASK < token < 900] == kept
        if case[1] in ("mask", "mask_random", "mask_80_10_10"):
            assert all(span or token == shown for token, shown, span in zip(original, read, span_BL[row], strict=False))
        if case[1] == "permuted":
            assert sorted(read[:-1]) == sorted(original)
        if case[2] == "full":
            assert written == [*original, SEP]
        elif case[2] == "fragment":
            assert written == hidden
        else:
            assert [token for token in written[:-1] if token < 900] == hidden
        assert case[1] == "nothing" or (read[-1] == SEP and len(read) <= length + 1)


ROWS = {
    "prefix_lm": ("prefix", "drop", "drop"),
    "all_permute": ("permute", "permuted", "full"),
    "iid_15_r10s90_f": ("iid", "mask_random", "full"),
    "iid_15_m_f": ("iid", "mask", "full"),
    "iid_15_u_u": ("iid", "unique", "unique"),
    "iid_15_d_d": ("iid", "drop", "drop"),
    "span_3_15_u_u": ("random_spans", "unique", "unique"),
    "span_2_50_s_s": ("random_spans_50", "shared", "shared"),
    "lm": ("all", "nothing", "full"),
    "fragment_50_r10k10s80_fragment": ("fragment", "mask_80_10_10", "fragment"),
    "infilling_3.5_30_s_f": ("infilling", "shared_mask", "full"),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_named_as_in_t5_s_gin_files(name: str) -> None:
    assert corruption(*ROWS[name]).name == name


def test_all_other_pairs_are_refused() -> None:
    for case in product(MASKINGS, INPUTS, TARGETS):
        same_kind = (case[0], {"mask_80_10_10": "mask", "mask_random": "mask"}.get(case[1], case[1]), case[2])
        same_kind = (same_kind[0], "shared" if case[1] == "shared_mask" else same_kind[1], same_kind[2])
        if same_kind in LEGAL:
            corruption(*case).check(40, VOCABULARY)
        else:
            with pytest.raises(UserError) as refused:
                corruption(*case).check(40, VOCABULARY)
            assert "\n" not in str(refused.value)


def test_masks_of_t5_and_random_tokens_have_their_shares() -> None:
    views = corruption("iid", "mask_random", "full")(windows([400] * 50), noise(50), VOCABULARY)
    shown = views.inputs.ids_BL[:, :-1][views.marks.span_BL > 0]
    assert abs((shown == 999).mean() - 0.9) < 0.02
    assert ((shown == 999) | ((shown > MASK) & (shown < 900))).all()


@pytest.fixture(scope="module")
def store() -> FakeStore:
    return random_store(800, seed=4)


def examples(store: FakeStore, case: tuple[str, str, str], collator: Any = None, **input_format: Any) -> Examples:
    made = corruption(*case)
    return Examples(store, Windows(64, **input_format), made, collator or EncoderDecoderCollator(), VOCABULARY, 0, 64)


@pytest.mark.parametrize("case", [case for case in LEGAL if case[1] != "nothing"])
def test_every_row_packs_for_both_layouts(case: tuple[str, str, str], store: FakeStore) -> None:
    rows = np.arange(12)
    made = examples(store, case)
    batch, views = made.batch(1, rows), made.views(1, rows)
    assert batch["ids_BL"].shape[1] == batch["length_B"].max() <= 64
    assert (batch["length_B"] <= made.lengths(1)[rows]).all()
    for row in range(12):
        written = tokens(views.targets, row)
        assert batch["label_BT"][row].tolist() == [*written, *[-100] * (batch["label_BT"].shape[1] - len(written))]
        if "shown_BL" not in batch:
            assert batch["decoder_ids_BT"][row, : len(written)].tolist() == [PAD, *written[:-1]]
            assert (batch["decoder_ids_BT"][row, len(written) :] <= 904).all()
    counts = batch["counts"]
    assert counts["target_tokens"] == counts["predicted"] == (batch["label_BT"] != -100).sum()
    assert (
        counts["padding"]
        == batch["ids_BL"].size + batch["label_BT"].size - counts["input_tokens"] - counts["predicted"]
    )
    if case[2] == "fragment":
        with pytest.raises(UserError, match="needs a separate decoder"):
            examples(store, case, SingleStreamCollator())
        return
    stream = examples(store, case, SingleStreamCollator()).batch(1, rows)
    for row in range(12):
        read, written = tokens(views.inputs, row), tokens(views.targets, row)
        length = len(read) + len(written)
        assert stream["ids_BL"][row, :length].tolist() == [PAD, *read, *written[:-1]]
        assert stream["label_BL"][row, :length].tolist() == [*[-100] * len(read), *written]
        assert (stream["label_BL"][row, length:] == -100).all()
        assert (stream["ids_BL"][row, length:] == PAD).all()
        assert (stream["length_B"][row], stream["prefix_length_B"][row]) == (length, len(read) + 1)


def test_a_language_model_reads_nothing_first(store: FakeStore) -> None:
    made = examples(store, ("all", "nothing", "full"), SingleStreamCollator())
    batch = made.batch(0, [0, 3])
    assert batch["prefix_length_B"].tolist() == [0, 0]
    assert batch["ids_BL"].shape == (2, 64)
    assert batch["label_BL"][0].tolist() == [*store.ids[:63].tolist(), SEP]
    assert batch["ids_BL"][0].tolist() == [PAD, *store.ids[:63].tolist()]
    assert made.lengths(0)[0] == 64
    with pytest.raises(UserError, match="leaves the encoder without text"):
        examples(store, ("all", "nothing", "full"))


def test_mass_feeds_the_token_before_each(store: FakeStore) -> None:
    made = examples(store, ("fragment", "mask_80_10_10", "fragment"))
    batch, views = made.batch(0, np.arange(40)), made.views(0, np.arange(40))
    text, place_BT = views.text, views.targets.place_BL
    for row in range(40):
        first = place_BT[row, 0]
        width = batch["target_length_B"][row]
        assert place_BT[row, :width].tolist() == list(range(first, first + width))
        before = text.ids_BL[row, first - 1] if first else PAD
        assert batch["decoder_ids_BT"][row, :width].tolist() == [before, *batch["label_BT"][row, : width - 1].tolist()]


def test_mass_hides_what_is_masked_from_the_decoder(store: FakeStore) -> None:
    made = examples(store, ("fragment", "mask_80_10_10", "fragment"))
    batch, views = made.batch(0, np.arange(40)), made.views(0, np.arange(40))
    hidden_BL, sentinel = ~batch["shown_BL"], VOCABULARY.first_sentinel  # which this text holds by chance
    assert hidden_BL[batch["ids_BL"] == MASK].all()
    assert np.isin(batch["ids_BL"][hidden_BL], (MASK, sentinel)).all()
    assert not hidden_BL[:, -1].any()
    assert abs(hidden_BL.sum() / views.marks.span_BL.sum() - 0.8) < 0.05
    plain = examples(store, ("iid", "mask_80_10_10", "full")).batch(0, np.arange(40))
    assert batch.keys() - plain.keys() == {"shown_BL"}, "the model reads nothing else of MASS"


def test_fragments_of_unequal_length_need_no_small_pad_id() -> None:
    text, made = windows([6, 20]), Corruption(MassFragment(0.5), INPUTS["mask_80_10_10"], TARGETS["fragment"])
    padded = replace(VOCABULARY, pad=999_999)
    batches = [EncoderDecoderCollator().arrays(made(text, noise(2), own), own) for own in (VOCABULARY, padded)]
    for name in ("label_BT", "shown_BL"):
        assert np.array_equal(batches[0][name], batches[1][name])
    real_BT = batches[0]["label_BT"] >= 0
    assert np.array_equal(batches[0]["decoder_ids_BT"][real_BT], batches[1]["decoder_ids_BT"][real_BT] % 999_999)


@pytest.mark.parametrize(("rate", "size"), [(0.016, 1), (1.0, 63)])
def test_the_extremes_of_mass(store: FakeStore, rate: float, size: int) -> None:
    made = Corruption(MassFragment(rate), INPUTS["mask_80_10_10"], TARGETS["fragment"])
    made.check(63, VOCABULARY)
    packed = Examples(store, Windows(64), made, EncoderDecoderCollator(), VOCABULARY, 0, 64)
    batch, views = packed.batch(0, np.arange(40)), packed.views(0, np.arange(40))
    assert views.marks.span_BL.sum(axis=1).tolist() == batch["target_length_B"].tolist() == [size] * 40
    shown_BL, text_BL = batch["ids_BL"][:, :63], views.text.ids_BL
    for row in range(40):
        first = views.targets.place_BL[row, 0]
        assert batch["label_BT"][row].tolist() == text_BL[row, first : first + size].tolist()
        assert first == 0 or size == 1
    hidden = views.marks.span_BL > 0
    assert (shown_BL[~hidden] == text_BL[~hidden]).all()
    assert abs((shown_BL[hidden] == MASK).mean() - 0.8) < (0.25 if size == 1 else 0.03)


def test_fixed_counts_leave_no_padding(store: FakeStore) -> None:
    made = examples(store, ("random_spans", "unique", "unique"))
    counts = made.batch(0, np.arange(40))["counts"]
    assert counts["padding"] == 0
    assert counts["input_tokens"] == 40 * 64 == made.lengths(0)[:40].sum()
    assert counts["raw_tokens"] == 40 * made.raw
    rates = measure(made, VOCABULARY)
    assert rates["mean_span_length"] == pytest.approx(made.corruption.masking.counts(made.raw).noise / 3, rel=0.01)
    assert abs(rates["corruption_rate"] - 0.15) < 0.01


def test_windows_lose_no_text_and_may_stay_in_documents(store: FakeStore) -> None:
    made = examples(store, ("random_spans", "unique", "unique"))
    read = np.concatenate([made.views(0, [row]).text.ids_BL[0] for row in range(made.size(0))])
    assert len(store.ids) - 1 <= len(read) <= len(store.ids)
    assert np.array_equal(read, store.ids[: len(read)])
    inner = examples(store, ("prefix", "drop", "drop"), cross=False)
    edges = store.sentence_start[store.document_start]
    windows = inner.index(0).segments(np.arange(inner.size(0)))
    document = np.searchsorted(edges, windows.start_B, side="right")
    assert (windows.start_B + windows.length_B <= edges[document]).all()
    assert (windows.length_B >= 2).all()
    assert inner.raw == 63


def test_sentences_of_windows_are_numbered_from_their_first() -> None:
    made = examples(store_of([[30, 20, 90], [40, 41, 42]]), ("sentence_permutation", "permuted", "full"))
    text = made.views(0, [0, 1, 2, 4]).text
    runs = [np.unique(row, return_counts=True) for row in text.sentence_BL]
    assert [(n.tolist(), c.tolist()) for n, c in runs] == [
        ([0, 1, 2], [30, 20, 13]),
        ([0], [63]),
        ([0, 1, 2], [14, 40, 9]),
        ([-1, 0], [52, 11]),
    ]


BAD: dict[str, Any] = {
    "hides=page": lambda: UniqueSentinel("page"),
    "symbol=dot": lambda: SharedSentinel(symbol="dot"),
    "random=2": lambda: SharedSentinel(random=2),
    "mask=0.5, random=0.1": lambda: MaskTokens(0.5, 0.1),
    r"input\.length=2": lambda: Windows(2),
    "the model is an encoder": lambda: EncoderCollator().check(corruption("iid", "unique", "unique")),
    "predicts in place": lambda: EncoderDecoderCollator().check(Corruption(Iid(0.15), Full())),
}


@pytest.mark.parametrize("said", BAD)
def test_bad_settings_are_refused(said: str) -> None:
    with pytest.raises(UserError, match=said):
        BAD[said]()
