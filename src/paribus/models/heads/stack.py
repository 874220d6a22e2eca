"""The head of a task, from the settings of fine-tuning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from paribus.core.errors import UserError
from paribus.models.heads.head import Head
from paribus.models.heads.loss import Loss, RowLoss
from paribus.models.heads.rows import ClassificationHead
from paribus.models.heads.siamese import COSINE, Cosine, Linear, OnPairs, parts_of
from paribus.models.heads.wrappers import (
    COMBINATIONS,
    POOLED,
    POOLINGS,
    OnBiLSTM,
    OnLayers,
    OnPooled,
    OnTextCNN,
    OnWindows,
)
from paribus.models.network import Network, initialize

STD = 0.02  # of a head's initial weights


def check(settings: Any, layers: int) -> None:
    """Raise UserError for settings of fine-tuning that name no head, or layers that a model of so many has not."""
    loss_of(settings)
    for key, known in (("combine", COMBINATIONS), ("pooling", POOLINGS)):
        if getattr(settings, key) not in known:
            raise UserError(f"finetune.{key}={getattr(settings, key)} is unknown", f"use {', '.join(known)}")
    chosen = settings.layers
    if chosen is not None and not (chosen and all(-layers <= layer <= layers for layer in chosen)):
        raise UserError(
            f"finetune.layers={list(chosen)} does not fit a model of {layers} layers",
            f"give numbers from 0 (embeddings) to {layers}, or -1 (the last) to -{layers}",
        )
    if settings.head_lr is not None and settings.head_lr <= 0:
        raise UserError(f"finetune.head_lr={settings.head_lr} is not positive", "give a rate, or null")
    if settings.pooler == "pretrained" and (chosen is not None or settings.pooling == "cnn"):
        raise UserError("finetune.pooler=pretrained reads [CLS] of the last layer", "leave layers and pooling alone")
    _check_groups(settings)


def _check_groups(settings: Any) -> None:
    """The settings under which an example has several rows."""
    if settings.windows is not None:
        if settings.windows not in POOLED:
            raise UserError(f"finetune.windows={settings.windows} is unknown", f"use null, {', '.join(POOLED)}")
        if settings.siamese is not None:
            raise UserError("finetune.windows and finetune.siamese are both set", "set one of them to null")
        room = settings.length - 2
        if settings.stride is not None and not 1 <= settings.stride <= room:
            raise UserError(f"finetune.stride={settings.stride} does not fit windows of {room}", "give 1 to a window")
        if settings.most_windows < 1:
            raise UserError(f"finetune.most_windows={settings.most_windows} is below 1", "give a whole number")
    if settings.siamese is not None:
        parts_of(settings.siamese)
        if settings.pooler == "pretrained":
            raise UserError("finetune.siamese has no pooler", "set finetune.pooler=fresh")


def loss_of(settings: Any) -> Loss:
    """The loss that the settings ask for."""
    return Loss(float(settings.label_smoothing), float(settings.focal))


def row_head(
    settings: Any, encoder: Network, width: int, loss: RowLoss, seed: int, pooler: dict[str, Tensor] | None = None
) -> Head:
    """A new classifier of so many outputs (its pooler may be given) with what stands between it and the encoder:
    layers, BiLSTM, pooling, windows.

    Its initial weights depend on seed, name and shape alone.
    """
    states = _states_width(settings, encoder)
    read = OnTextCNN.width if settings.pooling == "cnn" else states
    classifier = ClassificationHead(read, width, settings.dropout, loss)
    head: Head = classifier
    if settings.windows is not None:
        head = OnWindows(settings.windows, read, settings.most_windows, head)
        initialize(head, seed, STD)
    initialize(classifier, seed, STD)  # the same bits whatever stands below
    if pooler is not None:
        classifier.pooler.load_state_dict(pooler)
    return _on_states(settings, encoder, _pooled(settings.pooling, states, head, seed), seed)


def pair_head(
    settings: Any, encoder: Network, width: int, loss: RowLoss, seed: int, span: tuple[float, float] | None
) -> Head:
    """A new head on two texts that are read apart. `span`: least and most of the labels where they are values, which
    the cosine of the embeddings is to order.
    """
    states = _states_width(settings, encoder)
    head: Head
    if settings.siamese == COSINE:
        head = Cosine(*(span or (0.0, 1.0)))
    else:
        read, parts = OnTextCNN.width if settings.pooling == "cnn" else states, parts_of(settings.siamese)
        head = Linear(read * len(parts), width, loss)
        initialize(head, seed, STD)
        head = OnPairs(parts, span is not None, head)
    return _on_states(settings, encoder, _pooled(settings.pooling, states, head, seed), seed)


def token_head(settings: Any, encoder: Network, make: Callable[[int], Head], seed: int) -> Head:
    """A new head that reads every token, made for states of a width, with what stands between it and the encoder:
    layers, BiLSTM. Its initial weights depend on seed, name and shape alone.
    """
    head = make(_states_width(settings, encoder))
    initialize(head, seed, STD)
    return _on_states(settings, encoder, head, seed)


def _layers(settings: Any, encoder: Network) -> list[int] | None:
    return None if settings.layers is None else [layer % (encoder.depth + 1) for layer in settings.layers]


def _states_width(settings: Any, encoder: Network) -> int:
    layers = _layers(settings, encoder)
    return encoder.width if layers is None else OnLayers.width(encoder, layers, settings.combine)


def _on_states(settings: Any, encoder: Network, head: Head, seed: int) -> Head:
    """The head on the states that the settings name."""
    layers = _layers(settings, encoder)
    if settings.bilstm:
        bilstm = OnBiLSTM(_states_width(settings, encoder), head)
        initialize(bilstm.lstm, seed, bilstm.std)
        head = bilstm
    return head if layers is None else OnLayers(encoder, layers, settings.combine, head)


def _pooled(kind: str, width: int, head: Head, seed: int) -> Head:
    if kind == "cls":
        return head
    if kind != "cnn":
        return OnPooled(kind, head)
    wrapped = OnTextCNN(width, head)
    initialize(wrapped.filters, seed, STD)
    return wrapped
