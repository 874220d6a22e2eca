"""A training of a few steps on random tokens."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models.bert import Bert
from paribus.models.network import Network, as_batch
from paribus.objectives.objective import Objective
from paribus.optim.adamw import AdamW
from paribus.optim.lr_schedule import Schedule
from paribus.training.learner import Pretraining
from paribus.training.profile import ResolvedProfile
from paribus.training.steps import StepData
from paribus.training.trainer import trainer

VOCABULARY = Vocabulary(size=97, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))


def batch_of(seed: int, rows: int = 4, length: int = 12) -> dict[str, Any]:
    """Rows of random tokens, three of each masked; the first row of every third batch begins a document."""
    random = torch.Generator().manual_seed(seed)
    ids_BL = torch.randint(5, 97, (rows, length), generator=random)
    slot_P = (torch.arange(rows)[:, None] * length + torch.tensor([2, 5, 7])).flatten()
    target_P = ids_BL.view(-1)[slot_P].clone()
    ids_BL.view(-1)[slot_P] = 4
    begins_B = torch.zeros(rows, dtype=torch.bool)
    begins_B[0] = seed % 3 == 0
    batch = {
        "ids_BL": ids_BL.numpy(),
        "part_BL": torch.zeros_like(ids_BL).numpy(),
        "length_B": torch.full((rows,), length).numpy(),
        "slot_P": slot_P.numpy(),
        "target_P": target_P.numpy(),
        "begins_B": begins_B.numpy(),
        "label_B": torch.randint(0, 2, (rows,), generator=random).numpy(),
        "counts": {"predicted": len(slot_P), "input_tokens": rows * length, "rows": rows},
    }
    return as_batch(batch)


def learner_of(network: Network, objective: Objective, total: int) -> Pretraining:
    optimizer, schedule = AdamW(lr=0.01), Schedule("constant")
    return Pretraining(network, objective, optimizer, schedule, total_steps=total, total_tokens=0, clip=1.0, seed=1)


class Steps:
    """Given steps, as the loader reads them."""

    def __init__(self, steps: list[Any]) -> None:
        self.steps, self.total = steps, len(steps)

    def __getitem__(self, number: int) -> Any:
        return self.steps[number]


def fit(learner: Pretraining, steps: list[Any], total: int, resumed: Path | None = None, done: int = 0) -> Any:
    found = trainer(ResolvedProfile("cpu", "32-true", 1, 0, None, False), total, [])
    found.fit(learner, StepData(Steps(steps), done, 0), ckpt_path=resumed, weights_only=True)
    return found


def network_of(spec: Any = None, seed: int = 3) -> Network:
    spec = spec or Bert(1, 32, 2, 64, positions=40, dropout=0.0, attention_dropout=0.0)
    return spec.build(VOCABULARY, seed)


def assert_resumes(spec: Any, objective_spec: Any, steps: list[Any], path: Path) -> tuple[Pretraining, Pretraining]:
    """A training that is cut after two steps and resumed ends with the bits of one that is not."""
    whole, cut, resumed = (
        learner_of(network, objective_spec.build(network, VOCABULARY, 7), len(steps))
        for network in (network_of(spec) for _ in range(3))
    )
    with ExitStack() as training:
        for learner in (whole, cut, resumed):
            training.enter_context(learner.objective.while_training(learner.encoder))
        fit(whole, steps, len(steps))
        fit(cut, steps, 2).save_checkpoint(path)
        fit(resumed, steps, len(steps), path, done=2)
    wanted = whole.state_dict()
    for name, value in resumed.state_dict().items():
        assert torch.equal(value, wanted[name]), name
    return whole, resumed
