"""FULL-SENTENCES: whole sentences up to the budget, over the ends of documents.   RoBERTa, section 4.2"""

from __future__ import annotations

from dataclasses import dataclass

from paribus.data.formats.sentences import SentenceFormat


@dataclass(frozen=True)
class FullSentences(SentenceFormat):
    """fairseq's `complete`."""

    cross = True
