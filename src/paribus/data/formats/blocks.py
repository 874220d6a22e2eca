"""A stream of lines cut into blocks, as in fairseq's TokenBlockDataset.   RoBERTa (arXiv 1907.11692), section 4.2

A line is a sentence with its separator; a blank line, a single separator, is between documents.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def line_blocks(size_L: NDArray[np.int64], budget: int, blank_L: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Line ranges [N, 2] of the blocks of a stream of lines of these sizes, in tokens.

    Blocks are whole lines while they fit (fairseq's `complete`); a longer line is a block that exceeds the budget. If
    `blank_L` marks the lines between documents (`complete_doc`), such a line ends the block and is dropped, and blocks
    of at most one token are dropped.
    """
    edge_L: NDArray[np.int64] = np.concatenate([[0], np.cumsum(size_L)])
    after_L = np.searchsorted(edge_L, edge_L[:-1] + budget, side="right") - 1
    after_L = np.maximum(after_L, np.arange(1, len(edge_L)))
    if blank_L is not None:
        after_L = np.minimum(after_L, _next_blank(blank_L))
    first_N = walk(after_L)
    range_N2: NDArray[np.int64] = np.stack([first_N, after_L[first_N]], axis=1)
    if blank_L is None:
        return range_N2
    tokens_N = edge_L[range_N2[:, 1]] - edge_L[first_N]
    return range_N2[~blank_L[first_N] & (tokens_N > 1)]


def _next_blank(blank_L: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The line at which a block from each line must end: the next blank line; after itself for a blank line."""
    place_L = np.where(blank_L, np.arange(len(blank_L)), len(blank_L))
    nearest_L = np.minimum.accumulate(place_L[::-1])[::-1]
    return nearest_L + blank_L


def walk(after_L: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first lines of the blocks: from line 0, each block starts where the one before ended."""
    after, first, line = after_L.tolist(), [], 0
    while line < len(after):
        first.append(line)
        line = after[line]
    return np.asarray(first, np.int64)
