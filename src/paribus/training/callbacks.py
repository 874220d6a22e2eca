"""Callbacks of training: curves, checkpoints, evaluations, the progress bar."""

from __future__ import annotations

import hashlib
import json
import math
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast
from zipfile import ZipFile

import pytorch_lightning as pl
import torch
from tqdm import tqdm

from paribus.core.checksums import sync
from paribus.core.console import EVERY, duration, say, watched
from paribus.core.errors import UserError
from paribus.core.files import DAMAGED, write_text
from paribus.core.processes import Stopped, asked_to_stop

if TYPE_CHECKING:
    from paribus.training.learner import Learner

LAST = "last.ckpt"
_BAR = "{desc}: {n_fmt}/{total_fmt}, {remaining} left{postfix} |{bar}|"  # the bar has what a narrow window leaves it
WARM_STEPS = 5  # first steps that the speed leaves out, at most half of them
POINTS = 50  # of a fine-tuning's curve
KEPT_RATES = 20_000  # steps whose speed is remembered


class Diverged(Exception):
    """The loss is no longer a finite number."""


class StepCallback(pl.Callback):
    """Acts after each optimizer step of a `Learner`."""

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: object, batch: object, batch_idx: int
    ) -> None:
        self.after_step(trainer, cast("Learner", module))

    def after_step(self, trainer: pl.Trainer, module: Learner) -> None:
        """Called after each step; `module.last` describes it."""


class Meter(StepCallback):
    """Budget and speed: tokens, predictions, padding, seconds; survives interruptions with the checkpoint."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.train_seconds = self.step_seconds = 0.0
        self.rates: list[float] = []

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._mark = time.perf_counter()

    def on_train_batch_start(
        self, trainer: pl.Trainer, module: pl.LightningModule, batch: object, batch_idx: int
    ) -> None:
        self._step = time.perf_counter()

    def after_step(self, trainer: pl.Trainer, module: Learner) -> None:
        now = time.perf_counter()
        self.step_seconds += now - self._step
        self.train_seconds, self._mark = self.train_seconds + now - self._mark, now
        self.counts.update(module.last["counts"])
        if len(self.rates) < KEPT_RATES:
            self.rates.append(module.last["counts"]["input_tokens"] / (now - self._step))

    def on_train_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self.train_seconds += time.perf_counter() - self._mark

    def tokens_per_second(self) -> float:
        """Median over steps of input tokens that are not padding, first steps left out; 0 without steps."""
        steady = self.rates[min(WARM_STEPS, len(self.rates) // 2) :]
        return statistics.median(steady) if steady else 0.0

    def state_dict(self) -> dict[str, Any]:
        return {
            "counts": dict(self.counts),
            "train_seconds": self.train_seconds,
            "step_seconds": self.step_seconds,
            "rates": self.rates,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.counts = Counter(state["counts"])
        self.train_seconds, self.step_seconds = state["train_seconds"], state["step_seconds"]
        self.rates = list(state["rates"])


class Curves(StepCallback):
    """Lines of metrics.jsonl every `every` steps, and the same to the logger. Stops a run whose loss is not finite.

    A checkpoint holds the size and the hash of the file so far, to which `keep_lines` cuts it.
    """

    def __init__(self, path: Path, every: int) -> None:
        self.path, self.every = path, max(1, every)

    def after_step(self, trainer: pl.Trainer, module: Learner) -> None:
        step = trainer.global_step
        if step % self.every and step != module.total_steps:
            return
        losses = {f"train/{name}_loss": float(loss) for name, loss in module.last["losses"].items()}
        if not all(map(math.isfinite, losses.values())):
            raise Diverged(f"loss {losses} at step {step}")
        line = {**losses, "train/lr": module.last["lr"], "train/tokens": int(module.tokens_seen)}
        if "grad_norm" in module.last:
            line["train/grad_norm"] = float(module.last["grad_norm"])
        self.write(trainer, step, line)

    def state_dict(self) -> dict[str, Any]:
        content = _read(self.path)
        return {"size": len(content), "hash": _hash(content)}

    def write(self, trainer: pl.Trainer, step: int, values: dict[str, float]) -> None:
        """One line, flushed, and the same to the logger."""
        append_line(self.path, {"step": step, **values})
        for logger in trainer.loggers:
            logger.log_metrics(values, step)


def append_line(path: Path, values: dict[str, Any]) -> None:
    """One JSON line, without numbers that are not finite, which JSON lacks. Raises UserError on a full disk."""
    kept = {key: value for key, value in values.items() if not isinstance(value, float) or math.isfinite(value)}
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(kept, allow_nan=False) + "\n")
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({error.strerror})", "free disk space, then run the same command again to resume"
        ) from error


class TaskCurve(StepCallback):
    """The loss of a fine-tuning, to the logger alone.

    Args:
        name: of the task and the seed, before `/train_loss`.
        total: steps; at most POINTS of them are logged.
    """

    def __init__(self, name: str, total: int) -> None:
        self.name, self.every = name, math.ceil(total / POINTS)

    def after_step(self, trainer: pl.Trainer, module: Learner) -> None:
        if trainer.loggers and trainer.global_step % self.every == 0:
            for logger in trainer.loggers:
                logger.log_metrics({f"{self.name}/train_loss": _add_losses(module.last["losses"])}, trainer.global_step)


class TuningCurve(StepCallback):
    """The learning curve of a fine-tuning: a line of {"step", "tokens", "values"} at each of `points` evenly spaced
    steps, the last at its end. `values` are the mean training loss since the line before and what `evaluate` finds.
    """

    def __init__(self, evaluate: Callable[[], dict[str, float]], points: int, total: int) -> None:
        self.evaluate = evaluate
        self.at = {math.ceil(total * point / points) for point in range(1, points + 1)}
        self.lines: list[dict[str, Any]] = []
        self._losses: list[dict[str, Any]] = []  # of the steps since the line before; they stay on the device

    def after_step(self, trainer: pl.Trainer, module: Learner) -> None:
        if not self.at:
            return
        self._losses.append(module.last["losses"])
        if trainer.global_step in self.at:
            values = {"train_loss": statistics.fmean(map(_add_losses, self._losses))}
            modes = [(part, part.training) for part in module.modules()]
            values |= self.evaluate()
            for part, training in modes:
                part.training = training
            self.lines.append({"step": trainer.global_step, "tokens": int(module.tokens_seen), "values": values})
            self._losses = []


def _add_losses(losses: Mapping[str, Any]) -> float:
    """The loss of a step over all of its heads."""
    return math.fsum(float(part) for part in losses.values())


def evaluation_steps(points: int, total: int) -> set[int]:
    """The evenly spaced steps after which a run is evaluated; the end is none of them."""
    return {math.ceil(total * point / points) for point in range(1, points)} - {total}


def name_validation(values: dict[str, float], tokens: int) -> dict[str, float]:
    """Values of the held-out evaluation under their names in metrics.jsonl."""
    return {f"validation/{name}": value for name, value in values.items()}


class Reporter(Protocol):
    """What receives each validation of a run that is a trial of a search."""

    def report(self, step: int, values: Mapping[str, float], tokens: int = 0) -> bool:
        """Whether to stop after this validation."""


class Evaluations(StepCallback):
    """Runs `evaluate` at `points` evenly spaced steps, the last at the end; a trial reports there and may be pruned.

    `name(values, tokens)` are the entries of a line of metrics.jsonl. Raises TrialPruned.
    """

    def __init__(
        self,
        evaluate: Callable[[], dict[str, float]],
        points: int,
        total: int,
        curves: Curves,
        reporter: Reporter | None = None,
        name: Callable[[dict[str, float], int], dict[str, float]] = name_validation,
    ) -> None:
        self.evaluate, self.curves, self.reporter, self.name = evaluate, curves, reporter, name
        self.at = evaluation_steps(points, total)

    def after_step(self, trainer: pl.Trainer, module: Learner) -> None:
        if trainer.global_step in self.at:
            values, tokens = self.evaluate(), int(module.tokens_seen)
            if values:
                self.curves.write(trainer, trainer.global_step, self.name(values, tokens))
            if self.reporter is None:
                return
            stop = trainer.is_global_zero and self.reporter.report(trainer.global_step, values, tokens)
            if trainer.strategy.broadcast(stop):  # the first rank decides, and all stop together
                from optuna import TrialPruned

                raise TrialPruned(f"pruned at step {trainer.global_step}")


class LastCheckpoint(StepCallback):
    """Keeps one checkpoint to resume from, written at intervals of seconds or steps and replaced in one move.

    The last one is at the end, since the evaluation that follows can be interrupted too.

    If a signal asks the process to end, it writes one and raises Stopped.
    """

    def __init__(self, folder: Path, seconds: float | None, steps: int | None) -> None:
        self.folder, self.seconds, self.steps = folder, seconds, steps
        self._saved, self._step = time.monotonic(), 0

    def after_step(self, trainer: pl.Trainer, module: Learner) -> None:
        number = asked_to_stop()
        due = number is not None
        due = due or (self.seconds is not None and time.monotonic() - self._saved >= self.seconds)
        due = due or (self.steps is not None and trainer.global_step % self.steps == 0)
        if trainer.strategy.reduce_boolean_decision(due, all=False):  # all ranks save together, the first writes
            self.save(trainer)
        if number is not None:
            raise Stopped(number)

    def on_train_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        if trainer.global_step > self._step:
            self.save(trainer)

    def save(self, trainer: pl.Trainer) -> None:
        """Raises UserError on a full disk; the checkpoint before it stays."""
        part = self.folder / f".{LAST}"
        try:
            trainer.save_checkpoint(part)
            if trainer.is_global_zero:
                sync(part)
                os.replace(part, self.folder / LAST)
        except (OSError, RuntimeError) as error:
            part.unlink(missing_ok=True)
            raise UserError(
                f"{self.folder / LAST} cannot be written ({error})",
                "free disk space, then run the same command again to resume",
            ) from error
        self._saved, self._step = time.monotonic(), trainer.global_step


def saved_steps(folder: Path) -> int:
    """The steps that the last checkpoint in a folder holds; a damaged one is removed."""
    return int(_read_saved(folder).get("global_step", 0))


def _read_saved(folder: Path) -> dict[str, Any]:
    """The content of the last checkpoint, empty if there is none; a damaged one is removed."""
    last = folder / LAST
    if not last.is_file():
        return {}
    with suppress(*DAMAGED), ZipFile(last) as file:  # torch writes a zip file, which has checksums
        if file.testzip() is None and "global_step" in (kept := torch.load(last, weights_only=True, mmap=True)):
            return dict(kept)
    _start_over(last, folder)
    return {}


def _start_over(damaged: Path, folder: Path) -> None:
    say(f"{damaged} is damaged; training starts over")
    (folder / LAST).unlink(missing_ok=True)


def keep_lines(path: Path) -> None:
    """Cut a curve to the length that the checkpoint beside it recorded; a resumed run writes the rest again.

    If the curve is shorter, both are dropped, and training starts over.
    """
    if saved := _read_saved(path.parent):
        known = saved["callbacks"].get(Curves.__qualname__, {})
        content = _read(path)[: known.get("size", 0)]  # nothing, if the checkpoint was written before the first line
        if known.get("hash") == _hash(content):
            write_text(path, content.decode())
            return
        _start_over(path, path.parent)
    path.unlink(missing_ok=True)


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Bar(StepCallback):
    """The progress over the steps, with losses, tokens per second and the time left: a bar in a terminal, elsewhere a
    line every 30 seconds.
    """

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total = what, total

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._first, self._tokens = trainer.global_step, 0
        self._start = self._told = time.monotonic()
        self.bar = tqdm(
            desc=self.what,
            total=self.total,
            initial=trainer.global_step,
            unit="step",
            bar_format=_BAR,
            disable=not watched(),
            leave=False,
        )

    def after_step(self, trainer: pl.Trainer, module: Learner) -> None:
        self.bar.update()
        self._tokens += module.last["counts"].get("input_tokens", 0)
        now = time.monotonic()
        if now - self._told < (EVERY if self.bar.disable else 1.0):
            return
        self._told = now
        step, seconds = trainer.global_step, now - self._start  # since the first step of this process
        known = [f"{name}_loss {float(loss):.3f}" for name, loss in module.last["losses"].items()]
        known += [f"{self._tokens / seconds:,.0f} tokens/s"] if self._tokens else []
        if not self.bar.disable:  # the bar has the time itself
            self.bar.set_postfix_str(", ".join(known), refresh=False)
            return
        left = duration((self.total - step) * seconds / (step - self._first))
        say(f"{self.what}: step {step:,} of {self.total:,}, {', '.join(known)}, about {left} left")

    def on_train_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self.bar.close()
