"""Checkpoints of any kind with a masked-LM class in `transformers`: the same states, logits and files as theirs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AlbertForPreTraining, AutoConfig, AutoModel, AutoModelForMaskedLM

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models import checkpoint
from paribus.models.any_encoder import KINDS
from paribus.models.heads.rows import PairHead
from paribus.models.heads.vocabulary import MaskedLMHead
from paribus.models.pretrained import Pretrained
from paribus.training.run import run

VOCABULARY = Vocabulary(size=97, pad=1, unk=3, cls=0, sep=2, mask=4, specials=(0, 1, 2, 3, 4))
SHAPE = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "pad_token_id": 1}
SIZES = {"intermediate_size": 64, "max_position_embeddings": 42, "embedding_size": 16}
OWN = {"distilbert": {"hidden_dim": 64, "max_position_embeddings": 40}, "modernbert": {"global_attn_every_n_layers": 2}}


def save(kind: str, folder: Path, **further: Any) -> Any:
    torch.manual_seed(5)
    config = AutoConfig.for_model(kind, **{**SHAPE, **OWN.get(kind, SIZES), **further})
    theirs: Any = AutoModelForMaskedLM.from_config(config).eval()
    for parameter in theirs.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    theirs.save_pretrained(folder)
    return theirs


def make_rows() -> dict[str, Any]:
    ids_BL = torch.randint(5, 97, (3, 11), generator=torch.Generator().manual_seed(1))
    length_B = torch.tensor([11, 7, 4])
    ids_BL[torch.arange(11)[None] >= length_B[:, None]] = 1
    return {"ids_BL": ids_BL, "length_B": length_B, "part_BL": torch.zeros_like(ids_BL), "full": False}


@pytest.mark.parametrize("kind", KINDS)
def test_states_head_and_files_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    theirs, spec, batch = save(kind, tmp_path / "a"), Pretrained(str(tmp_path / "a")), make_rows()
    network = spec.build(VOCABULARY, 0).eval()
    real_BL = batch["ids_BL"] != 1
    head = MaskedLMHead(network)
    assert spec.fill(network, head)
    with torch.inference_mode():
        expected = theirs(batch["ids_BL"], attention_mask=real_BL.long(), output_hidden_states=True)
        outputs = network(batch)
        torch.testing.assert_close(
            outputs.hidden_BLD[real_BL], theirs.base_model(batch["ids_BL"], real_BL.long())[0][real_BL]
        )
        logits_PV = head.scores(outputs.hidden_BLD[0])
    torch.testing.assert_close(logits_PV, expected.logits[0], rtol=1e-5, atol=1e-5)
    checkpoint.save(network, head, tmp_path / "b")
    again = AutoModelForMaskedLM.from_pretrained(tmp_path / "b").eval()
    torch.testing.assert_close(again(batch["ids_BL"]).logits, theirs(batch["ids_BL"]).logits)


@pytest.mark.parametrize("kind", KINDS)
def test_layers_are_found(kind: str, tmp_path: Path) -> None:
    save(kind, tmp_path)
    network = Pretrained(str(tmp_path)).build(VOCABULARY, 0)
    depths = {network.depth_of(name) for name, _ in network.backbone.named_parameters()}
    assert {0, 1} <= depths <= {0, 1, 2, 3}
    assert len(depths) >= (2 if kind == "albert" else 4)  # ALBERT's layers share their weights


@pytest.mark.parametrize("kind", KINDS)
def test_flops_are_those_of_the_matrices(kind: str, tmp_path: Path) -> None:
    theirs, spec = save(kind, tmp_path), Pretrained(str(tmp_path))
    inner = theirs.base_model.get_submodule(spec.shape.facts.stack)
    uses = 3 if kind == "albert" else 1
    weights = uses * sum(own.numel() for own in inner.parameters() if own.ndim == 2)
    per_token = spec.forward_flops(40, 40) / 40
    assert 2 * weights <= per_token <= 2.5 * weights + 4 * 3 * 40 * 32 * 4  # attention, projections of embeddings


def test_dropout_and_positions_are_the_checkpoint_s_unless_asked(tmp_path: Path) -> None:
    save("distilbert", tmp_path, dropout=0.3)
    network = Pretrained(str(tmp_path)).build(VOCABULARY, 0)
    rates = {part.p for part in network.modules() if isinstance(part, torch.nn.Dropout)}
    assert 0.3 in rates
    other = Pretrained(str(tmp_path), dropout=0.0, attention_dropout=0.0).build(VOCABULARY, 0)
    assert {part.p for part in other.modules() if isinstance(part, torch.nn.Dropout)} == {0.0}
    with pytest.raises(UserError, match=r"input\.length=41 exceeds the checkpoint's 40 positions"):
        Pretrained(str(tmp_path)).check_length(41, "input.length")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_summarized_as_the_checkpoint_was_trained(kind: str, tmp_path: Path) -> None:
    save(kind, tmp_path)
    assert Pretrained(str(tmp_path)).pooling == "cls"
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    assert Pretrained(str(tmp_path)).pooling == "mean"


@pytest.mark.parametrize("kind", ["albert", "camembert", "ernie", "mpnet", "xlm-roberta"])
def test_the_pooler_is_the_checkpoint_s_and_stays_beside_the_network(kind: str, tmp_path: Path) -> None:
    theirs = AutoModel.from_config(AutoConfig.for_model(kind, **{**SHAPE, **OWN.get(kind, SIZES)}))
    theirs.save_pretrained(tmp_path / "a")
    spec = Pretrained(str(tmp_path / "a"))
    network = spec.build(VOCABULARY, 0)
    found = spec.pooler(network, 0)
    own = theirs.pooler if kind == "albert" else theirs.pooler.dense
    assert found is not None
    assert torch.equal(found["weight"], own.weight)
    checkpoint.save(network, None, tmp_path / "b", None, found)
    checkpoint.load(network, tmp_path / "b")
    assert torch.equal(checkpoint.load_pooler(network, tmp_path / "b")["weight"], own.weight)


def test_albert_was_trained_on_the_order_of_segments(tmp_path: Path) -> None:
    theirs = AlbertForPreTraining(AutoConfig.for_model("albert", **SHAPE, **SIZES)).eval()
    theirs.save_pretrained(tmp_path)
    spec, batch = Pretrained(str(tmp_path)), make_rows()
    assert spec.content()["pairs"] == "order"  # runs that took no head from it have another name
    network, head = spec.build(VOCABULARY, 0).eval(), PairHead(SHAPE["hidden_size"])
    assert not spec.fill_pairs(network, head, "next")
    assert spec.fill_pairs(network, head, "order")
    with torch.inference_mode():
        expected = theirs(batch["ids_BL"], (batch["ids_BL"] != 1).long()).sop_logits
        torch.testing.assert_close(head.logits(network(batch), batch), expected, rtol=1e-4, atol=1e-5)


def test_what_we_cannot_read_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "reformer"}))
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(UserError, match=r"model_type reformer: give a checkpoint of albert, bert, camembert"):
        _ = Pretrained(str(tmp_path)).hidden
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "electra", **SHAPE, "hidden_act": "none"}))
    with pytest.raises(UserError, match="transformers makes no electra"):
        _ = Pretrained(str(tmp_path)).hidden


@pytest.fixture
def distilled(arguments: list[str], tmp_path: Path) -> list[str]:
    """Overrides that begin from a DistilBERT which reads the tokenizer of a run."""
    first = run(compose([*arguments, "trainer.max_steps=1"])) / "model"
    words = json.loads((first / "config.json").read_text())["vocab_size"]
    folder = tmp_path / "theirs"
    save(
        "distilbert",
        folder,
        vocab_size=words,
        pad_token_id=json.loads((first / "config.json").read_text())["pad_token_id"],
    )
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if (first / name).is_file():
            (folder / name).write_bytes((first / name).read_bytes())
    given = [text for text in arguments if not text.startswith("tokenizer.")]
    return [
        *given,
        "model=pretrained",
        "tokenizer=pretrained",
        f"model.name={folder}",
        f"tokenizer.name={folder}",
        "input.length=32",
    ]


def test_it_is_trained_further_and_fine_tuned(distilled: list[str], task_folder: Path) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune/method=layerwise_decay", "finetune.length=32"]
    folder = run(compose([*distilled, *task, "trainer.max_steps=2"]))
    record = json.loads((folder / "result.json").read_text())
    assert record["metrics"].keys() >= {"mlm_loss", "sst2/accuracy"}
    assert record["budget"]["flops"] > 0
    config = json.loads((folder / "model" / "config.json").read_text())
    assert config["architectures"] == ["DistilBertForMaskedLM"]
    again = run(compose([*distilled, f"model.name={folder}", f"tokenizer.name={folder}", "trainer.max_steps=0"]))
    assert json.loads((again / "result.json").read_text())["metrics"]["mlm_loss"] == record["metrics"]["mlm_loss"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("finetune/method=adapters", "adapters goes inside the layers"),
        ("finetune/method=lora", "lora goes inside the layers"),
        ("objective=unilm", "takes no attention mask per row|take no attention mask per row"),
        ("objective=clm", "model.attention=full"),
        ("objective=electra", "a generator needs an encoder of ours"),
    ],
)
def test_what_needs_the_inside_of_layers_is_refused(
    override: str, message: str, distilled: list[str], task_folder: Path
) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.length=32"]
    with pytest.raises(UserError, match=message):
        run(compose([*distilled, *task, override, *(["masking=none"] if override == "objective=clm" else [])]))
