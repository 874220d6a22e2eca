"""The plain groups of the config as typed settings, which Hydra checks and a run hands on.

Hydra composes the YAML files of these groups on top of the types here (its `schema`), so that a value of another type
is refused when a config is composed. The default of a setting applies to configs that were stored before the setting
existed. The range of a number stands beside its setting (`within`), also in components.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

LONGER = (2, 4, 8)  # times the length of rows at which a model may be asked beyond it
LARGEST = 10**15  # of whole numbers
HIGHEST = 3e38  # of others: what 32 bits hold
_KEY = "bounds"


def within(least: float, most: float) -> dict[str, tuple[float, float]]:
    """Metadata of a dataclass field: `rate: float = field(default=0.15, metadata=within(0, 1))`."""
    return {_KEY: (least, most)}


def bounds_of(component: Any) -> Mapping[str, tuple[float, float]]:
    """{setting: (least, most)} of a dataclass."""
    return {name: each.metadata[_KEY] for name, each in component.__dataclass_fields__.items() if _KEY in each.metadata}


@dataclass(frozen=True)
class Batch:
    """An optimizer step: `size` sequences, or as many as make `size` full sequences of tokens."""

    by: str = "sequences"
    size: int = field(default=32, metadata=within(1, 10**9))


@dataclass(frozen=True)
class Trainer:
    """The budget of pre-training, and what happens during it. `conf/trainer/default.yaml` explains the settings."""

    ignored_settings: ClassVar[frozenset[str]] = frozenset({"log_every", "noise_every"})
    unset_values: ClassVar[Mapping[str, Any]] = {
        "layer_decay": 1.0,
        "max_predictions": None,
        "max_flops": None,
        "keep_optimizer": False,
    }

    max_steps: int | None = field(default=None, metadata=within(0, 10**10))
    max_tokens: int | None = None
    max_predictions: int | None = field(default=None, metadata=within(0, 10**18))
    max_flops: float | None = field(default=None, metadata=within(0, 1e30))
    max_epochs: float | None = field(default=None, metadata=within(0, 10**6))
    train_tokens: int | None = None
    clip: float | None = 1.0
    layer_decay: float = 1.0
    keep_optimizer: bool = False
    log_every: int = field(default=50, metadata=within(1, 10**10))
    noise_every: int | None = field(default=None, metadata=within(1, 10**10))


@dataclass(frozen=True)
class Profile:
    """Settings that change a run's speed, never its results. `conf/profile/auto.yaml` explains them."""

    accelerator: str = "auto"
    precision: str = "auto"
    threads: int | None = field(default=None, metadata=within(1, 10**5))
    ranks: int | None = field(default=1, metadata=within(1, 10**5))
    strategy: str = "ddp"
    workers: int = field(default=0, metadata=within(0, 10**4))
    microbatch: int | None = field(default=None, metadata=within(1, 10**9))
    compile: bool = False
    profiler: str | None = None
    checkpoint_seconds: float | None = 120
    checkpoint_steps: int | None = field(default=None, metadata=within(1, 10**10))


@dataclass(frozen=True)
class HeldOut:
    """The held-out evaluation of every arm: an input format under fixed noise.

    `rate` is the noise of models that predict in place; `masking`, `inputs` and `targets` are that of text-to-text
    models. `attention`: whether the attention of every layer is measured at the end. `lengths`: for which multiples of
    the input's length a model is asked again at the end of its training, as in [2]. `own_points` and `own_examples` set
    the evaluations on the arm's own noise; they change no number of a table. `task_points`: how often tasks are
    fine-tuned, the last time at the end, or a list of token counts at which to do it.
    """

    ignored_settings: ClassVar[frozenset[str]] = frozenset({"own_points", "own_examples"})
    unset_values: ClassVar[Mapping[str, Any]] = {"task_points": 0, "attention": False, "lengths": []}

    input: Any = None
    rate: float = field(default=0.15, metadata=within(0, 1))
    masking: Any = None
    inputs: Any = None
    targets: Any = None
    seed: int = 2019
    examples: int = field(default=1024, metadata=within(1, 10**9))
    points: int = field(default=5, metadata=within(0, 10**6))
    probe_examples: int = 0
    attention: bool = False
    lengths: list[int] = field(default_factory=list)
    own_points: int = field(default=0, metadata=within(0, 10**6))
    own_examples: int = field(default=512, metadata=within(1, 10**9))
    task_points: Any = 0


@dataclass(frozen=True)
class FineTuning:
    """How a task is fine-tuned. `conf/finetune/default.yaml` explains the settings.

    `each`: {task: {"epochs", "lr", "head"}} overrides these for single tasks. `joint`: a `Joint`, or nothing.
    `probe`: a `Probe` that is trained in place of fine-tuning, or nothing.
    """

    ignored_settings: ClassVar[frozenset[str]] = frozenset({"keep", "points"})
    unset_values: ClassVar[Mapping[str, Any]] = {
        "each": {},
        "joint": {},
        "probe": {},
        "forgetting": False,
        "costs": False,
        "replay": 0.0,
        "replay_text": "pretraining",
        "format": "bert",
        "transfer_layers": None,
        "covers": None,
        "encoder": False,
        "target_masking": 0.7,
        "max_examples": None,
    }

    method: Any = None
    head: Any = None
    optimizer: Any = None
    lr_schedule: Any = None
    seeds: list[int] = field(default_factory=lambda: [0])
    ensemble: int = field(default=1, metadata=within(0, 10**4))
    transfer_layers: int | None = None
    epochs: int = field(default=3, metadata=within(0, 10**6))
    batch_size: int = field(default=32, metadata=within(1, 10**9))
    length: int = field(default=128, metadata=within(1, 10**6))
    covers: float | None = None
    target_length: int = field(default=64, metadata=within(1, 10**6))
    target_masking: float = 0.7
    clip: float | None = 1.0
    max_examples: int | None = field(default=None, metadata=within(2, 10**9))
    format: str = "bert"
    truncation: str = "head"
    label_smoothing: float = field(default=0.0, metadata=within(0, 1))
    focal: float = 0.0
    head_lr: float | None = None
    points: int = field(default=0, metadata=within(0, 10**6))
    keep: bool = False
    forgetting: bool = False
    costs: bool = False
    replay: float = 0.0
    replay_text: str = "pretraining"
    encoder: bool = False
    each: dict[str, Any] = field(default_factory=dict)
    joint: Any = field(default_factory=dict)
    probe: Any = field(default_factory=dict)

    def of(self, task: str) -> FineTuning:
        """The settings of one task."""
        settings = self.each.get(task, {})
        if not settings:
            return self
        return replace(
            self,
            optimizer=replace(self.optimizer, lr=settings.get("lr", self.optimizer.lr)),
            epochs=settings.get("epochs", self.epochs),
            head=settings.get("head", self.head),
        )


@dataclass(frozen=True)
class Paths:
    """The folders of the runs and of the cache."""

    runs: str
    cache: str


TOP_BOUNDS = {"members": (0, 10**4)}  # of the keys at the top of the config
GROUPS: dict[str, type] = {
    "batch": Batch,
    "trainer": Trainer,
    "profile": Profile,
    "evaluation": HeldOut,
    "finetune": FineTuning,
    "paths": Paths,
}


def register() -> None:
    """Give Hydra the types: `schema` in each group, and at the root those of the plain keys of a run."""
    from hydra.core.config_store import ConfigStore
    from omegaconf import BooleanNode, IntegerNode, OmegaConf, StringNode

    def typed(group: type) -> Any:
        node = OmegaConf.structured(group)
        OmegaConf.set_readonly(node, None)  # a frozen class would make a config that nobody can override
        return node

    store = ConfigStore.instance()
    for name, group in GROUPS.items() - {("paths", Paths)}:
        store.store(name="schema", group=name, node=typed(group))
    root: dict[str, Any] = {key: IntegerNode("???", is_optional=False) for key in ("seed", "replicate", "members")}
    root |= {key: StringNode("???", is_optional=False) for key in ("study", "arm")}
    root |= {key: StringNode("???") for key in ("scale", "sweep", "sweep_hash", "run_dir")}
    root |= {"untrained": BooleanNode("???", is_optional=False), "paths": typed(Paths)}
    store.store(name="schema", node=OmegaConf.create(root))
