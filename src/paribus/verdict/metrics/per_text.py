"""What a left-to-right language model pays for the raw text, whatever its tokens are: bits per character, and
perplexity per word between white space.

Arms may differ in tokenizer, input and objective. What they are asked must not differ: the text, and the rows of the
evaluation.
"""

from __future__ import annotations

from paribus.verdict.metrics import METRICS, Metric

for _name, _decimals in (("bits_per_character", 3), ("perplexity_per_word", 1)):
    METRICS.add(
        Metric(
            _name,
            lower_is_better=True,
            decimals=_decimals,
            fixed=("corpus", "evaluation", "mixture"),
            reason="they are not asked about the same text",
            whole=True,
        )
    )
