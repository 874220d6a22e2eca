"""The share of a task's evaluation examples that also occur in the pre-training text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paribus.core.checksums import digest, read_sealed
from paribus.core.console import say
from paribus.core.files import write_sealed
from paribus.data.sequences import Array
from paribus.tasks.examples import AnyExample

if TYPE_CHECKING:
    from paribus.data.corpus.sentences import Splitter
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.tasks.task import Task

SEMANTICS = 1
WINDOW = 8  # tokens
SHARE = 0.7  # of a text's windows
CHUNK = 1 << 20  # tokens of the pre-training text that are compared at once
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # of the polynomial that names a window
BITS = 22  # the highest of a name, which tell nearly all windows apart from those of the task
SHIFT = np.uint64(64 - BITS)


def measure_overlap(
    task: Task, cache: Path, read_K: Sequence[Array], tokenizer: Tokenizer, splitter: Splitter, key: object
) -> float:
    """The share of a task's evaluation examples that also occur in the pre-training text (see `find_overlap`).

    The value is kept in `cache/overlap/`.

    Args:
        read_K: token ids of the texts of all pre-trainings.
        tokenizer, splitter: those of these texts.
        key: plain data that names these texts.
    """
    path = cache / "overlap" / f"{digest([SEMANTICS, key, task.data_hash(cache)], 24)}.json"
    if (kept := read_sealed(path, path.stem)) is None:
        rows = [row for split, rows in task.examples(cache).items() if split != "train" for row in rows]
        occurs_N = find_overlap(rows, read_K, tokenizer, splitter)
        write_sealed(path, kept := {"overlap": float(occurs_N.mean())}, path.stem)
    value: float = kept["overlap"]
    say(f"task {task.name}: {value:.1%} of its evaluation texts also occur in the pre-training text")
    return value


def find_overlap(
    rows: Sequence[AnyExample], read_K: Sequence[Array], tokenizer: Tokenizer, splitter: Splitter
) -> Array:
    """Bool [N]: whether the longest text of an example occurs in one of the texts `read_K`, given as token ids.

    It does if 70 % of its windows of eight tokens occur there (as in PaLM, arXiv 2204.02311, section 8, with words). A
    shorter text is one window.
    """
    ids_N = _tokenize([max(row.texts, key=len) for row in rows], tokenizer, splitter)
    size_N = np.array([min(WINDOW, len(ids_T)) for ids_T in ids_N])
    occurs_N = np.zeros(len(rows), np.bool_)
    for size in np.unique(size_N[size_N > 0]).tolist():
        place_M = np.flatnonzero(size_N == size)
        name_M = [_name_windows(ids_N[at], size) for at in place_M]
        wanted, which_W = np.unique(np.concatenate(name_M), return_inverse=True)
        known_W = _find_known(wanted, read_K, size)[which_W]
        count_M = np.array([len(name_W) for name_W in name_M])
        hits_M = np.add.reduceat(known_W, np.cumsum(count_M) - count_M, dtype=np.int64)
        occurs_N[place_M] = hits_M / count_M >= SHARE
    return occurs_N


def _tokenize(texts: Sequence[str], tokenizer: Tokenizer, splitter: Splitter) -> list[Array]:
    """The tokens of each text, as a token store has them."""
    sentences_N = [[sentence for line in text.split("\n") for sentence in splitter(line)] for text in texts]
    batch = tokenizer.flat(list(chain.from_iterable(sentences_N)))
    end_S = np.cumsum([0, *batch.length_S])
    return np.split(batch.ids_T, end_S[np.cumsum([len(sentences) for sentences in sentences_N])[:-1]])


def _find_known(wanted: Array, read_K: Sequence[Array], size: int) -> Array:
    """Bool: which of the names `wanted` windows of the texts have."""
    near = np.zeros(1 << BITS, np.bool_)
    near[wanted >> SHIFT] = True
    known = np.zeros(len(wanted), np.bool_)
    for ids_T in read_K:
        for start in range(0, len(ids_T), CHUNK):
            name_W = _name_windows(ids_T[start : start + CHUNK + size - 1], size)
            name_W = name_W[near[name_W >> SHIFT]]
            at_W = np.searchsorted(wanted, name_W).clip(max=len(wanted) - 1)
            known[at_W[wanted[at_W] == name_W]] = True
    return known


def _name_windows(ids_T: Array, size: int) -> Array:
    """uint64 [W]: a number for each window of `size` tokens, the same for the same tokens."""
    count = max(0, len(ids_T) - size + 1)
    name_W = np.zeros(count, np.uint64)
    for at in range(size):
        name_W = (name_W + ids_T[at : at + count]) * FACTOR
    return name_W
