"""GPT-1's fine-tuning: its formats of rows, the tokens for them, and how many layers are transferred."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from choice_tables import Numbers
from small_finetuning import backbone, config

from paribus.core.build import build
from paribus.core.config import compose, plain
from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.data.tokens.tokenizer import Tokenizer
from paribus.data.tokens.trained import WordPiece
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.finetuning import saved
from paribus.models import checkpoint
from paribus.models.heads.choices import LinearClassifier, RowAnswer
from paribus.models.heads.head import Loss, TokenHead
from paribus.models.heads.vocabulary import MaskedLMHead
from paribus.models.network import Outputs
from paribus.runs.identity import meaning
from paribus.tasks.examples import ChoiceExample, Example
from paribus.tasks.types.classification import Classification
from paribus.tasks.types.multiple_choice import MultipleChoice
from paribus.tasks.types.regression import Regression
from paribus.training.description import Run
from paribus.training.finetuner import start_of
from paribus.training.replay import Replay, WholeRows
from paribus.training.run import run
from paribus.training.steps import task_batch

SPECIALS = (0, 1, 2, 3, 4, 57, 58, 59)
WITHOUT = Vocabulary(size=60, pad=0, unk=1, cls=2, sep=3, mask=4, specials=SPECIALS)
VOCABULARY = replace(WITHOUT, start=57, delimiter=58, extract=59)
NUMBERS: Any = Numbers()
LEFT = ["objective=clm", "masking=none", "model.attention=left"]
GPT = [*LEFT, "finetune.format=gpt", "finetune/head=linear", "tokenizer.delimiters=true"]
CLASSES = Classification(("no", "yes"))
SAME = Classification(("no", "yes"), symmetric=True)


def settings(**changes: Any) -> FineTuning:
    return FineTuning(head=LinearClassifier(), **{"format": "gpt", "length": 16, **changes})


def rows(kind: Any, *examples: Any, vocabulary: Vocabulary = VOCABULARY, **changes: Any) -> list[list[int]]:
    encoded = kind.encode(examples, NUMBERS, vocabulary, settings(**changes))
    batch = encoded.batch(np.arange(len(examples)), 1)
    assert not batch["part_BL"].any()
    return [ids[:length].tolist() for ids, length in zip(batch["ids_BL"], batch["length_B"], strict=True)]


def test_texts_stand_between_the_tokens_of_the_format() -> None:
    assert rows(CLASSES, Example("10 11", None, 0)) == [[57, 10, 11, 59]]
    assert rows(CLASSES, Example("10 11", "20", 0)) == [[57, 10, 11, 58, 20, 59]]
    assert rows(CLASSES, Example("10 11 12", "20 21", 0), length=6) == [[57, 10, 11, 58, 20, 59]]
    both = [[57, 10, 11, 58, 20, 59], [57, 20, 58, 10, 11, 59]]
    assert rows(SAME, Example("10 11", "20", 0)) == both
    assert rows(Regression(symmetric=True), Example("10 11", "20", 2.5)) == both
    asked = ChoiceExample("10 11", "20", ["30", "31 32"], 0)
    assert rows(MultipleChoice(("A", "B")), asked) == [[57, 10, 11, 20, 58, 30, 59], [57, 10, 11, 20, 58, 31, 32, 59]]


def ask(kind: Any, *examples: Example) -> tuple[Any, Any, Any, torch.Tensor]:
    """(a new head on a left-to-right model, what that gives it, the batch, the logits)."""
    encoder = build(config(*GPT).model).build(VOCABULARY, 0).eval()
    head = kind.make_head(settings(), encoder, 7).eval()
    batch = task_batch(kind.encode(examples, NUMBERS, VOCABULARY, settings()), np.arange(len(examples)))
    with torch.inference_mode():
        outputs = encoder(batch)
        return head, outputs, batch, head.logits(outputs, batch)


def test_the_head_reads_the_extract_token() -> None:
    for example in (Example("10 11", "20", 0), Example("10", None, 0)):
        head, outputs, batch, logits = ask(CLASSES, example)
        at = batch["ids_BL"][0].tolist().index(59)
        with torch.inference_mode():
            expected = head.classifier(outputs.hidden_BLD[:, at])
        assert torch.allclose(logits, expected, atol=1e-6)


def test_the_states_of_both_orders_are_added() -> None:
    pair, turned = Example("10 11", "20", 0), Example("20", "10 11", 0)
    head, outputs, _, logits = ask(SAME, pair, turned)
    assert torch.allclose(logits[0], logits[1], atol=1e-6)
    apart = ask(CLASSES, pair, turned)[-1]
    assert not torch.allclose(apart[0], apart[1], atol=1e-6)
    with torch.inference_mode():
        expected = head.head.classifier(outputs.row_BD[:1] + outputs.row_BD[1:2])
    assert torch.allclose(logits[:1], expected, atol=1e-6)


def test_all_options_of_an_example_lose_the_same_parts() -> None:
    head = LinearClassifier(dropout=0.5).for_rows(backbone(config()), RowAnswer(1, Loss()), 7).train()
    torch.manual_seed(0)
    dropped = head.logits(Outputs(torch.zeros(1), None, torch.ones(64, 3, 16)), {})[..., 0]
    assert torch.equal(dropped, dropped[:, :1].expand(64, 3))
    assert len(dropped[:, 0].unique()) > 32


def test_the_tokens_lie_on_top_of_the_vocabulary_and_are_kept(tmp_path: Path) -> None:
    texts = ["the old captain wrote a letter"] * 20
    usual, own = WordPiece(40), WordPiece(40, sentinels=2, delimiters=True)
    assert "delimiters" not in usual.identity()
    assert own.identity() != usual.identity()
    built = own.build(texts, tmp_path / "own").vocabulary
    assert (built.start, built.delimiter, built.extract) == (40, 41, 42)
    assert (built.first_sentinel, built.size) == (44, 45)
    assert {40, 41, 42} <= set(built.specials)
    assert Tokenizer.load(tmp_path / "own").vocabulary == built
    without = usual.build(texts, tmp_path / "plain").vocabulary
    assert (without.size, without.extract) == (40, -1)
    assert "extract" not in json.loads((tmp_path / "plain/vocabulary.json").read_text())


def test_a_format_and_a_symmetric_task_count_in_the_name_of_a_run_only_if_they_are_set() -> None:
    node = plain(compose(["scale=test", "task=mrpc", "tasks.mrpc.symmetric=false"]))
    new = {"format": "gpt", "symmetric": True, "transfer_layers": 1}
    for own, group in ((node["tasks"]["mrpc"], None), (node["finetune"], FineTuning)):
        counted = meaning(own, group).keys()
        assert not counted & new.keys()
        changed = meaning({name: new.get(name, value) for name, value in own.items()}, group).keys()
        assert changed - counted == own.keys() & new.keys()


def test_the_tokens_of_the_format_are_drawn_anew_and_nothing_else() -> None:
    cfg = config(*GPT, "model.initializer_range=0.5")
    encoder = build(cfg.model).build(VOCABULARY, 0)
    before = encoder.table_VD.detach().clone()
    one, again, other = (start_of(Run.of(cfg), encoder, seed).table_VD.detach() for seed in (1, 1, 2))
    new = [57, 58, 59]
    assert torch.equal(one, again)
    assert not torch.equal(one[new], other[new])
    assert float(one[new].std()) == pytest.approx(0.5, rel=0.4)
    assert torch.equal(before, encoder.table_VD.detach())
    kept = [token for token in range(60) if token not in new]
    assert torch.equal(one[kept], before[kept])
    assert not torch.isclose(one[new], before[new]).any()


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("kept", [None, 0, 1, 2])
def test_layers_above_those_that_are_transferred_have_initial_weights(kept: int | None, norm: str) -> None:
    chosen = "null" if kept is None else kept
    cfg = config(f"finetune.transfer_layers={chosen}", norm=norm)
    described = Run.of(cfg)
    encoder = described.model.build(WITHOUT, described.root_seed)
    initial = {name: parameter.detach().clone() for name, parameter in encoder.named_parameters()}
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(1.0)
    own = start_of(described, encoder, 3)
    for name, parameter in own.named_parameters():
        above = kept is not None and own.depth_of(name) > kept
        expected = initial[name] if above else initial[name] + 1.0
        assert torch.equal(parameter, expected), name


@pytest.fixture
def pairs(tmp_path: Path) -> list[str]:
    """Overrides of a task of pairs in a folder."""
    made = [
        {"sentence1": f"a red house {n}", "sentence2": f"the river {n % 3}", "label": n % 2, "idx": n}
        for n in range(24)
    ]
    for split, part in (("train", made[:16]), ("validation", made[16:])):
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    return ["task=mrpc", f"tasks.mrpc.path={tmp_path}"]


def test_the_auxiliary_loss_is_a_mean_of_the_means_of_rows() -> None:
    class Given(TokenHead):
        """Gives the token 1 these losses in nats, read as states."""

        def scores(self, hidden_PD: torch.Tensor) -> torch.Tensor:
            return torch.cat([hidden_PD.exp().sub(1).log(), torch.zeros_like(hidden_PD)], dim=-1)

    losses_BL = torch.tensor([[2.0, 1.0, 3.0, 9.0], [4.0, 2.0, 9.0, 9.0]])
    batch = {"ids_BL": torch.ones(2, 4, dtype=torch.int64), "length_B": torch.tensor([4, 3])}
    found = WholeRows(Given())(Outputs(losses_BL[..., None]), batch)
    assert float(found) / 2 == pytest.approx(2.5)  # not 2.4, the mean over tokens


def test_the_auxiliary_loss_is_asked_of_the_rows_of_every_option() -> None:
    encoder = build(config(*GPT).model).build(VOCABULARY, 0).eval()
    kind, words = MultipleChoice(("A", "B")), MaskedLMHead(encoder)
    examples = [ChoiceExample("10 11", "20", ["30", "31 32"], 0), ChoiceExample("12", "21", ["33", "34"], 1)]
    batch = task_batch(kind.encode(examples, NUMBERS, VOCABULARY, settings()), np.arange(2))
    objective = Replay(None, encoder, words, 0.5).objective(kind.make_head(settings(), encoder, 7), encoder).eval()
    assert objective.divisors(batch["counts"]) == {"task": 2, "replay": 4}
    with torch.inference_mode():
        losses, _ = objective(encoder, batch)
        expected = 0.0
        for ids, length in zip(batch["ids_BL"], batch["length_B"], strict=True):
            row = {"ids_BL": ids[None, :length], "length_B": length[None], "full": True}
            logits = words.scores(encoder(row | {"part_BL": torch.zeros(1, length, dtype=torch.int64)}).hidden_BLD[0])
            expected += float(torch.nn.functional.cross_entropy(logits[:-1], ids[1:length]))
    assert float(losses["replay"]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("text", ["pretraining", "task", "rows"])
def test_a_run_fine_tunes_as_gpt_with_its_auxiliary_loss(arguments: list[str], pairs: list[str], text: str) -> None:
    further = [
        "finetune.replay=0.5",
        f"finetune.replay_text={text}",
        "finetune.transfer_layers=1",
        "finetune.keep=true",
    ]
    cfg = compose([*arguments, *pairs, *GPT, *further])
    folder = run(cfg)
    record = json.loads((folder / "result.json").read_text())
    assert 0 <= record["task_runs"][0]["metrics"]["accuracy"] <= 1
    described = Run.of(cfg)
    encoder = described.model.build(described.data().vocabulary, 0)
    checkpoint.load(encoder, folder / "model")
    kept = saved.load(folder / "tuned/mrpc-0.safetensors", encoder)
    assert type(kept.head).__name__ == "OnSum"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ["tokenizer.delimiters=false"],
            "the vocabulary has no <start>, <delimiter> and <extract>: set tokenizer.delim",
        ),
        (["finetune.format=t5"], "finetune.format=t5 is unknown: use bert or gpt"),
        (["finetune/head=siamese"], "finetune/head asks for others: set finetune/head=linear"),
        (["finetune/head/windows=mean"], "finetune/head asks for others: set finetune/head=linear"),
        (["objective=mlm", "masking=bernoulli", "model.attention=full"], "set finetune/head/pooling=sep"),
        (
            [
                *("objective=mlm", "masking=bernoulli", "model.attention=full", "finetune.format=bert"),
                *("finetune.replay=0.5", "finetune.replay_text=rows"),
            ],
            "finetune.replay_text=rows is for a left-to-right model: set finetune.replay_text=task",
        ),
        (["finetune.transfer_layers=3"], "finetune.transfer_layers=3, but the model has 2 layers"),
        (["finetune.transfer_layers=-1"], "finetune.transfer_layers=-1 is out of bounds: give a number from 0"),
        (["finetune.transfer_layers=1", "model.sharing=all"], "but the layers share weights"),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    arguments: list[str], pairs: list[str], change: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message) as error:
        run(compose([*arguments, *pairs, *GPT, *change]))
    assert "\n" not in str(error.value)


def test_tasks_without_a_row_for_each_text_have_no_format(arguments: list[str]) -> None:
    described = Run.of(compose([*arguments, *GPT, "task=squad_v1"]))
    with pytest.raises(UserError, match=r"finetune\.format is set, but it does nothing in tasks\.squad_v1"):
        described.task_type("squad_v1").check_settings(described.finetune, "tasks.squad_v1")
