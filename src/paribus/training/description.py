"""The description of a run: its composed config, instantiated once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.build import build
from paribus.core.checksums import digest
from paribus.core.config import plain, root_seed
from paribus.core.config_errors import check_keys
from paribus.core.errors import UserError
from paribus.core.files import check_names
from paribus.core.settings import GROUPS, Batch, FineTuning, HeldOut, Paths, Profile, Trainer
from paribus.core.stages import end_at, list_stages, settle
from paribus.core.trust import check_tree
from paribus.core.values import check_top, check_values
from paribus.data.tokens.prepare import Data, Source, data_fingerprint, prepare
from paribus.data.tokens.store import sample_store
from paribus.runs.identity import Identity, identify

if TYPE_CHECKING:
    from paribus.corruption.masking.pattern import NoisePattern
    from paribus.data.annotators import Annotator
    from paribus.data.corpus.document import Corpus
    from paribus.data.formats.input_format import InputFormat
    from paribus.models.spec import ModelSpec
    from paribus.objectives.spec import ObjectiveSpec
    from paribus.optim.lr_schedule import Schedule
    from paribus.optim.spec import OptimizerSpec
    from paribus.runs.wandb_tracker import Logger
    from paribus.tasks.mixtures import Mixture
    from paribus.tasks.task import Task
    from paribus.tasks.types.base import TaskType


@dataclass(frozen=True)
class Run:
    """One run, as its config describes it. Everything below the command line reads this, and nothing else the config.

    `config` is the resolved config as plain data, for the record; `trial` are the names of a search's trial. A run may
    have several stages: it starts from the weights of the one `before`, and the other parts are those of its last
    stage. `stage` names a run that is only the beginning of another.
    """

    config: Mapping[str, Any] = field(repr=False)
    study: str
    arm: str
    seed: int
    corpus: Corpus
    tokenizer: Source
    input: InputFormat
    masking: NoisePattern
    objective: ObjectiveSpec
    model: ModelSpec
    optimizer: OptimizerSpec
    lr_schedule: Schedule
    batch: Batch
    trainer: Trainer
    profile: Profile
    evaluation: HeldOut
    finetune: FineTuning
    paths: Paths
    logger: Logger
    tasks: Mapping[str, Task]
    mixture: Mixture | None = None
    members: int = 1
    scale: str | None = None
    sweep_hash: str | None = None
    trial: Mapping[str, Any] | None = None
    run_dir: str | None = None
    stage: str = ""
    before: Run | None = field(default=None, repr=False)

    @staticmethod
    def of(cfg: Mapping[str, Any], like: Run | None = None) -> Run:
        """The run of a composed or stored config. It has the components of the run that it is `like` where the settings
        are equal: building all of them takes some 50 ms.

        Raises UserError for a missing value, a key or an argument that is not known, settings that a component
        refuses, a class that is not trusted, and a name that cannot name a folder.
        """
        config = dict(cfg) if isinstance(cfg, dict) else plain(cfg)
        check_tree(config)
        check_keys(config)
        check_names(config)
        check_top(config)
        before = None
        for name in list_stages(config)[:-1]:
            before = Run._one(end_at(config, name), before, like)
        return Run._one(config, before, like)

    @staticmethod
    def _one(config: dict[str, Any], before: Run | None, like: Run | None) -> Run:
        settled = {key: value for key, value in settle(config).items() if key != "stages"}
        known = {each.name for each in fields(Run)} - {"config", "before"}
        shared = settle(like.config) if like else {}
        both = known & settled.keys() & shared.keys()
        same = {key for key in both if repr(settled[key]) == repr(shared[key])}  # true, 1 and 1.0 differ
        other = {key: value for key, value in settled.items() if key not in same}
        check_values({key: value for key, value in other.items() if key not in ("trial", "logger")})
        parts = build(other)
        parts |= {name: _read_group(name, group, parts.get(name)) for name, group in GROUPS.items() if name not in same}
        parts |= {name: getattr(like, name) for name in same}
        parts["mixture"] = parts.get("mixture") or None
        if parts["finetune"].method is None:
            raise UserError("finetune.method is missing", "do not delete the group finetune")
        parts["tasks"] = {name: task.limited(parts["finetune"].max_examples) for name, task in parts["tasks"].items()}
        needed = {each.name for each in fields(Run) if each.default is MISSING} & known
        if missing := sorted(needed - parts.keys()):
            raise UserError(f"the config has no '{missing[0]}'", "do not delete it")
        return Run(config=config, before=before, **{name: parts[name] for name in known & parts.keys()})

    @property
    def label(self) -> str:
        """How messages name the run."""
        return f"{self.arm}/seed{self.seed}"

    @property
    def last_stage(self) -> str:
        """The name of the run's last stage."""
        return list_stages(self.config)[-1]

    @property
    def chain(self) -> tuple[Run, ...]:
        """The stages of the run in order; the last is the run itself."""
        return (*(self.before.chain if self.before else ()), self)

    @property
    def root_seed(self) -> int:
        """The seed of every draw of the run."""
        return root_seed(self.config)

    @property
    def cache(self) -> Path:
        """The folder of prepared text and tasks."""
        return Path(self.paths.cache).expanduser()

    @property
    def starts_from_vectors(self) -> bool:
        """Whether the stage before trained static word vectors from which another model starts."""
        before = self.before
        return before is not None and before.model.shape.static and not self.model.shape.static

    @property
    def annotator(self) -> Annotator | None:
        """The annotator of the spans that the masking covers or the objective predicts; None if neither needs one.

        Raises UserError if both do.
        """
        masked: Annotator | None = getattr(self.masking, "annotator", None)
        if masked is not None and self.objective.annotator is not None:
            mend = "set objective.tasks.capitalization=0, or another masking"
            raise UserError("masking and objective both need an annotated text", mend)
        return masked or self.objective.annotator

    @cached_property
    def identity(self) -> Identity:
        """The names of the run. Reads the corpus once if its fingerprint is not cached.

        Raises UserError for a corpus or task that cannot be read, and Unavailable for an annotator that is not here.
        """
        data = data_fingerprint(self.corpus, self.tokenizer, self.cache, self.annotator, self._trained_on)
        tasks = {name: task.data_hash(self.cache) for name, task in self.tasks.items()}
        mixed = self.mixture.choose(list(tasks)) if self.mixture else []
        before = self.before.identity.pretrain if self.before else ""
        return identify(settle(self.config), data, tasks, mixed, before)

    @property
    def _trained_on(self) -> Corpus | None:
        """The corpus of the tokenizer if it is that of an earlier stage."""
        return self.chain[0].corpus if self.before else None

    def data(self) -> Data:
        """The prepared data; `trainer.train_tokens` keeps a part of the training documents.

        All stages have the tokenizer of the first.
        """
        data = prepare(
            self.corpus,
            self.tokenizer,
            self.cache,
            self.annotator,
            self._trained_on,
            counts_text=self.objective.predicts_text,
        )
        if self.trainer.train_tokens is not None:
            data.stores["train"] = sample_store(data.stores["train"], self.trainer.train_tokens)
        return data

    def tuned_for(self, task: str) -> Run:
        """The run with the fine-tuning of one task."""
        settings = self.finetune.of(task)
        return self if settings is self.finetune else replace(self, finetune=settings)

    def task_type(self, name: str) -> TaskType:
        """The task type for the fine-tuned model. Raises UserError if the model cannot do the task."""
        return self.tasks[name].task_type if self.finetune.encoder else self.tasks[name].type_for(self.model)

    @property
    def tuned_tasks(self) -> dict[str, Task]:
        """The tasks that are fine-tuned: an encoder writes nothing."""
        aside = self.finetune.encoder
        return {name: task for name, task in self.tasks.items() if not (aside and task.task_type.writes_text)}

    def member(self, number: int) -> Run:
        """The pre-training of this number of an ensemble: another replicate under the same seed.

        The first one is the run itself, so that runs without an ensemble share it.
        """
        if number == 0:
            return self
        replicate = int(digest(["member", int(self.config.get("replicate", 0)), number], 12), 16)
        return Run.of({**self.config, "replicate": replicate, "members": 1, "trial": None})


def _read_group(name: str, group: type, values: object) -> Any:
    """A plain group as its typed settings. Raises UserError for a key that it does not have."""
    known = {each.name for each in fields(group)}
    if not isinstance(values, Mapping):
        raise UserError(f"the config has no settings '{name}'", "do not delete or replace it")
    if unknown := sorted(values.keys() - known):
        raise UserError(f"unknown key '{name}.{unknown[0]}'", f"known: {', '.join(sorted(known))}")
    return group(**values)
