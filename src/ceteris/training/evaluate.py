"""The common evaluation: fixed masks on the validation split, and what the unigram model makes of the same masks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ceteris.examples import Examples
from ceteris.models.encoder import Encoder
from ceteris.training.steps import as_batch

ROWS = 64  # a forward pass


class Evaluation:
    """The masked examples that every arm is measured on, packed once."""

    def __init__(self, examples: Examples, most: int) -> None:
        size = examples.size(0)
        rows = np.unique(np.linspace(0, size - 1, min(size, most)).round().astype(np.int64))
        self.examples = examples
        self.arrays = list(self._packed(rows[np.argsort(examples.lengths(0)[rows], kind="stable")]))
        self.targets = np.concatenate([arrays["target_P"] for arrays in self.arrays])

    def _packed(self, rows: Any) -> Iterator[dict[str, Any]]:
        for at in range(0, len(rows), ROWS):
            yield self.examples.batch(0, rows[at : at + ROWS])

    def measure(self, encoder: Encoder, head: Any) -> dict[str, float]:
        """{"mlm_loss": mean cross-entropy in nats, "mlm_perplexity", "mlm_accuracy": share of exact predictions}.

        In full precision whatever the training used, so that the profile does not move it.
        """
        loss, right, device = 0.0, 0, next(encoder.parameters()).device
        training = encoder.training
        encoder.eval()
        head.eval()
        with torch.inference_mode():
            for arrays in self.arrays:
                batch = {k: v.to(device) if torch.is_tensor(v) else v for k, v in as_batch(arrays).items()}
                logits_PV = head.logits(encoder(batch), batch).float()
                loss += float(torch.nn.functional.cross_entropy(logits_PV, batch["target_P"], reduction="sum"))
                right += int((logits_PV.argmax(-1) == batch["target_P"]).sum())
        encoder.train(training)
        head.train(training)
        mean = loss / len(self.targets)
        return {
            "mlm_loss": mean,
            "mlm_perplexity": math.exp(min(mean, 700.0)),
            "mlm_accuracy": right / len(self.targets),
        }

    def unigram(self, train_ids: Any, vocabulary_size: int) -> dict[str, float]:
        """The same metrics for the model that knows word frequencies alone: add-one counts of the training tokens."""
        counts_V = np.ones(vocabulary_size, np.float64)
        for at in range(0, len(train_ids), 1 << 22):
            counts_V += np.bincount(train_ids[at : at + (1 << 22)], minlength=vocabulary_size)
        loss = float(-np.log(counts_V / counts_V.sum())[self.targets].mean())
        return {
            "mlm_loss": loss,
            "mlm_perplexity": math.exp(loss),
            "mlm_accuracy": float((self.targets == counts_V.argmax()).mean()),
        }
