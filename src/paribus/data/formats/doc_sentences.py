"""DOC-SENTENCES: whole sentences up to the budget, within one document.   RoBERTa, section 4.2"""

from __future__ import annotations

from dataclasses import dataclass

from paribus.data.formats.sentences import SentenceFormat


@dataclass(frozen=True)
class DocSentences(SentenceFormat):
    """fairseq's `complete_doc`; rows are shorter than those of full sentences, so batch by token count."""

    cross = False
