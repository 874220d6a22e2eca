"""Speed of noise, masking and collation on one core, beside the collators of `transformers` in the same run.

Million tokens a second (padding counted, as in every collator), best and median of many repeats.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from turns import Row, main

from paribus.core.noise import Noise
from paribus.corruption.collators.encoder import EncoderCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples
from paribus.corruption.masking.annotated_span import AnnotatedSpan
from paribus.corruption.masking.geometric_span import GeometricSpan
from paribus.corruption.masking.ngram import NGram
from paribus.corruption.masking.pattern import NoisePattern
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.masking.whole_word import WholeWord
from paribus.corruption.views.replace import Replace
from paribus.data.annotators import Function
from paribus.data.formats.full_sentences import FullSentences
from paribus.data.sequences import Text
from paribus.data.tokens.store import MemoryStore
from paribus.data.tokens.vocabulary import Vocabulary

LENGTH, SIZE, BATCHES = 128, 30522, (32, 256, 1024)
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ANNOTATED = "annotated spans"
SINGLE_TOKENS, WHOLE_WORDS = "transformers' collator", "transformers' whole-word collator"
VOCABULARY = Vocabulary(SIZE, 0, 1, 2, 3, 4, (0, 1, 2, 3, 4))


def made_up(sentences: int = 150_000) -> MemoryStore:
    """Random tokens in sentences of about 22, documents of about 40."""
    random = np.random.default_rng(0)
    starts = np.concatenate([[0], np.cumsum(random.geometric(1 / 22, sentences))])
    return MemoryStore(
        random.integers(5, SIZE, starts[-1]).astype(np.uint16),
        (random.random(starts[-1]) < 0.75).astype(np.uint8),
        starts,
        np.append(np.arange(0, sentences, 40), sentences),
    )


def annotated(store: MemoryStore) -> MemoryStore:
    """The store with a span of one to three words at every tenth word or so."""
    random = np.random.default_rng(1)
    word_T, words = np.cumsum(store.word_start), int(store.word_start.sum()) + 1
    first_W = random.random(words) < 0.1
    inside_W = first_W | (np.roll(first_W, 1) & (random.random(words) < 0.5))
    code_T = np.where(first_W[word_T], 2 - store.word_start.astype(np.int64), np.where(inside_W[word_T], 2, 0))
    return replace(store, annotated=code_T.astype(np.uint8))


def rate(tokens: int, work: Callable[[int], Any], seconds: float = 1.0) -> tuple[float, float]:
    """(median, best) million tokens a second over repeats that fill the time."""
    work(0)
    taken: list[float] = []
    while sum(taken) < seconds or len(taken) < 5:
        start = time.perf_counter()
        work(len(taken))
        taken.append(time.perf_counter() - start)
    return tokens / statistics.median(taken) / 1e6, tokens / min(taken) / 1e6


def collator(**settings: Any) -> Any:
    """DataCollatorForLanguageModeling with its fast tokenizer over the same vocabulary."""
    from tokenizers import Tokenizer, models
    from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

    words = {name: at for at, name in enumerate([*SPECIALS, *(f"w{n}" for n in range(SIZE - len(SPECIALS)))])}
    names = {f"{name[1:-1].lower()}_token": name for name in SPECIALS}
    backend = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    return DataCollatorForLanguageModeling(PreTrainedTokenizerFast(tokenizer_object=backend, **names), **settings)


def maskings() -> dict[str, NoisePattern]:
    """What is measured, by name."""
    return {
        "single tokens": Bernoulli(0.15),
        "whole words": WholeWord(0.15),
        "whole words, fairseq's budget": WholeWord(0.15, "words"),
        "geometric spans": GeometricSpan(0.15),
        "geometric spans, 40 %": GeometricSpan(0.4),
        "geometric spans, 80 %": GeometricSpan(0.8),
        "subword spans": GeometricSpan(0.15, unit="token"),
        "n-grams": NGram(0.15),
        ANNOTATED: AnnotatedSpan(0.15, Function("made:up")),
        "single tokens, predict half": Bernoulli(0.4, predict=0.2),
    }


def offsets(text: Text) -> Any:
    """[B, L, 2]: characters of the tokens, one each, with a gap before each word."""
    place_BL = np.cumsum(1 + text.start_BL, axis=1)
    return np.where(text.free_BL[..., None], np.stack([place_BL, place_BL + 1], axis=-1), 0)


def peers(text: Text, seconds: float) -> dict[str, tuple[float, float]]:
    """The collators of `transformers`; they get the rows as ids, already gathered and framed, and for whole words
    also padded, with offsets and special tokens."""
    whole_words = collator(whole_word_mask=True, mask_replace_prob=1.0, random_replace_prob=0.0)
    lists = [{"input_ids": ids[:length].tolist()} for ids, length in zip(text.ids_BL, text.length_B, strict=True)]
    names = ("input_ids", "special_tokens_mask", "offset_mapping")
    columns = (text.ids_BL, (~text.free_BL).astype(np.int64), offsets(text))
    full = [dict(zip(names, row, strict=True)) for row in zip(*(column.tolist() for column in columns), strict=True)]
    collators = {SINGLE_TOKENS: (collator(), lists), WHOLE_WORDS: (whole_words, full)}
    return {
        name: rate(text.ids_BL.size, lambda _, collate=collate, rows=rows: collate(rows), seconds)  # type: ignore[misc]
        for name, (collate, rows) in collators.items()
    }


def measured(examples: Examples, rows: Any, seconds: float) -> dict[str, tuple[float, float]]:
    """Rates of each part on the same rows."""
    assert isinstance(examples.store, MemoryStore)
    text, spans = examples.views(0, rows).text, annotated(examples.store)
    marked = replace(examples, store=spans).views(0, rows).text
    tokens, width = text.ids_BL.size, text.ids_BL.shape[1]

    def noise(epoch: int) -> Noise:
        return Noise.of(0, (0, epoch), rows)

    found = {"hash": rate(tokens, lambda epoch: noise(epoch).bits("masking", width), seconds)}
    for name, masking in maskings().items():
        store, read = (spans, marked) if name == ANNOTATED else (examples.store, text)
        made = replace(examples, corruption=Corruption(masking, Replace()), store=store)
        found[f"{name}: mask, 80/10/10"] = rate(
            tokens,
            lambda epoch, made=made, read=read: made.corruption(read, noise(epoch), VOCABULARY),  # type: ignore[misc]
            seconds,
        )
        whole = rate(tokens, lambda epoch, made=made: made.batch(epoch, rows), seconds)  # type: ignore[misc]
        found[f"{name}: whole collation"] = whole
    return found | peers(text, seconds)


RATIOS = {
    "single tokens": SINGLE_TOKENS,
    "whole words": WHOLE_WORDS,
    "geometric spans": WHOLE_WORDS,
}  # beside which peer


def ratios(row: dict[str, tuple[float, float]]) -> dict[str, float]:
    """Whole collation beside the peer of the same kind; spans have none and stand beside its whole words."""
    return {kind: row[f"{kind}: whole collation"][0] / row[peer][0] for kind, peer in RATIOS.items()}


TARGETS = {"single tokens": 100.0, "geometric spans": 12.0, "whole words": 12.0}  # million tokens a second
BATCH = 256  # rows of the batches that the targets are about


def rows(seconds: float = 0.5) -> list[Row]:
    """The whole table on the screen, and the rows that have a target."""
    import torch

    torch.set_num_threads(1)
    store = made_up()
    examples = Examples(
        store, FullSentences(LENGTH), Corruption(Bernoulli(0.15), Replace()), EncoderCollator(), VOCABULARY, 0, LENGTH
    )
    start = time.perf_counter()
    size = examples.size(0)
    index = store.tokens / (time.perf_counter() - start) / 1e6
    order = np.random.default_rng(1).permutation(size)
    table = {batch: measured(examples, order[:batch], seconds) for batch in BATCHES}
    print_table(table, "million tokens a second: median (best)")
    found = [
        Row(
            f"collation, one core, {BATCH} x {LENGTH}: {kind}",
            table[BATCH][f"{kind}: whole collation"][0],
            "Mtok/s",
            least,
        )
        for kind, least in TARGETS.items()
    ]
    found += [Row(f"collation: {kind} / transformers", ratio, "x") for kind, ratio in ratios(table[BATCH]).items()]
    return [*found, Row("index of full_sentences", index, "Mtok/s")]


def print_table(table: dict[int, dict[str, tuple[float, float]]], head: str) -> None:
    """Rates by part and batch."""
    print(f"{head:<48}" + "".join(f"{f'{b} x {LENGTH}':>16}" for b in table))
    for name in next(iter(table.values())):
        print(f"{name:<48}" + "".join("{:>8.1f} ({:5.1f})".format(*found[name]) for found in table.values()))


if __name__ == "__main__":
    sys.exit(main(rows, __doc__, seconds=0.5))
