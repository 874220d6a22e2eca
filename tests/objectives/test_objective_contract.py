"""What holds for every choice of the config group `objective`, which the tests find by its files.

What an objective needs of input, masking and model follows from what it says of itself.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fake_store import FakeVocabulary, random_store
from safetensors.numpy import load_file

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.config_names import choices, conf_dir
from paribus.models.network import Network, as_batch
from paribus.objectives.objective import Objective
from paribus.objectives.spec import ObjectiveSpec, Statistics
from paribus.training.description import Run
from paribus.training.learner import Learner
from paribus.training.run import run
from paribus.training.streams import training_examples

CHOICES = choices("objective")
SENTINELS = {"specials": (0, 1, 2, 3, 4, *range(900, 1000)), "sentinels": 100, "first_sentinel": 999}
SETTINGS = {
    "electra": ["objective.generator=0.5"],
    "mlm_sbo": ["objective.view.unit=span"],
    "several": ["input=segment_pair", "objective.tasks.capitalization=0", "objective.tasks.next=1"],
    "unilm": ["input=segment_pair"],
}


def needs(choice: str) -> list[str]:
    """The overrides of an objective, with all that it needs."""
    spec: ObjectiveSpec = build(compose(["scale=null", f"objective={choice}"]).objective)
    family = ["family=t5"] if spec.writes_text else []
    pairs = [] if spec.needed_pairs is None else ["input=segment_pair", f"input.pairs={spec.needed_pairs}"]
    attention = [] if spec.needed_attention is None else [f"model.attention={spec.needed_attention}"]
    noise = [] if spec.predicts_noise else ["masking=none"]
    spans = ["masking=geometric_span"] if spec.needs_spans else []
    bare = [] if spec.framed or spec.writes_text else ["input=windows"]
    vectors = ["model=word_vectors"] if spec.needs_static else []
    streams = ["model=xlnet_tiny", "masking=permutation_span"] if spec.needs_two_streams else []
    own = [*bare, *pairs, *attention, *noise, *spans, *SETTINGS.get(choice, [])]
    return [*vectors, *streams, *family, f"objective={choice}", *own]


class Made:
    """A small network and the objective on it, and batches of the examples that it reads."""

    def __init__(self, choice: str, seed: int = 3) -> None:
        own = needs(choice)
        model = ["model=t5_tiny" if "family=t5" in own else "model=bert_tiny"]
        size = ["model.hidden=32", "input.length=48"]
        size += [] if "model=word_vectors" in own else ["model.intermediate=48", "model.dropout=0"]
        self.run = Run.of(compose(["scale=null", *model, *own, *size]))
        stores = {"train": random_store(900), "validation": random_store(200, seed=9)}
        counts = np.bincount(stores["train"].ids, minlength=1000)
        sentinels: Any = SENTINELS if self.run.model.writes_text else {}
        self.vocabulary: Any = FakeVocabulary(1000, **sentinels, count_V=counts, text=stores["train"])
        self.network: Network = self.run.model.build(self.vocabulary, 3).eval()
        self.before = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}
        self.objective: Objective = self.run.objective.build(self.network, self.vocabulary, seed).eval()
        self.examples = training_examples(self.run, SimpleNamespace(stores=stores, vocabulary=self.vocabulary))  # type: ignore[arg-type]

    def batch(self, rows: list[int]) -> dict[str, Any]:
        batch = as_batch(self.examples.batch(0, np.array(rows)))
        return {**batch, "task": "mlm"} if self.run.objective.text_tasks else batch

    def losses(self, rows: list[int]) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = self.objective(self.network, self.batch(rows))[0]
        return found


@pytest.mark.parametrize("choice", CHOICES)
def test_its_file_says_what_it_is(choice: str) -> None:
    assert (conf_dir() / "objective" / f"{choice}.yaml").read_text().startswith("# ")


@pytest.mark.parametrize("choice", CHOICES)
def test_losses_are_sums_over_rows_and_have_what_they_are_divided_by(choice: str) -> None:
    made = Made(choice)
    whole, counts = made.losses(list(range(8))), made.batch(list(range(8)))["counts"]
    assert whole
    for name, loss in whole.items():
        halves = [made.losses(rows)[name] for rows in ([0, 1, 2], [3, 4, 5, 6, 7])]
        assert float(loss.detach()) == pytest.approx(float(sum(halves).detach()), rel=1e-4)
        _, _, counted = made.objective.denominators()[name].rpartition("/")  # behind the task's name, if there is one
        assert counts[counted] > 0
        assert made.objective.weights[name] > 0


@pytest.mark.parametrize("choice", CHOICES)
def test_initial_weights_follow_from_the_seed_and_leave_those_of_the_network(choice: str) -> None:
    one, again, other = Made(choice), Made(choice), Made(choice, seed=4)
    for made in (one, again, other):
        assert all(torch.equal(tensor, made.before[name]) for name, tensor in made.network.state_dict().items())
    weights = {name: tensor for name, tensor in one.objective.state_dict().items() if tensor.ndim > 1}
    assert all(torch.equal(tensor, again.objective.state_dict()[name]) for name, tensor in weights.items())
    shared = {tensor.data_ptr() for tensor in one.network.parameters()}
    own = [name for name, tensor in weights.items() if tensor.data_ptr() not in shared and tensor.any()]
    assert all(not torch.equal(weights[name], other.objective.state_dict()[name]) for name in own)


@pytest.mark.parametrize("choice", CHOICES)
def test_a_gradient_reaches_the_network_and_every_weight_of_the_heads_that_are_asked(choice: str) -> None:
    made = Made(choice)
    batch = made.batch(list(range(8)))
    sum(made.objective(made.network, batch)[0].values()).backward()
    assert made.network.table_VD.grad is not None
    for name, head in made.objective.heads_of(batch).items():
        for key, weight in head.named_parameters():
            assert weight.grad is None or weight.grad.isfinite().all(), (name, key)
        weights = list(head.parameters())  # none if it asks another head
        assert not weights or any(weight.grad is not None for weight in weights), name


@pytest.mark.parametrize("choice", CHOICES)
def test_training_costs_three_forward_passes_at_least(choice: str) -> None:
    made = Made(choice)
    counts = {name: float(count) for name, count in made.batch(list(range(8)))["counts"].items()}
    statistics = Statistics(counts, 48.0, made.vocabulary.size)
    forward = made.run.model.forward_flops(counts["input_tokens"], 48.0, statistics.predicted, counts["sequences"])
    assert made.run.objective.flops(statistics, made.run.model) >= 3 * forward > 0


CASES = {
    **{choice: needs(choice) for choice in CHOICES},
    "static": ["objective=mlm", "masking/schedule=copies", "masking.schedule.copies=2"],
    **{name: [f"input={name}"] for name in choices("input") if name not in ("windows", "segment_pair")},
}
LONG = [
    "trainer.max_steps=8",
    "trainer.max_epochs=null",
    "trainer.max_tokens=null",
    "batch.size=6",
    "profile.microbatch=2",
]
INSIDE = 3 * 5 + 2  # the second of three microbatches of step 6


@pytest.mark.slow
@pytest.mark.parametrize(("own", "workers"), [(own, 4 * (at % 2)) for at, own in enumerate(CASES.values())], ids=CASES)
def test_a_run_that_dies_inside_a_step_ends_with_the_same_bits(
    own: list[str], workers: int, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["tokenizer.vocab_size=100"] if "family=t5" in own else []
    every = [*arguments, *own, *words, *LONG, "logger=none"]
    whole = run(compose([*every, f"run_dir={tmp_path / 'whole'}"]))
    broken = compose(
        [*every, f"run_dir={tmp_path / 'broken'}", "profile.checkpoint_steps=3", f"profile.workers={workers}"]
    )
    backward, calls = Learner.manual_backward, 0

    def die_inside(self: Learner, *given: Any, **named: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == INSIDE:
            raise RuntimeError("the machine went away")
        backward(self, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "manual_backward", die_inside)
        with pytest.raises(RuntimeError, match="went away"):
            run(broken)
    assert calls == INSIDE
    assert (tmp_path / "broken" / "last.ckpt").is_file()
    resumed = run(broken)
    found, wanted = (load_file(folder / "model" / "model.safetensors") for folder in (resumed, whole))
    assert {name: found[name].tobytes() for name in found} == {name: wanted[name].tobytes() for name in wanted}
    assert (resumed / "metrics.jsonl").read_text() == (whole / "metrics.jsonl").read_text()
