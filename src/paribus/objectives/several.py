"""The masked LM and further tasks on the same text, one of them in each step (ERNIE 2, arXiv 1907.12412)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import UserError
from paribus.objectives.mlm import MaskedLM
from paribus.objectives.text_tasks import MLM, TASKS

if TYPE_CHECKING:
    from paribus.data.annotators.annotator import Annotator
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.heads.head import Head
    from paribus.models.network import Network
    from paribus.objectives.objective import Objective


@dataclass(frozen=True)
class SeveralTasks(MaskedLM):
    """A head for each task; a step reads the rows of one task and has its loss alone.

    `tasks`: {task: its steps in a cycle}, 0 for none; the order of steps within a cycle is random. The tasks beside
    `mlm` read the text without noise. A stage takes over the heads of the tasks
    that the one before has too.

    Raises UserError for an unknown task, an invalid number of steps, and if no task has a step.
    """

    tasks: Mapping[str, int] = field(default_factory=lambda: {MLM: 1})
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        known = [MLM, *TASKS]
        if unknown := [name for name in self.tasks if name not in known]:
            raise UserError(f"objective.tasks.{unknown[0]} is not a task on text", f"name one of {', '.join(known)}")
        for name, steps in self.tasks.items():
            if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
                raise UserError(
                    f"objective.tasks.{name}={steps} is out of range", "give its steps in a cycle, or 0 for none"
                )
        if not self.text_tasks:
            raise UserError("objective.tasks has no task with a step", f"set objective.tasks.{MLM}=1")

    @property
    def text_tasks(self) -> dict[str, int]:
        """The tasks that are trained, with their steps in a cycle, `mlm` first."""
        return {name: count for name in (MLM, *TASKS) if (count := self.tasks.get(name, 0))}

    @property
    def annotator(self) -> Annotator | None:
        return next((found for name in self.text_tasks if name != MLM and (found := TASKS[name].annotator)), None)

    @property
    def alone(self) -> SeveralTasks:
        return replace(self, tasks={MLM: 1})

    def further_heads(self, network: Network) -> dict[str, Head]:
        return {name: TASKS[name].head(network) for name in self.text_tasks if name != MLM}

    def compose(self, network: Network, vocabulary: Vocabulary) -> Objective:
        objective = super().compose(network, vocabulary)
        objective.tasks = {name: name for name in objective.heads}
        return objective
