"""Pre-training speed beside the `transformers` Trainer, a bare loop, and the code of an earlier commit.

BERT-mini (4 x 256) reads 32 rows of 128 tokens a step on all cores, BERT-tiny (2 x 128, pre-LN) 16 rows of 64 on one,
as in the small tables; both without dropout on the same token ids with 15 % predicted. Ours is the product's own path:
step plan, noise, learner, Lightning. Its peer is the Trainer with `DataCollatorForLanguageModeling`.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from turns import HERE, Measure, Row, Side, main, take_turns

STEPS, WARM = 12, 3  # of a turn
SIZES = (8192, 30522)


@dataclass(frozen=True)
class Shape:
    """A model and what a step reads."""

    layers: int
    width: int
    length: int
    batch: int
    norm: str = "post"
    threads: int | None = None  # None: all cores
    rotary: bool = False

    def spec(self) -> Any:
        from paribus.models.bert import Bert
        from paribus.models.change import Rotary

        heads, inner = max(1, self.width // 64), 4 * self.width
        shape: dict[str, Any] = {"dropout": 0.0, "attention_dropout": 0.0, "norm": self.norm}
        if self.rotary:
            shape["changes"] = {"position": Rotary()}
        return Bert(self.layers, self.width, heads, inner, **shape)


SHAPES = {
    "mini": Shape(4, 256, 128, 32),
    "tiny": Shape(2, 128, 64, 16, "pre", threads=1),
    "tiny_rotary": Shape(2, 128, 64, 16, "pre", threads=1, rotary=True),
    "mini_rotary": Shape(4, 256, 128, 32, rotary=True),
    "least": Shape(1, 16, 16, 2, "pre", threads=1),
}


@dataclass(frozen=True)
class Sentences:
    """A token store in memory whose rows are all full: sentences of `length` - 2 tokens."""

    ids: Any
    word_start: Any
    sentence_start: Any
    document_start: Any
    annotated: None = None


def store(size: int, rows: int, length: int) -> Sentences:
    """`rows` sentences of random tokens."""
    tokens = rows * (length - 2)
    ids = np.random.default_rng(0).integers(5, size, tokens).astype(np.uint16)
    starts = np.arange(0, tokens + 1, length - 2, dtype=np.int64)
    return Sentences(ids, np.ones(tokens, np.uint8), starts, np.array([0, rows], np.int64))


def profile(threads: int | None) -> Any:
    """The profile that a run gets here, which also sets this process up as a run does."""
    from paribus.core.settings import Profile
    from paribus.training.profile import resolve

    return resolve(Profile(threads=threads, accelerator="cpu"))


def masked_lm() -> Any:
    """BERT's objective."""
    from paribus.corruption.views.replace import Replace
    from paribus.objectives.mlm import MaskedLM

    return MaskedLM(Replace())


def parts(shape: Shape, size: int, asked: Any = None) -> tuple[Any, Any, Any]:
    """(examples, network, objective); `asked`: another objective than the masked LM."""
    from paribus.corruption.examples import Examples
    from paribus.corruption.masking.single_tokens import Bernoulli
    from paribus.data.formats.full_sentences import FullSentences
    from paribus.data.tokens.vocabulary import Vocabulary

    asked = asked or masked_lm()
    vocabulary = Vocabulary(size=size, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
    rows = store(size, shape.batch * (STEPS + WARM), shape.length)
    corruption, inputs = asked.corruption(Bernoulli(0.15)), FullSentences(shape.length)
    examples = Examples(rows, inputs, corruption, asked.collator, vocabulary, 0, shape.length)
    network = shape.spec().build(vocabulary, 0)
    return examples, network, asked.build(network, vocabulary, 0)


def learner_of(network: Any, objective: Any, steps: int) -> Any:
    from paribus.optim.adamw import AdamW
    from paribus.optim.lr_schedule import Schedule
    from paribus.training.learner import Pretraining

    return Pretraining(
        network, objective, AdamW(1e-4), Schedule("linear"), total_steps=steps, total_tokens=0, clip=1.0, seed=0
    )


def lightning(examples: Any, network: Any, objective: Any, batch: int, threads: int | None) -> Measure:
    """Input tokens a second of the product's own path, median over the steps of a turn."""
    from paribus.data.order import StepPlan
    from paribus.training.callbacks import Meter
    from paribus.training.steps import PretrainingSteps, StepData
    from paribus.training.trainer import trainer

    here = profile(threads)
    learner = learner_of(network, objective, STEPS + WARM)

    def measure() -> float:
        meter, data = Meter(), PretrainingSteps(StepPlan(examples, 0, batch), STEPS + WARM, None)
        trainer(here, STEPS + WARM, [meter]).fit(learner, StepData(data, 0, 0))
        return meter.tokens_per_second()

    return measure


def ours(shape: str, size: str) -> Measure:
    """Our tokens a second."""
    own = SHAPES[shape]
    return lightning(*parts(own, int(size)), own.batch, own.threads)


def bare(shape: str, size: str) -> Measure:
    """Tokens a second of a loop without Lightning over the same steps."""
    import torch

    from paribus.data.order import StepPlan
    from paribus.training.learner import total_counts
    from paribus.training.steps import PretrainingSteps

    own = SHAPES[shape]
    here = profile(own.threads)
    examples, network, objective = parts(own, int(size))
    learner = learner_of(network, objective, STEPS + WARM)
    optimizer = learner.configure_optimizers()
    kind = torch.bfloat16 if here.precision == "bf16-mixed" else None

    def step(batches: Any) -> None:
        divisors = objective.divisors(total_counts(batches))
        with torch.autocast("cpu", kind, enabled=kind is not None):
            for batch in batches:
                learner.loss(learner.terms(batch, divisors)[0]).backward()
        torch.nn.utils.clip_grad_norm_(learner.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad()

    def measure() -> float:
        data, taken = PretrainingSteps(StepPlan(examples, 0, own.batch), STEPS + WARM, None), []
        for number in range(STEPS + WARM):
            start = time.perf_counter()
            step(data[number])
            taken.append(time.perf_counter() - start)
        return own.batch * own.length / statistics.median(taken[WARM:])

    return measure


def peer(shape: str, size: str, bf16: str) -> Measure:
    """The Trainer's tokens a second."""
    from transformers import BertConfig, BertForMaskedLM

    own, count = SHAPES[shape], int(size)
    model = BertForMaskedLM(BertConfig(
        vocab_size=count, hidden_size=own.width, num_hidden_layers=own.layers, num_attention_heads=own.width // 64,
        intermediate_size=4 * own.width, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    ))  # fmt: skip
    return masked(model, own, count, bf16 == "bf16")


def masked(model: Any, own: Shape, count: int, bf16: bool) -> Measure:
    """The tokens a second that the Trainer reads with its own masks."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

    words = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4} | {f"w{n}": n for n in range(5, count)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(words, unk_token="[UNK]")),
        pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
    )  # fmt: skip
    ids = np.random.default_rng(0).integers(5, count, (own.batch * (STEPS + WARM), own.length)).tolist()
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    rows = [{"input_ids": row, "attention_mask": [1] * own.length} for row in ids]
    return trained(model, rows, collator, bf16, own.batch, own.batch * own.length)


def trained(
    model: Any, rows: list[Any], collator: Any, bf16: bool, batch: int, unit: float, typical: Any = np.median
) -> Measure:
    """What the Trainer does a second, `unit` of it in each step of `typical` length."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *unused: Any, **more: Any) -> None:
            ends.append(time.perf_counter())

    def measure() -> float:
        ends.clear()
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                folder, per_device_train_batch_size=batch, max_steps=len(rows) // batch, bf16=bf16, use_cpu=True,
                report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
            )  # fmt: skip
            Trainer(model, arguments, train_dataset=rows, data_collator=collator, callbacks=[Clock()]).train()
        return unit / float(typical(np.diff(ends[WARM - 1 :])))

    return measure


def memory(shape: str, size: str) -> Measure:
    """Peak memory of a run's process in megabytes."""
    train = ours(shape, size)

    def measure() -> float:
        train()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    return measure


def growth(steps: str) -> Measure:
    """Megabytes by which a process grows from a tenth of the steps to their end."""
    from paribus.data.order import StepPlan
    from paribus.training.callbacks import Meter, StepCallback
    from paribus.training.steps import PretrainingSteps, StepData
    from paribus.training.trainer import trainer

    own, total = SHAPES["least"], int(steps)
    held: dict[int, float] = {}

    class Held(StepCallback):
        def after_step(self, trainer: Any, module: Any) -> None:
            if trainer.global_step in (total // 10, total):
                pages = int(Path("/proc/self/statm").read_text().split()[1])
                held[trainer.global_step] = pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def measure() -> float:
        examples, network, objective = parts(own, 512)
        data = PretrainingSteps(StepPlan(examples, 0, own.batch), total, None)
        trainer(profile(1), total, [Meter(), Held()]).fit(learner_of(network, objective, total), StepData(data, 0, 0))
        return held[total] - held[total // 10]

    return measure


def flops(shape: Shape, size: int) -> float:
    """Of a training step for each input token, the prediction of 15 % of them included."""
    return float(3 * (shape.spec().forward_flops(1, shape.length) + 0.15 * 2 * (shape.width**2 + shape.width * size)))


def peak(threads: int | None) -> float:
    """Floating-point operations a second of a bare matrix product here."""
    from paribus.training.profile import matrix_peak

    here = profile(threads)
    return max(matrix_peak(here) for _ in range(5))


@contextmanager
def tree_of(commit: str) -> Iterator[Path | None]:
    """The files of a commit in a temporary folder; None without a commit."""
    if not commit:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", commit], cwd=HERE.parent, capture_output=True, check=True)
        with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)


def rows(turns: int = 3, before: str = "", growth_steps: int = 10_000) -> list[Row]:
    """BERT-mini against the Trainer and against the machine, BERT-tiny against `before`, overhead and memory."""
    found, here = [], "bench_training"
    wide = _matrix_unit()
    targets = {8192: (3.0, 4.5) if wide else (2.6, 3.8), 30522: (6.0, None)}
    for size in SIZES:
        sides = {"ours": Side(here, "ours", "mini", size), "bf16": Side(here, "peer", "mini", size, "bf16")}
        if size == SIZES[0]:
            sides |= {"default": Side(here, "peer", "mini", size, "fp32"), "bare": Side(here, "bare", "mini", size)}
        speed = take_turns(sides, turns)
        for name, least in zip(("bf16", "default"), targets[size], strict=True):
            if name in speed:
                label = f"BERT-mini, V {size}: ours / Trainer {'bf16' if name == 'bf16' else 'as it comes'}"
                found.append(Row(label, speed["ours"] / speed[name], "x", least, note=f"{speed['ours']:,.0f} tokens/s"))
        share = flops(SHAPES["mini"], size) * speed["ours"] / peak(None)
        least = (0.5 if wide else 0.65) if size == SIZES[0] else None
        found.append(
            Row(f"BERT-mini, V {size}: share of the matrix peak if the last layer were whole", share, "", least)
        )
        if "bare" in speed:
            overhead = speed["bare"] / speed["ours"] - 1
            found.append(Row("Lightning and our callbacks beside a bare loop, a step", 100 * overhead, "%", most=3.0))
    with tree_of(before) as root:
        sides = {"ours": Side(here, "ours", "tiny", SIZES[0])}
        if root is not None:
            sides["before"] = Side(here, "ours", "tiny", SIZES[0], root=root)
        speed = take_turns(sides, 4 * turns)
    found.append(Row("BERT-tiny, one thread", speed["ours"], "tokens/s"))
    if "before" in speed:
        found.append(Row(f"BERT-tiny, one thread: ours / {before[:7]}", speed["ours"] / speed["before"], "x", 1.6))
    rest = {"memory": Side(here, "memory", "mini", SIZES[0])}
    found.append(Row("BERT-mini: peak memory of a run", take_turns(rest, 1)["memory"], "MB", most=1000.0))
    if growth_steps:
        grown = Side(here, "growth", growth_steps)
        found.append(Row(f"memory that a process gains in {growth_steps:,} steps", grown.turn(), "MB", most=2.0))
        grown.close()
    return found


def _matrix_unit() -> bool:
    """Whether the processor has AMX."""
    return "amx_bf16" in Path("/proc/cpuinfo").read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(rows, __doc__, turns=3, before="", growth_steps=10_000))
