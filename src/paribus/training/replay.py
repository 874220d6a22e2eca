"""A further loss while fine-tuning: the objective of pre-training on a batch of text in every step.

On the labeled rows it is GPT-1's auxiliary objective (Radford et al. 2018, section 3.2, with weight 0.5). On the task's
own text it is the same, but read separately from the rows, without the special tokens of their format, and averaged
over predicted tokens, not over sequences. On the text of a stage it is replay.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import cast

from torch import Tensor
from torch.nn.functional import cross_entropy

from paribus.corruption.examples import Stream
from paribus.data.order import Order
from paribus.data.tokens.prepare import prepare
from paribus.models.heads.head import Head, TokenHead
from paribus.models.network import Batch, Network, Outputs, find_real
from paribus.objectives.objective import Objective
from paribus.tasks.text_corpus import TaskText
from paribus.training.budget import plan_of
from paribus.training.description import Run
from paribus.training.steps import PretrainingSteps, Step, TaskSteps

TASK, TEXT = "task", "replay"  # names of the two losses, and of the batches that have them
ROWS = "rows"  # the text is that of the labeled rows


def read_text(run: Run, task: str) -> Order[Stream] | None:
    """The batches of text that accompany the fine-tuning on a task; None if the labeled rows are the text.

    Raises UserError for text that gives no example.
    """
    text = run.finetune.replay_text
    if text == ROWS:
        return None
    if text != TASK:
        stage = next(stage for stage in run.chain if stage.last_stage == text)
        return plan_of(replace(stage, mixture=None, objective=stage.objective.alone), stage.data())[0]
    corpus = TaskText({task: run.tasks[task]}, run.corpus.sentences)
    data = prepare(corpus, run.tokenizer, run.cache, run.annotator, run.chain[0].corpus)
    limits = replace(run.trainer, max_steps=1)  # the fine-tuning decides how many
    alone = replace(run, corpus=corpus, mixture=None, trainer=limits, objective=run.objective.alone)
    return plan_of(alone, data)[0]


@dataclass(frozen=True)
class Replay:
    """The text and the head of the further loss; `encoder`: what the head was trained on and may be tied to.

    text: None for that of the labeled rows.
    """

    text: Order[Stream] | None
    encoder: Network
    head: Head
    weight: float

    def objective(self, task: Head, encoder: Network) -> Objective:
        """Both losses on a copy of the encoder."""
        head = copy.deepcopy(self.head, {id(self.encoder): encoder})
        if self.text is None:
            return Objective({TASK: task, TEXT: WholeRows(cast(TokenHead, head))}, {TEXT: self.weight})
        return Objective({TASK: task, TEXT: head}, {TEXT: self.weight}, {TASK: TASK, TEXT: TEXT})


class WholeRows(TokenHead):
    """A left-to-right head asked for every token of a row but the first. The loss of a row is the mean over its tokens
    (GPT-1, `train.py`); a step's is the mean over its rows, those of both orders and of every option among them.
    """

    denominator = "sequences"

    def __init__(self, head: TokenHead) -> None:
        super().__init__()
        self.head = head

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return None

    def scores(self, hidden_PD: Tensor) -> Tensor:
        return self.head.scores(hidden_PD)

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        ids_BL, length_B = batch["ids_BL"], batch["length_B"]
        asked_BL = find_real(length_B, ids_BL.shape[1])
        asked_BL[:, 0] = False
        place_P = asked_BL.flatten().nonzero()[:, 0]
        logits_PV = self.scores(outputs.at(place_P - 1)).float()
        loss_P = cross_entropy(logits_PV, ids_BL.flatten()[place_P], reduction="none")
        total: Tensor = (loss_P / (length_B - 1)[place_P // ids_BL.shape[1]]).sum()
        return total


class ReplaySteps(TaskSteps):
    """Steps of fine-tuning that hold a batch of text each. Batches name their loss, so that each head computes only
    its own.
    """

    def __init__(self, steps: TaskSteps, text: Order[Stream], microbatch: int | None) -> None:
        super().__init__(steps.encoded, steps.batch_size, steps.epochs, steps.seed, steps.most)
        self.text = PretrainingSteps(text, self.total, microbatch)

    def __getitem__(self, step: int) -> Step:
        return [*_name(super().__getitem__(step), TASK), *_name(self.text[step], TEXT)]


def _name(batches: Step, loss: str) -> Step:
    return [{**batch, "task": loss} for batch in batches]
