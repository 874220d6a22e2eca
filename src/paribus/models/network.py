"""The interface of networks that heads, checkpoints, fine-tuning and training use."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd
from transformers import PretrainedConfig

from paribus.core.errors import UserError
from paribus.models.norms import Norm

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.spec import Shape

Batch = dict[str, Any]
State = (
    Any  # what a network with memory carries: tensors in dicts, lists, tuples, NamedTuples or dataclasses; None without
)
Std = Callable[[str], float]  # name of a parameter -> standard deviation of its initial weights


class Outputs(NamedTuple):
    """What a network gives its heads.

    Attributes:
        hidden_BLD: [B, L, D], the states after the last layer; [B, Q, D] if only some places are read.
        state: carried to the next step, if anything.
        summary_BD: [B, D], the summary of each row if it is not its first token.
        table_N: [B x L], the index of each flat position in `hidden_BLD`, if that holds only what is read.
        layers: [B, L, D] each, the states after the embeddings and after every layer, if the batch asks for them.
        summarize: given with `layers` by a network that summarizes rows; it summarizes other states of the same rows.
    """

    hidden_BLD: Tensor
    state: State = None
    summary_BD: Tensor | None = None
    table_N: Tensor | None = None
    layers: tuple[Tensor, ...] | None = None
    summarize: Callable[[Tensor, Batch], Tensor | None] | None = None

    def at(self, place_P: Tensor) -> Tensor:
        """[P, D]: the states at flat places of [B, L]."""
        at_P = place_P if self.table_N is None else self.table_N[place_P]
        return self.hidden_BLD.flatten(0, 1).index_select(0, at_P)

    @property
    def row_BD(self) -> Tensor:
        """[B, D]: what a row is summarized by: [CLS] unless the network says otherwise."""
        return self.hidden_BLD[:, 0] if self.summary_BD is None else self.summary_BD


class Network(nn.Module, ABC):
    """A network without heads. A subclass gives a table and a forward pass; the other methods have defaults.

    Attributes:
        spec: the settings that it was built from.
        vocabulary: of the tokens that it reads.
        width: of the states between layers.
        depth: how many layers are on top of each other; stacks side by side count once.
        backbone: the module whose weights `tensor_names` names in checkpoints; others get "network." before their name.
        norm_eps: epsilon of LayerNorms, which heads share: theirs are LayerNorms whatever the encoder's are.
        head_activation: the function in the head on tokens, by its name in `transformers`.
        head_unbiased: the parts of that head, "dense" and "norm", that have no bias.
        head_untied: whether heads on tokens have output tables of their own instead of the word embeddings.
        head_counts: whether their output biases begin at the logarithms of how frequent words are in the training text.
        logit_scale: what that head multiplies the products of its states and the table by.
        state_classes: NamedTuples and dataclasses of its state that do not stand in its module.
        gives_layers: whether the forward pass returns `Outputs.layers` if the batch asks for them.
        reads_in_order: whether the forward pass gives batches with `window_W`, windows of texts, to `read_in_order`.
    """

    backbone: Any
    norm_eps: float = 1e-12
    head_activation: str = "gelu"
    head_unbiased: frozenset[str] = frozenset()
    head_untied: bool = False
    head_counts: bool = False
    logit_scale: float = 1.0
    state_classes: ClassVar[tuple[type, ...]] = ()
    gives_layers: bool = False
    reads_in_order: bool = False

    def __init__(self, spec: Shape, vocabulary: Vocabulary, width: int, depth: int) -> None:
        super().__init__()
        self.spec, self.vocabulary, self.width, self.depth = spec, vocabulary, width, depth

    @property
    @abstractmethod
    def table_VD(self) -> nn.Parameter:
        """The word embeddings, [V, D or their own width], to which prediction heads are tied unless `head_untied`."""

    @abstractmethod
    def forward(self, batch: Batch, state: State = None) -> Outputs:
        """The states of a batch. `state` is what an earlier batch of the same rows left; None for the first batch.

        If the batch has `read_P`, flat places of [B, L], only these and the first of each row are read of the states,
        and a network may leave out the others. It has `predicts_tokens` if a head predicts tokens from the states. With
        `layers`, true, a network that `gives_layers` returns the states of all places after the embeddings and after
        each layer: heads on layers and probes read them.

        A network with memory forgets a row where `begins_B` is True. If batches have `begins_B` (`StreamMarks`), the
        learner detaches what the network leaves, passes it to the next step and keeps it in checkpoints. Batches
        without it, such as those of fine-tuning and of shuffled text, come without a state.
        """

    def summarize(self, hidden_BLD: Tensor, batch: Batch) -> Tensor | None:
        """[B, D], what rows with these states are summarized by; None for their first token."""
        return None

    def pick_rows(self, state: State, row_R: Tensor) -> State:
        """The part of `state` that these rows of a batch have left. Raises UserError for a network without
        `reads_in_order`.
        """
        raise UserError(f"{type(self).__name__} cannot read windows in order", "set finetune/head/windows=mean")

    def states(self, batch: Batch) -> list[Tensor]:
        """The states [B, L, D] of a batch after the embeddings and after each layer: `depth` + 1 of them.

        Raises UserError if the network does not give the states of single layers, or others than these.
        """
        self.require_layers("set finetune/head/layers=last")
        layers: tuple[Tensor, ...] = self({**batch, "layers": True}).layers or ()
        wanted = (*batch["ids_BL"].shape, self.width)
        shapes = [tuple(layer.shape) for layer in layers]
        if shapes != [wanted] * (self.depth + 1):
            odd = next((shape for shape in shapes if shape != wanted), wanted)
            kind, found = type(self).__name__, f"{len(layers)} states of shape {list(odd)}" if layers else "none"
            cause = f"{kind} returns {found} as Outputs.layers, not {self.depth + 1} of shape {list(wanted)}"
            raise UserError(cause, f"let {kind}.forward return those after the embeddings and after each layer")
        return list(layers)

    def require_layers(self, mend: str) -> None:
        """Raise UserError, with what to type, if the network does not give the states of single layers."""
        if not self.gives_layers:
            raise UserError(f"{type(self).__name__} does not give the states of single layers", mend)

    def require_depths(self, setting: str, mend: str) -> None:
        """Raise UserError, with what to type, if `depth_of` says of no parameter that it is inside a layer, so that
        this setting would do nothing.
        """
        if not any(self.depth_of(name) > 0 for name, _ in self.named_parameters()):
            kind = type(self).__name__
            cause = f"{setting} works layer by layer, but depth_of of {kind} puts no parameter into a layer"
            raise UserError(cause, f"write {kind}.depth_of, or {mend}")

    def watching_attention(self, keep: Callable[[Tensor, Tensor], None]) -> AbstractContextManager[None]:
        """A context in which every forward pass gives `keep`, layer by layer from below, the scores [B, H, L, L] of
        queries and keys, before keys are hidden, and the weights [B, H, L, L] of the values.

        Raises UserError if the network does not give them.
        """
        raise UserError(f"{type(self).__name__} does not give its attention", "set evaluation.attention=false")

    def vectors_VD(self) -> Tensor:
        """[V, D]: the word vectors, detached, from which a stage of another model may start."""
        return self.table_VD.detach()

    def writer(self, batch: Batch, most: int) -> Callable[[Tensor | None], Tensor]:
        """Returns one decoding step: from the last token [B] of each row (None in the first step) to the states [B, D].

        The states predict the next token. Call it at most `most` times. Raises UserError if the network cannot write.
        """
        raise UserError(f"{type(self).__name__} does not write text", "set model=t5_tiny")

    def std(self, name: str) -> float:
        """Standard deviation of the initial weights of a parameter."""
        return self.spec.initializer_range

    def rate(self, name: str) -> float:
        """Learning rate of a parameter, as a share of the optimizer's."""
        return 1.0

    def compile(self, *args: Any, **options: Any) -> None:
        """Compile in place what a step calls: `forward`. A network that calls its backbone alone may compile that."""
        super().compile(*args, **options)

    def depth_of(self, parameter: str) -> int:
        """0 for embeddings, i + 1 for layer i of a stack, counted from below, `depth` for what follows the last one.

        Weights that layers share count for the lowest of these layers. Methods of fine-tuning that treat layers
        differently, `trainer.layer_decay`, `finetune.transfer_layers` and `optimizer=muon` ask it.
        """
        return 0

    def sublayers(self) -> Iterator[tuple[str, Any]]:
        """("attention" or "ffn", a module whose `dropout` is the last before the residual sum), bottom to top.

        Adapters are put behind that dropout.
        """
        return iter(())

    def norms(self) -> Iterator[nn.Module]:
        """Every layer norm."""
        return (module for module in self.modules() if isinstance(module, nn.LayerNorm | nn.RMSNorm | Norm))

    def matrices(self) -> Iterator[tuple[str, str]]:
        """("query", "key", "value" or "dense", its name in the backbone) of the layers; shared ones once.

        LoRA updates these linear layers.
        """
        return iter(())

    def restore_sharing(self) -> None:
        """Restore weight sharing between layers after modules were added."""

    def remove_dropout(self) -> None:
        """Remove all dropout, that inside recurrent layers and attention of PyTorch included."""
        for module in self.modules():
            if isinstance(module, _DropoutNd):
                module.p = 0.0
            elif isinstance(module, nn.RNNBase | nn.MultiheadAttention):
                module.dropout = 0.0

    @property
    def head_weights(self) -> frozenset[str]:
        """Parameters of the network that a task's head consists of."""
        return frozenset()

    def parameter_count(self) -> int:
        """Weights without those of heads; shared ones count once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def checkpoint_config(self, head: nn.Module | None, pair: nn.Module | None) -> PretrainedConfig:
        """The content of `config.json` for a checkpoint with these heads."""
        settings: dict[str, Any] = {"vocab_size": self.vocabulary.size, "pad_token_id": self.vocabulary.pad}
        return PretrainedConfig(**settings)

    def tensor_names(self) -> dict[str, str]:
        """{name in the backbone: name in a checkpoint}; weights that layers share may have one name there."""
        return {name: f"backbone.{name}" for name in self.backbone.state_dict()}

    def owns(self, name: str) -> bool:
        """Whether a checkpoint's tensor of this name belongs to the backbone."""
        return name.startswith("backbone.")

    @property
    def head_parts(self) -> Mapping[str, str]:
        """{part of the head on tokens: its name in a checkpoint}; others get "head." before their name."""
        return {}

    @property
    def pair_parts(self) -> Mapping[str, str]:
        """{part of the head on pairs: its name in a checkpoint}."""
        return {"pooler": "pair.pooler", "classifier": "pair.classifier"}


def as_batch(arrays: dict[str, Any]) -> Batch:
    """Numpy arrays as tensors; `full` says that no row is padded; counts stay plain numbers, and `task` a name."""
    batch: Batch = {name: torch.from_numpy(a) for name, a in arrays.items() if isinstance(a, np.ndarray)}
    batch |= {name: text for name, text in arrays.items() if isinstance(text, str)}
    batch["full"] = bool((arrays["length_B"] == arrays["ids_BL"].shape[1]).all())
    batch["counts"] = {**arrays["counts"], "sequences": len(arrays["length_B"])}
    return batch


def find_real(length_B: Tensor, width: int) -> Tensor:
    """bool [B, L]: which places of rows of these lengths are not padding; L is `width`."""
    return torch.arange(width, device=length_B.device) < length_B[:, None]


def named_weights(module: nn.Module) -> dict[str, Tensor]:
    """{name: weight} of all parameters, shared ones once, and of the buffers that are part of the state."""
    kept = module.state_dict().keys()
    return {**dict(module.named_parameters()), **{name: b for name, b in module.named_buffers() if name in kept}}


@contextmanager
def recording(modules: Iterable[nn.Module]) -> Iterator[list[Tensor]]:
    """A context that lists the states which these modules return, in the order in which they are called. A network that
    is compiled calls no hooks; its copies are not compiled.

    `output_hidden_states` of `transformers` gives other states: those of T5 after dropout, and each kind its own first
    and last.
    """
    states: list[Tensor] = []

    def keep(_: nn.Module, __: object, output: Tensor | tuple[Tensor, ...]) -> None:
        states.append(output[0] if isinstance(output, tuple) else output)

    handles = [module.register_forward_hook(keep) for module in modules]
    try:
        yield states
    finally:
        for handle in handles:
            handle.remove()


def named_generator(seed: int, name: str) -> torch.Generator:
    """A CPU generator that depends only on its arguments."""
    key = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(key, "little") >> 1)


def seed_dropout(device: torch.device, seed: int) -> None:
    """Seed the generator that dropout draws from on this device.

    `torch.manual_seed` also queues a call, with its traceback, for every kind of device that is not there: about a
    millisecond each time, and memory that grows with the steps.
    """
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def initialize(module: nn.Module, seed: int, std: float | Std, keep: Iterable[nn.Parameter] = ()) -> None:
    """BERT's initial weights: N(0, std) for matrices, embeddings and vectors, 1 for scales of norms, 0 for their biases
    and those of the layers of torch and transformers, and for padding.

    A module sets others by the attribute `initial_values`: {its parameter's name: the number that fills it, or a tensor
    of its shape}. The forget gates of an LSTM begin at 1 (Jozefowicz et al. 2015, section 2.2). `std` may depend on the
    parameter's name; parameters in `keep` stay as they are. Arms whose parameters agree in name and shape start from
    the same bits, even if other parameters differ.
    """
    kept = set(map(id, keep))
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if id(parameter) in kept:
                continue
            place, _, own_name = name.rpartition(".")
            owner: Any = module.get_submodule(place)
            value = _initial_value(owner, own_name, parameter)
            if value is None:
                deviation = std(name) if callable(std) else std
                parameter.normal_(0.0, deviation, generator=named_generator(seed, name))
                continue
            parameter.copy_(torch.as_tensor(value))
            declared = own_name in getattr(owner, "initial_values", {})
            if isinstance(owner, nn.LSTM | nn.LSTMCell) and own_name.startswith("bias_ih") and not declared:
                parameter.chunk(4)[1].fill_(1.0)  # the gates are input, forget, cell, output
        for part in module.modules():
            if isinstance(part, nn.Embedding) and part.padding_idx is not None and id(part.weight) not in kept:
                part.weight[part.padding_idx].zero_()


def _initial_value(owner: nn.Module, name: str, parameter: nn.Parameter) -> float | Tensor | None:
    """What a parameter of `owner` is filled with; None if it is drawn.

    Only libraries' modules and norms have biases that are known to begin at 0: a vector of any other module, whatever
    its name, may be one that must not (XLNet's query vector, arXiv 1906.08237, section 2.3).
    """
    declared: Mapping[str, float | Tensor] = getattr(owner, "initial_values", {})
    if name in declared:
        return declared[name]
    if parameter.ndim > 1:
        return None
    norm = "Norm" in type(owner).__name__
    if norm and name == "weight":
        return 1.0
    bases = [base for base in type(owner).__mro__ if base is not nn.Module]
    known = norm or any(base.__module__.partition(".")[0] in ("torch", "transformers") for base in bases)
    return 0.0 if "bias" in name and known else None
