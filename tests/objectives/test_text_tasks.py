"""Tasks on the text itself: their labels, the turns they take, and what stages hand on."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_store import FakeStore, FakeVocabulary, random_store, store_of
from safetensors.torch import load_file
from stories import story

from paribus.core.config import compose
from paribus.core.noise import Noise
from paribus.corruption.collators.collator import RowLabels, TokenLabels
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples
from paribus.corruption.masking.whole_row import NoNoise
from paribus.corruption.views.replace import Unchanged
from paribus.data.annotators import Capitals
from paribus.data.formats.full_sentences import DocSentences
from paribus.data.formats.input_format import Segments
from paribus.data.formats.pairs import NEAR, RANDOM, SegmentPair
from paribus.data.formats.reordered import Reordered, count_classes, list_orders
from paribus.objectives.text_tasks import TokenDocument
from paribus.sweeps.sweep import arm_overrides
from paribus.sweeps.sweep_file import load
from paribus.tasks.text_stream import TaskTurns
from paribus.training.budget import plan_of
from paribus.training.description import Run
from paribus.training.run import run

ORDERS = {1: 1, 2: 3, 3: 9, 4: 33}


def draw(ids: Any) -> Noise:
    return Noise.of(3, (0,), ids)


def plain(store: Any, input_format: Any, collator: Any) -> Examples:
    vocabulary: Any = FakeVocabulary()
    length = input_format.length
    return Examples(store, input_format, Corruption(NoNoise(), Unchanged()), collator, vocabulary, 0, length)


@pytest.fixture
def cased(arguments: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A run of seconds over several tasks; some sentences of the text are capitalized, and words recur."""
    folder = tmp_path_factory.mktemp("cased")
    for split, first in (("train", 0), ("validation", 100)):
        texts = "\n\n".join(f"{story(n)} {story(n, 3)}" for n in range(first, first + 40))
        (folder / f"{split}.txt").write_text(texts + "\n")
    return [*arguments, f"corpus.path={folder}", "objective=several"]


def turns(asked: list[str]) -> tuple[TaskTurns, int]:
    own = Run.of(compose(asked))
    plan, steps = plan_of(own, own.data())
    assert isinstance(plan, TaskTurns)
    return plan, steps


def test_there_are_as_many_classes_as_orders() -> None:
    for parts, classes in ORDERS.items():
        assert count_classes(parts) == classes == len(list_orders(parts))
    assert list_orders(3) == [(0,), (0, 1), (1, 0), (0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]


def test_a_reordered_row_has_the_sentences_of_the_row_in_the_order_of_its_class() -> None:
    store = random_store(4000, mean=4)
    moved, still = (kind(64).index(store, 64, draw) for kind in (Reordered, DocSentences))
    assert (moved.length_N <= 64).all()
    rows = np.arange(400)
    found, own = moved.segments(rows), still.segments(rows)
    assert isinstance(found, Segments)
    assert isinstance(own, Segments)
    assert found.label_B is not None
    often: Counter[int] = Counter()
    for row, label in enumerate(found.label_B.tolist()):
        read, stood = (part.start_S[part.row_S == row] for part in (found, own))
        assert sorted(read) == sorted(stood)
        breaks = 1 + int((np.diff(np.argsort(np.argsort(read))) != 1).sum())
        assert breaks <= len(list_orders(3)[label])
        assert (label == 0) <= (read == stood).all()
        often[label] += len(stood) >= 3
    shares = np.array([often[label] for label in range(9)]) / sum(often.values())
    assert np.abs(shares - 1 / 9).max() < 0.07


def test_distance_tells_neighbors_from_the_rest_of_a_document_and_from_other_documents() -> None:
    store = random_store(20_000, mean=6)
    index = SegmentPair(64, "distance", short_seq_prob=0.0).index(store, 64, draw)
    edge, bounds = store.sentence_start, store.document_start
    document_N2 = np.searchsorted(bounds, np.searchsorted(edge, index.start_N2, side="right") - 1, side="right") - 1
    label_N, same_N = index.label_N, document_N2[:, 0] == document_N2[:, 1]
    assert same_N[label_N == 0].all()
    assert same_N[label_N == NEAR].all()
    assert not same_N[label_N == RANDOM].any()
    end_N2 = index.start_N2 + index.length_N2
    near_N = label_N == NEAR
    assert ((end_N2[:, 0] <= index.start_N2[:, 1]) | (end_N2[:, 1] <= index.start_N2[:, 0]))[near_N].all()
    assert index.report["random_rate"] == pytest.approx(1 / 3, abs=0.02)
    assert 0.05 < index.report["near_rate"] <= 0.34


def test_a_token_recurs_if_another_sentence_of_its_document_has_it() -> None:
    store = store_of([[3, 2], [2, 2]])
    ids = np.array([7, 7, 8, 8, 9, 7, 9, 9, 5])
    found = TokenDocument().store(_with(store, ids))
    assert found.annotated[np.arange(9)].tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 0]
    assert found.annotated[np.array([6, 2])].tolist() == [1, 1]


def _with(store: FakeStore, ids: Any) -> FakeStore:
    return FakeStore(ids, store.word_start, store.sentence_start, store.document_start)


def test_words_with_capitals_are_found() -> None:
    text = "The iPhone of ÅSA, not e-mail."
    (spans,) = Capitals().spans([text])
    assert [text[a:b] for a, b in spans] == ["The", "iPhone", "ÅSA"]


def test_tokens_are_labeled_and_special_ones_are_not() -> None:
    store = random_store(200)
    ids = np.random.default_rng(0).integers(5, 200, len(store.ids))
    arrays = plain(TokenDocument().store(_with(store, ids)), DocSentences(64), TokenLabels()).batch(0, [0, 3])
    special_BL = np.isin(arrays["ids_BL"], (0, 1, 2, 3, 4))
    assert ((arrays["tag_BL"] == -1) == special_BL).all()
    assert {0, 1} <= set(arrays["tag_BL"].ravel().tolist())
    assert arrays["counts"]["words"] == (~special_BL).sum()
    assert arrays["counts"]["predicted"] == 0


def test_rows_are_labeled() -> None:
    arrays = plain(random_store(300), SegmentPair(64, "distance"), RowLabels()).batch(0, np.arange(8))
    assert set(arrays["label_B"].tolist()) <= {0, 1, 2}
    assert arrays["counts"]["rows"] == 8


def test_every_cycle_has_the_steps_of_each_task(cased: list[str]) -> None:
    shares = {"mlm": 2, "capitalization": 3, "token_document": 0, "distance": 1, "reordering": 1, "order": 1}
    plan, steps = turns(
        [*cased, *(f"objective.tasks.{name}={n}" for name, n in shares.items()), "trainer.max_steps=24"]
    )
    assert steps == 24
    names = [_task(plan, step) for step in range(24)]
    for cycle in range(3):
        assert Counter(names[8 * cycle : 8 * cycle + 8]) == {name: n for name, n in shares.items() if n}
    assert names[:8] != names[8:16]
    _, steps = turns([*cased, "trainer.max_steps=null", "trainer.max_tokens=2000"])
    tokens = [
        sum(int(plan.examples.lengths(epoch)[rows].sum()) for epoch, rows in plan.blocks(step)) for step in range(24)
    ]
    assert 2000 / max(tokens) <= steps <= 2000 / min(tokens) + 1


def _task(plan: TaskTurns, step: int) -> str:
    ((epoch, rows),) = plan.blocks(step)
    return str(plan.examples.batch(epoch, rows)["task"])


def test_a_task_alone_is_the_masked_lm(cased: list[str]) -> None:
    none = [f"objective.tasks.{name}=0" for name in ("capitalization", "token_document", "distance", "reordering")]
    alone, plain = (record(run(compose(asked)))["metrics"] for asked in ([*cased, *none], [*cased, "objective=mlm"]))
    assert alone == plain


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


CONTINUAL = {  # ERNIE 2, table 1: thousands of steps of each task in the stages; our three tasks
    "mlm": (20, 10, 10),
    "capitalization": (0, 30, 10),
    "token_document": (0, 0, 40),
}


def test_a_continual_schedule_gives_each_task_its_steps_and_hands_on_heads(cased: list[str]) -> None:
    stages = ["", "stages.second.", "stages.third."]
    asked = [*cased, "objective.tasks.distance=0", "objective.tasks.reordering=0"]
    for at, stage in enumerate(stages):
        steps = {name: counts[at] // 10 for name, counts in CONTINUAL.items()}
        plus = "+" if stage else ""
        asked += [f"{plus}{stage}objective.tasks.{name}={n}" for name, n in steps.items()]
        asked += [f"{plus}{stage}trainer.max_steps={sum(steps.values())}"]
    folder = run(compose(asked))
    found = record(folder)
    read = [stage["realised"]["sources"] for stage in found["stages"]]
    steps = [sum(source["sequences"] for source in stage.values()) // 4 for stage in read]
    assert steps == [2, 4, 6]
    each = {name: sum(stage.get(name, {"sequences": 0})["sequences"] for stage in read) // 4 for name in CONTINUAL}
    assert each == {"mlm": 4, "capitalization": 4, "token_document": 4}
    heads = [
        load_file(path / "heads.safetensors") for path in (folder / "stages" / "second" / "model", folder / "model")
    ]
    name = "capitalization.classifier.weight"
    assert name in heads[0]
    moved = (heads[1][name] - heads[0][name]).abs().max()
    assert 0 < moved < 0.02  # one more step, not another initial weight


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (["+objective.tasks.sentiment=1"], "objective.tasks.sentiment is not a task on text"),
        (["objective.tasks.mlm=-1"], "objective.tasks.mlm=-1"),
        (["objective.tasks.mlm=0.5"], "objective.tasks.mlm=0.5"),
        (["tokenizer.lowercase=false"], "capitalization asks for capital letters, which the tokenizer shows"),
        (["masking=annotated_span"], "masking and objective both need an annotated text"),
        (
            [
                f"objective.tasks.{name}=0"
                for name in ("mlm", "capitalization", "token_document", "distance", "reordering")
            ],
            "objective.tasks has no task with a step",
        ),
    ],
)
def test_what_is_no_task_on_text_is_told(
    cased: list[str], bad: list[str], said: str, refused_run: Callable[..., str]
) -> None:
    assert said in refused_run(*cased, *bad)


def test_several_tasks_resume_to_the_same_bits(
    cased: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from paribus.core.processes import Stopped
    from paribus.training import callbacks

    asked = [*cased, "trainer.max_steps=12", "profile.checkpoint_steps=5", "profile.workers=0"]
    whole = record(run(compose(asked)))
    other = [*asked, f"paths.runs={tmp_path / 'stopped'}"]
    count = iter(range(1000))
    monkeypatch.setattr(callbacks, "asked_to_stop", lambda: signal.SIGTERM if next(count) == 6 else None)
    with pytest.raises(Stopped):
        run(compose(other))
    monkeypatch.setattr(callbacks, "asked_to_stop", lambda: None)
    assert record(run(compose([*other, "profile.workers=2"])))["metrics"] == whole["metrics"]


@pytest.mark.parametrize("scale", ["test", "smoke", "cpu", "gpu", "paper"])
def test_every_schedule_gives_each_task_equally_many_steps(scale: str) -> None:
    """ERNIE 2, section 4.2: 50 thousand steps of each task; the continual stages take 20, 40, 60 and 80."""
    sweep = load("ernie2_continual")
    for arm in sweep.arms:
        steps = Counter[str]()
        stages = []
        for stage in Run.of(compose(list(arm_overrides(sweep, scale, arm)))).chain:
            stages.append(own := stage.trainer.max_steps or 0)
            turns = stage.objective.text_tasks
            steps.update({task: own * count / sum(turns.values()) for task, count in turns.items()})
        assert set(steps) == {"mlm", "capitalization", "token_document", "reordering"}
        assert len(set(steps.values())) == 1
        assert arm != "continual" or [each / stages[0] for each in stages] == [1, 2, 3, 4]
        assert scale != "paper" or set(steps.values()) == {50_000}
