"""Fine-tuning speed beside the `transformers` Trainer: BERT-mini on rows of SST-2's lengths, one run, ratios.

    python analysis/bench_finetuning.py [rows=2048] [turns=3] [threads=2]

Both fine-tune the same model on the same token ids, batch 32, one epoch. Ours is the product's own path: rows bucketed
by length, the learner, Lightning. Its peer is the Trainer with `DataCollatorWithPadding`, which pads each batch to its
longest row. They take turns, so that a noisy machine treats them alike; the figures are medians over turns.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from typing import Any

import numpy as np
import torch

from paribus.core.config import compose
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models.bert import Bert
from paribus.tasks.rows import frame
from paribus.tasks.types.classification import Classification
from paribus.training.description import Run
from paribus.training.finetune import finetuner
from paribus.training.steps import StepData
from paribus.training.trainer import Profile, trainer

BATCH, WARM, WORDS = 32, 5, 8192
MINI = Bert(4, 256, 4, 1024)
VOCABULARY = Vocabulary(size=WORDS, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
MEDIAN, SPREAD, LONGEST = 8.0, 0.88, 58  # of SST-2's training texts in BERT's word pieces, as measured


def texts(count: int) -> list[Any]:
    """Rows of ids without special tokens."""
    random = np.random.default_rng(0)
    length_N = np.clip(random.lognormal(np.log(MEDIAN), SPREAD, count).round().astype(int), 1, LONGEST - 2)
    return [random.integers(5, WORDS, length) for length in length_N]


class _Clock:
    """When each step ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def rate(self, rows: int) -> float:
        """Rows a second without the first steps."""
        steps = len(self.ends) - WARM
        return rows * steps / (steps + WARM) / (self.ends[-1] - self.ends[WARM - 1])


def ours(rows: list[Any], label_N: Any, precision: str, threads: int) -> float:
    """Rows a second."""
    import pytorch_lightning as pl

    clock = _Clock()

    class Ends(pl.Callback):
        def on_train_batch_end(self, *unused: Any) -> None:
            clock.ends.append(time.perf_counter())

    run = Run.of(compose(["scale=null", f"finetune.batch_size={BATCH}", "finetune.epochs=1"]))
    encoded = frame([rows], label_N, VOCABULARY)
    learner, steps = finetuner(run, MINI.build(VOCABULARY, 0), encoded, Classification(("a", "b")), 0)
    profile = Profile("cpu", precision, threads, 0, None, False)
    trainer(profile, steps.total, [Ends()]).fit(learner, StepData(steps, 0, 0))
    return clock.rate(len(rows))


def peer(rows: list[Any], label_N: Any, bf16: bool) -> float:
    """The Trainer's rows a second."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        DataCollatorWithPadding,
        PreTrainedTokenizerFast,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    clock = _Clock()

    class Ends(TrainerCallback):
        def on_step_end(self, *unused: Any, **more: Any) -> None:
            clock.ends.append(time.perf_counter())

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel({"[PAD]": 0})), pad_token="[PAD]")
    framed = [[VOCABULARY.cls, *row.tolist(), VOCABULARY.sep] for row in rows]
    data = [{"input_ids": ids, "labels": int(label)} for ids, label in zip(framed, label_N, strict=True)]
    shape = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
    model = BertForSequenceClassification(BertConfig(vocab_size=WORDS, **shape))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=BATCH, num_train_epochs=1, bf16=bf16, use_cpu=True, report_to=[],
            save_strategy="no", logging_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        collator = DataCollatorWithPadding(tokenizer)
        Trainer(model, arguments, train_dataset=data, data_collator=collator, callbacks=[Ends()]).train()
    return clock.rate(len(rows))


def main() -> None:
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    count, turns, threads = (
        int(given.get(key, usual)) for key, usual in (("rows", 2048), ("turns", 3), ("threads", 2))
    )
    torch.set_num_threads(threads)
    rows, label_N = texts(count), np.arange(count) % 2
    print(
        f"BERT-mini, {count} rows of {np.mean([len(row) + 2 for row in rows]):.0f} tokens, batch {BATCH}, {turns} turns"
    )
    found = [
        (ours(rows, label_N, "bf16-mixed", threads), peer(rows, label_N, True),
         ours(rows, label_N, "32-true", threads), peer(rows, label_N, False))
        for _ in range(turns)
    ]  # fmt: skip
    half, half_peer, full, full_peer = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"  bf16: ours {half:.0f} rows/s, Trainer {half_peer:.0f}, ratio {half / half_peer:.2f}")
    print(f"  fp32: ours {full:.0f} rows/s, Trainer {full_peer:.0f}, ratio {full / full_peer:.2f}")


if __name__ == "__main__":
    main()
