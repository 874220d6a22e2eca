"""Annotated spans of a split as an array beside its token store: one byte per token."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paribus.core.console import bar
from paribus.core.errors import UserError
from paribus.core.files import whole_folder, write_json
from paribus.data.annotators import Annotator, Span
from paribus.data.corpus.document import Document
from paribus.data.corpus.sentences import Splitter
from paribus.data.tokens.store import SPANS, parts
from paribus.data.tokens.tokenizer import EncodedSentences, Tokenizer

SEMANTICS = 1  # raised when the same spans of text give other tokens
META = "meta.json"


def build(
    documents: Iterable[Document],
    tokenizer: Tokenizer,
    splitter: Splitter,
    annotator: Annotator,
    folder: Path,
    characters: int = 0,
) -> None:
    """Write the spans of the documents, all of one split, in the order of their store; completely or not at all.

    `characters` is the size for the progress bar. Raises UserError if the folder cannot be written or the annotator
    gives an invalid span.
    """
    spans = 0
    with (
        whole_folder(folder) as work,
        (work / SPANS).open("wb") as file,
        bar("annotating", characters, "char", scale=True) as progress,
    ):
        for part in parts(documents, splitter, tokenizer.vocabulary.spaces):
            batch, offset_T2 = tokenizer.locate(part.sentences)
            code_T = codes(part.sentences, list(annotator.spans(part.sentences)), batch, offset_T2)
            file.write(code_T.tobytes())
            spans += int(np.count_nonzero(code_T == 1))
            progress.update(part.characters)
        write_json(work / META, {"spans": spans})


def check(folder: Path) -> None:
    """Raise UserError if the annotator found nothing."""
    if not json.loads((folder / META).read_text(encoding="utf-8"))["spans"]:
        raise UserError("masking.annotator finds no span in the training text", "choose another masking/annotator")


def codes(
    sentences: Sequence[str],
    spans_S: Sequence[Sequence[Span]],
    batch: EncodedSentences,
    offset_T2: NDArray[np.int64],
) -> NDArray[np.uint8]:
    """uint8 [T]: 1 at the start of a span, 2 inside, else 0.

    A span is the whole words with a visible character in it. Of spans that share a word the first one counts, and of
    those with the same start the longest.
    """
    code_T = np.zeros(len(batch.ids_T), np.uint8)
    edge_S = np.append(0, np.cumsum(batch.length_S))
    for sentence, spans, first, last in zip(sentences, spans_S, edge_S[:-1], edge_S[1:], strict=True):
        if not len(spans) or first == last:
            continue
        word_T = np.cumsum(batch.word_start_T[first:last], dtype=np.int64)
        # the first visible character of each token; its first character if it is white space
        visible = [
            next((at for at in range(begin, end) if not sentence[at].isspace()), begin)
            for begin, end in offset_T2[first:last].tolist()
        ]
        place_T, sentence_code_T = np.array(visible), code_T[first:last]
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            if not 0 <= begin < end <= len(sentence):
                raise UserError(
                    f"masking.annotator gives the span ({begin}, {end}) of {len(sentence)} characters",
                    "give (start, end), the end excluded, within the sentence",
                )
            touched_T = np.isin(word_T, word_T[(begin <= place_T) & (place_T < end)])
            if touched_T.any() and not sentence_code_T[touched_T].any():
                sentence_code_T[touched_T] = 2
                sentence_code_T[np.argmax(touched_T)] = 1
    return code_T
