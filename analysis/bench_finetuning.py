"""Fine-tuning speed beside the `transformers` Trainer: BERT-mini on rows of SST-2's lengths.

Both fine-tune the same model on the same token ids, batch 32, one epoch. Ours is the product's own path: rows bucketed
by length, the learner, Lightning. Its peer is the Trainer with `DataCollatorWithPadding`, which pads each batch to its
longest row.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from bench_training import WARM, profile, trained
from turns import Measure, Row, Side, main, take_turns

BATCH, WORDS, COUNT = 32, 8192, 2048
MEDIAN, SPREAD, LONGEST = 8.0, 0.88, 58  # of SST-2's training texts in BERT's word pieces, as measured


def texts(count: int) -> list[Any]:
    """Rows of ids without special tokens."""
    random = np.random.default_rng(0)
    length_N = np.clip(random.lognormal(np.log(MEDIAN), SPREAD, count).round().astype(int), 1, LONGEST - 2)
    return [random.integers(5, WORDS, length) for length in length_N]


def ours() -> Measure:
    """Our rows a second, the first steps left out."""
    import pytorch_lightning as pl

    from paribus.core.config import compose
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.bert import Bert
    from paribus.tasks.rows import frame
    from paribus.tasks.types.classification import Classification
    from paribus.training.description import Run
    from paribus.training.finetuner import finetuner
    from paribus.training.steps import StepData
    from paribus.training.trainer import trainer

    vocabulary = Vocabulary(size=WORDS, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
    run = Run.of(compose(["scale=null", f"finetune.batch_size={BATCH}", "finetune.epochs=1"]))
    encoded, here = frame([texts(COUNT)], np.arange(COUNT) % 2, vocabulary), profile(None)
    encoder = Bert(4, 256, 4, 1024).build(vocabulary, 0)
    ends: list[float] = []

    class Clock(pl.Callback):
        def on_train_batch_end(self, *unused: Any) -> None:
            ends.append(time.perf_counter())

    def measure() -> float:
        ends.clear()
        learner, steps = finetuner(run, encoder, encoded, Classification(("a", "b")), 0)
        trainer(here, steps.total, [Clock()]).fit(learner, StepData(steps, 0, 0))
        return BATCH * (len(ends) - WARM) / (ends[-1] - ends[WARM - 1])

    return measure


def peer() -> Measure:
    """The Trainer's rows a second."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        DataCollatorWithPadding,
        PreTrainedTokenizerFast,
    )

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel({"[PAD]": 0})), pad_token="[PAD]")
    framed = [[2, *row.tolist(), 3] for row in texts(COUNT)]
    data = [{"input_ids": ids, "labels": at % 2} for at, ids in enumerate(framed)]
    shape = BertConfig(
        vocab_size=WORDS, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024
    )
    model = BertForSequenceClassification(shape)
    return trained(model, data, DataCollatorWithPadding(tokenizer), True, BATCH, BATCH, np.mean)


def rows(turns: int = 3) -> list[Row]:
    """Ours beside the Trainer, both in bf16 if this machine is faster so."""
    speed = take_turns({name: Side("bench_finetuning", name) for name in ("ours", "peer")}, turns)
    note = f"{speed['ours']:,.0f} rows/s"
    return [Row("fine-tuning at SST-2's lengths: ours / Trainer", speed["ours"] / speed["peer"], "x", 3.0, note=note)]


if __name__ == "__main__":
    sys.exit(main(rows, __doc__, turns=3))
