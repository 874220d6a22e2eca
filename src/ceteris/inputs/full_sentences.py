"""FULL-SENTENCES: whole sentences up to the budget, over the ends of documents.   RoBERTa, section 4.2"""

from __future__ import annotations

from dataclasses import dataclass

from ceteris.inputs.sentences import SentenceFormat


@dataclass(frozen=True)
class FullSentences(SentenceFormat):
    """fairseq's `complete`."""

    cross = True
