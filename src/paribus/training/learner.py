"""The LightningModules: one way to take an optimizer step, for pre-training and for fine-tuning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

import pytorch_lightning as pl
import torch
from pytorch_lightning.core.optimizer import LightningOptimizer
from torch import Tensor, nn

from paribus.core.checksums import digest
from paribus.finetuning.method import Method
from paribus.models.network import Batch, Network, State, seed_dropout
from paribus.objectives.objective import Objective
from paribus.optim.lr_schedule import Schedule
from paribus.optim.spec import OptimizerSpec, Rates
from paribus.training.distributed import add_up, counts_of_all, merge_of_all, shard, unshared, whole
from paribus.training.memory import Memory
from paribus.training.steps import Step


class Learner(pl.LightningModule):
    """One item of the loader is one optimizer step, given as its microbatches.

    The counts that normalize the losses are known over the whole step before the first backward pass, so accumulation
    gives the gradient of the large batch. Dropout is seeded by (seed, step, microbatch), and gradients are added in an
    order that depends on the microbatches alone: a resumed run has equal bits, also on 2, 4, 8, ... processes that
    share the microbatches.

    What a network with memory leaves is carried to the same microbatch of the next step if that says where rows begin,
    and is part of the checkpoint. That needs one process.
    """

    carries_memory: ClassVar[bool] = True

    def __init__(
        self,
        encoder: Network,
        objective: Objective,
        optimizer: OptimizerSpec,
        schedule: Schedule,
        *,
        total_steps: int,
        total_tokens: int,
        clip: float | None,
        seed: int,
        rates: Rates | None = None,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.encoder, self.objective = encoder, objective
        self.optimizer_spec, self.schedule = optimizer, schedule
        self.total_steps, self.total_tokens = total_steps, total_tokens
        self.clip, self.seed, self.rates = clip, seed, rates
        self.tokens_seen: Tensor
        self.register_buffer("tokens_seen", torch.zeros((), dtype=torch.int64))
        self.last: dict[str, Any] = {}  # of the last step, for callbacks; losses stay on the device
        self.memory = Memory(module for module in self.modules() if isinstance(module, Network))

    def configure_model(self) -> None:
        """Cut the weights into shards if the strategy has a mesh for them."""
        if self.device_mesh is not None:
            shard(self, self.device_mesh["data_parallel"])

    def configure_optimizers(self) -> Any:
        """One optimizer; `training_step` sets its rate in every step."""
        settings: dict[str, Any] = {} if self.rates is None else {"rates": self.rates}
        if self.optimizer_spec.asks_layers:
            settings["in_layers"] = self._list_in_layers().__contains__
        return self.optimizer_spec.build(list(self.named_parameters()), **settings)

    def _list_in_layers(self) -> set[str]:
        """Names of the parameters inside the layers of a network, also of one that an objective owns."""
        tables = {id(module.weight) for module in self.modules() if isinstance(module, nn.Embedding)}
        return {
            f"{prefix}.{name}"
            for prefix, network in self.named_modules()
            if isinstance(network, Network)
            for name, parameter in network.named_parameters()
            if network.depth_of(name) > 0 and id(parameter) not in tables
        }

    def training_step(self, step: Step, step_in_epoch: int) -> None:
        """Forward and backward of every microbatch, then clip and update."""
        optimizer = self.optimizers()
        assert isinstance(optimizer, LightningOptimizer)
        number = self.trainer.global_step
        counts = counts_of_all(self.trainer, total_counts(step))
        divisors = self.objective.divisors(counts)
        self.objective.begin_step(number / self.total_steps)
        with unshared(self.trainer):
            computed = self._pass(step, range(len(step)), divisors)
        # every rank adds up all losses, also those that its own microbatches lack
        losses = {name: computed.get(name, torch.zeros((), device=self.device)) for name in divisors}
        add_up(self.trainer, self.parameters(), losses)
        self._update(optimizer, number, counts)
        self.last["losses"] = {name: loss for name, loss in losses.items() if name in computed}
        self.last["counts"] = counts

    def _pass(self, step: Step, places: range, divisors: Mapping[str, float]) -> dict[str, Tensor]:
        """Forward and backward of the microbatches at these places of the step. Returns their losses.

        Losses and gradients are the sum of those of every second microbatch and of the others, and so on. That is how
        `add_up` adds those of processes, each of which has every `size`-th microbatch.
        """
        if len(places) <= 1:
            return self._pass_microbatch(step[places[0]], places[0], divisors) if places else {}
        even, odd = places[::2], places[1::2]
        losses, held = self._pass(step, even, divisors), None
        if len(odd) > 1:  # a single one is added in place
            held = [(p, p.grad) for p in self.parameters() if p.grad is not None]
            for parameter, _ in held:
                parameter.grad = None
        for name, loss in self._pass(step, odd, divisors).items():
            losses[name] = losses[name] + loss if name in losses else loss
        for parameter, grad in held or ():
            parameter.grad = grad if parameter.grad is None else parameter.grad.add_(grad)
        return losses

    def _pass_microbatch(self, batch: Batch, index: int, divisors: Mapping[str, float]) -> dict[str, Tensor]:
        """Forward and backward of the microbatch at this place of the step. Returns its losses."""
        rank, size = self.trainer.global_rank, self.trainer.world_size
        place = rank + size * index  # of the microbatch among those of all processes
        seed_dropout(self.device, int(digest([self.seed, self.trainer.global_step, place], 15), 16))
        terms, state = self.terms(batch, divisors, self.memory.recall(place, batch) if self.carries_memory else None)
        loss = self.loss(terms)
        if batch.get("idle"):  # it keeps the ranks in step and counts for nothing
            self.manual_backward(0.0 * loss)
            return {name: torch.zeros_like(term) for name, term in terms.items()}
        if rank == index == 0 and (penalty := self.objective.penalty(batch)) is not None:
            loss = loss + penalty  # once in a step, however many microbatches it has
        self.manual_backward(loss)
        if self.carries_memory:
            self.memory.keep(place, batch, state)
        return {name: term.detach() for name, term in terms.items()}

    def _update(self, optimizer: LightningOptimizer, number: int, counts: Counter[str]) -> None:
        """Set the rate of step `number`, clip the gradients, and take the step."""
        self.tokens_seen += counts["input_tokens"]
        by_tokens = self.schedule.position == "tokens"
        done = int(self.tokens_seen) / self.total_tokens if by_tokens else (number + 0.5) / self.total_steps
        rate = self.optimizer_spec.lr * self.schedule.factor(min(done, 1.0))
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("rate", 1.0)
        if self.clip is not None:
            parameters = [p for p in self.parameters() if p.grad is not None]
            self.last["grad_norm"] = whole(nn.utils.clip_grad_norm_(parameters, self.clip, foreach=True))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        self.last["lr"] = rate

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep what is carried in all processes, if the network has a memory."""
        if carried := merge_of_all(self.trainer, self.memory.to_checkpoint()):
            checkpoint["carried"] = carried

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Carry what the last step left."""
        self.memory.from_checkpoint(checkpoint.get("carried", {}), self.device)

    def forward(self, batch: Batch, state: State) -> tuple[dict[str, Tensor], Any]:
        """What the objective makes of a batch."""
        losses_and_state: tuple[dict[str, Tensor], Any] = self.objective(self.encoder, batch, state)
        return losses_and_state

    def terms(self, batch: Batch, divisors: Mapping[str, float], state: State = None) -> tuple[dict[str, Tensor], Any]:
        """({head: its share of the loss of a step with these divisors}, what the network carries on); losses that the
        batch does not have are missing.
        """
        sums, state = self(batch, state)
        return {name: total / divisors[name] for name, total in sums.items()}, state

    def loss(self, terms: dict[str, Tensor]) -> Tensor:
        """The heads' losses, weighted and added."""
        weighted = [self.objective.weights[name] * term for name, term in terms.items()]
        return torch.stack(weighted).sum() if len(weighted) > 1 else weighted[0]


class Pretraining(Learner):
    """A learner on corrupted text."""


class Finetuning(Learner):
    """A learner on the labeled examples of a task, from a pre-trained encoder that `method` has shaped.

    Examples do not continue each other, so no memory is carried.
    """

    carries_memory = False

    def __init__(self, *parts: Any, method: Method, **settings: Any) -> None:
        super().__init__(*parts, **settings)
        self.method = method

    def on_train_batch_start(self, batch: Step, batch_idx: int) -> None:
        """Freeze for this step what the method has not opened yet; the optimizer already has all parameters. An encoder
        that does not move is in evaluation mode: its running statistics stay what they are.
        """
        if not self.method.moves:
            self.encoder.eval()
        done = self.trainer.global_step / self.total_steps
        self.method.set_head_trainable(self.objective, self.encoder.depth, done)
        self.method.set_trainable(self.encoder, done)  # last: a head may be tied to word embeddings


def total_counts(step: Step) -> Counter[str]:
    """The step's counts over all of its microbatches; those of a task also with its name before theirs."""
    counts: Counter[str] = Counter()
    for batch in step:
        counts.update(batch["counts"])
        if "task" in batch:
            counts.update({f"{batch['task']}/{name}": count for name, count in batch["counts"].items()})
    return counts
