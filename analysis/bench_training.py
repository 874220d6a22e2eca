"""Training speed beside the `transformers` Trainer: BERT-mini, length 128, batch 32, one run, ratios.

    python analysis/bench_training.py [steps=30] [turns=3] [threads=2]

Both train the same model without dropout on the same token ids with 15 % predicted. Ours is the product's own path:
step plan, noise, learner, Lightning. Its peer is the Trainer with `DataCollatorForLanguageModeling`. They take turns,
so that a noisy machine treats them alike; the figures are medians over turns.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from paribus.corruption.collators.encoder import EncoderCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.views.replace import Replace
from paribus.data.formats.sentences import FullSentences
from paribus.data.order import StepPlan
from paribus.data.schedule import Dynamic
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models.bert import Bert
from paribus.models.network import initialize
from paribus.objectives.mlm import MaskedLM
from paribus.optim.adamw import AdamW
from paribus.optim.schedule import Schedule
from paribus.training.callbacks import Meter
from paribus.training.learner import Pretraining
from paribus.training.steps import PretrainingSteps, StepData
from paribus.training.trainer import Profile, matrix_peak, trainer

LENGTH, BATCH, WARM = 128, 32, 5
MINI = Bert(4, 256, 4, 1024, dropout=0.0, attention_dropout=0.0)


@dataclass(frozen=True)
class Sentences:
    """A token store in memory whose blocks are all full: sentences of LENGTH - 2 tokens."""

    ids: Any
    word_start: Any
    sentence_start: Any
    document_start: Any
    annotated: None = None


def store(size: int, rows: int) -> Sentences:
    tokens = rows * (LENGTH - 2)
    ids = np.random.default_rng(0).integers(5, size, tokens).astype(np.uint16)
    starts = np.arange(0, tokens + 1, LENGTH - 2, dtype=np.int64)
    return Sentences(ids, np.ones(tokens, np.uint8), starts, np.array([0, rows], np.int64))


def ours(size: int, precision: str, threads: int, steps: int) -> float:
    """Tokens a second, median over steps."""
    vocabulary = Vocabulary(size=size, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
    corruption = Corruption(Bernoulli(0.15, schedule=Dynamic()), Replace())
    rows = store(size, BATCH * (steps + WARM))
    examples = Examples(rows, FullSentences(LENGTH), corruption, EncoderCollator(), vocabulary, 0, LENGTH)
    encoder = MINI.build(vocabulary, 0)
    return staged(
        examples, encoder, MaskedLM(Replace()).compose(encoder, encoder.vocabulary), precision, threads, steps
    )


def staged(examples: Examples, encoder: Any, objective: Any, precision: str, threads: int, steps: int) -> float:
    """Input tokens a second of the product's own path on the processor, median over steps."""
    initialize(objective, 0, 0.02)
    learner = Pretraining(
        encoder, objective, AdamW(1e-4), Schedule("linear"), total_steps=steps + WARM, total_tokens=0, clip=1.0, seed=0
    )
    meter = Meter()
    data = PretrainingSteps(StepPlan(examples, 0, BATCH), steps + WARM, None)
    start = time.perf_counter()
    trainer(Profile("cpu", precision, threads, 0, None, False), steps + WARM, [meter]).fit(
        learner, StepData(data, 0, 0)
    )
    share = meter.step_seconds / (time.perf_counter() - start)
    print(f"    ours {precision}: {meter.tokens_per_second():8.0f} tokens/s, {share:.0%} of fit in steps", flush=True)
    return meter.tokens_per_second()


def peer(size: int, bf16: bool, steps: int) -> float:
    """The Trainer's tokens a second, median over steps."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import BertConfig, BertForMaskedLM, DataCollatorForLanguageModeling, PreTrainedTokenizerFast

    words = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4} | {f"w{n}": n for n in range(5, size)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(words, unk_token="[UNK]")),
        pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
    )  # fmt: skip
    ids = np.random.default_rng(0).integers(5, size, (BATCH * (steps + WARM), LENGTH)).tolist()
    shape = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
    model = BertForMaskedLM(
        BertConfig(vocab_size=size, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **shape)
    )
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    rows = [{"input_ids": row, "attention_mask": [1] * LENGTH} for row in ids]
    return trained(model, rows, collator, bf16, steps)


def trained(model: Any, rows: list[Any], collator: Any, bf16: bool, steps: int) -> float:
    """Input tokens a second of the Trainer on the processor, median over steps."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *unused: Any, **more: Any) -> None:
            ends.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=BATCH, max_steps=steps + WARM, bf16=bf16, use_cpu=True, report_to=[],
            save_strategy="no", logging_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        Trainer(model, arguments, train_dataset=rows, data_collator=collator, callbacks=[Clock()]).train()
    gaps = np.diff(ends[WARM - 1 :])
    rate = BATCH * LENGTH / float(np.median(gaps))
    print(f"    Trainer {'bf16' if bf16 else 'default'}: {rate:8.0f} tokens/s", flush=True)
    return rate


def main() -> None:
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    steps, rounds, threads = (
        int(given.get(key, usual)) for key, usual in (("steps", 30), ("turns", 3), ("threads", 2))
    )
    torch.set_num_threads(threads)
    profile = Profile("cpu", "bf16-mixed", threads, 0, None, False)
    print(f"BERT-mini, length {LENGTH}, batch {BATCH}, {threads} threads, no dropout, {rounds} turns of {steps} steps")
    for size in (8192, 30522):
        print(f"  vocabulary {size}")
        turns = [
            (ours(size, "bf16-mixed", threads, steps), peer(size, True, steps), peer(size, False, steps))
            for _ in range(rounds)
        ]
        mine, bf16, default = (statistics.median(column) for column in zip(*turns, strict=True))
        flops = 3 * (MINI.forward_flops(1, LENGTH) + 0.15 * 2 * (256**2 + 256 * size))
        print(f"  ours / Trainer bf16 {mine / bf16:.2f}, ours / Trainer default {mine / default:.2f}, "
              f"{flops * mine / matrix_peak(profile):.0%} of the bf16 matrix peak")  # fmt: skip


if __name__ == "__main__":
    main()
