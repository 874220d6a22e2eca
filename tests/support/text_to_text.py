"""The overrides that make a run of the small corpus text-to-text."""

from __future__ import annotations

T5 = ["family=t5", "input=windows", "masking=random_spans", "objective=denoising", "tokenizer.vocab_size=100"]
