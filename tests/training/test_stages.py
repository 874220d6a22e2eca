"""A run of several stages: each starts from the weights of the one before."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file, save_file
from stories import story

from paribus.core.config import compose
from paribus.reports.tables.curves import read_curves
from paribus.runs.folder import RunFolder
from paribus.runs.store import keep
from paribus.training.budget import planned
from paribus.training.description import Run
from paribus.training.learner import Learner
from paribus.training.run import run
from paribus.training.timing import seconds

STEPS = "trainer.max_steps=3"
EARLIER = Path("stages", "pretraining")
TASK_TEXT = "finetune.replay_text=task"
WHOSE = ("finetune.replay_text=pretraining", "finetune.replay_text=further")
SPLITS = ("train", "validation")
FURTHER = ["+stages.further.trainer.max_steps=2", "+masking@stages.further.masking=whole_word"]


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def weights(folder: Path) -> dict[str, bytes]:
    return {name: tensor.tobytes() for name, tensor in load_file(folder / "model" / "model.safetensors").items()}


@pytest.fixture
def first(arguments: list[str]) -> list[str]:
    return [*arguments, STEPS]


@pytest.fixture
def two(first: list[str]) -> list[str]:
    return [*first, *FURTHER]


@pytest.fixture
def other_text(tmp_path: Path) -> Path:
    """Further text of the user."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "train.txt").write_text("\n\n".join(story(n, 20) for n in range(200, 230)) + "\n")
    (other / "validation.txt").write_text("\n\n".join(story(n, 20) for n in range(300, 306)) + "\n")
    return other


def test_a_stage_begins_where_the_one_before_ended(first: list[str]) -> None:
    folder = run(compose([*first, "+stages.further.trainer.max_steps=0"]))
    alone = run(compose(first))
    assert weights(folder) == weights(folder / "stages" / "pretraining") == weights(alone)


def test_a_last_stage_without_steps_keeps_the_own_loss_of_the_one_before(first: list[str]) -> None:
    points = "evaluation.own_points=2"
    folder = run(compose([*first, points, "+stages.further.trainer.max_steps=0"]))
    assert record(folder)["own"] == record(run(compose([*first, points])))["own"]
    trained = record(run(compose([*first, points, "+stages.further.trainer.max_steps=2"])))
    assert trained["own"]["loss"] != record(folder)["own"]["loss"]
    assert [stage["own"] for stage in trained["stages"]] == [record(folder)["own"], trained["own"]]


def test_budgets_and_statistics_are_of_each_stage_and_in_sum(two: list[str]) -> None:
    folder, plan = run(compose(two)), planned(Run.of(compose(two)))
    found = record(folder)
    stages = found["stages"]
    assert [(stage["stage"], stage["budget"]["steps"]) for stage in stages] == [("pretraining", 3), ("further", 2)]
    assert found["budget"]["steps"] == 5 == plan["steps"]
    assert found["budget"]["input_tokens"] == sum(s["budget"]["input_tokens"] for s in stages) == plan["tokens"]
    assert found["budget"]["flops"] == pytest.approx(plan["flops"], rel=0.05)
    assert [stage["budget"]["input_tokens"] for stage in stages] == [own["tokens"] for own in plan["stages"].values()]
    assert all(stage["realised"]["epochs"] > 0 for stage in stages)
    for place in (folder, folder / "stages" / "pretraining"):
        assert (place / "metrics.jsonl").read_text().count("train/lr") >= 1


def test_curves_go_through_all_stages_also_of_a_committed_run(two: list[str], tmp_path: Path) -> None:
    folder = run(compose(two))
    kept = keep(folder, tmp_path / "results", "s")
    own, _ = kept.read_record()
    assert own is not None
    ends = [own.further["stages"][0]["budget"]["input_tokens"], own.budget["input_tokens"]]
    curves = read_curves(RunFolder(folder), own)
    assert curves == read_curves(kept, own)
    tokens = curves["validation/mlm_loss"].tokens
    assert tokens == sorted(tokens)
    assert [tokens[2], tokens[-1]] == ends
    assert isinstance(kept, RunFolder)
    (kept.folder / EARLIER / "metrics.jsonl").unlink()  # as of runs that did not keep it
    assert read_curves(kept, own)["validation/mlm_loss"].tokens == tokens[3:]


PAIRS = "input=segment_pair"
SEVERAL = ["objective=several", PAIRS, "objective.tasks.capitalization=0", "objective.tasks.next=1"]
HEADED = {  # objectives with heads or networks beside the one on tokens
    "nsp": ["objective=mlm_nsp", PAIRS],
    "sop": ["objective=mlm_sop", PAIRS, "input.pairs=order"],
    "sbo": ["objective=mlm_sbo", "masking=geometric_span"],
    "several": SEVERAL,
    "electra": ["objective=electra", "objective.generator=0.5"],
    "electra_one_network": ["objective=electra", "objective.generator=1.0", "objective.tie=all"],
    "electra_without_generator": ["objective=electra", "objective.generator=null", "objective.tie=none"],
    "all_tokens": ["objective=electra", "objective.asks=original", "objective.weight=1"],
}


def every_weight(folder: Path) -> dict[str, bytes]:
    """Of the network and of all that the objective has beside it."""
    further = folder / "model" / "heads.safetensors"
    heads = load_file(further) if further.is_file() else {}
    return {**weights(folder), **{f"further.{name}": tensor.tobytes() for name, tensor in heads.items()}}


@pytest.fixture
def go_on(arguments: list[str], other_text: Path) -> Callable[..., list[str]]:
    """A function that gives the overrides of two steps on the other text from the checkpoint of a run."""

    def overrides(start: Path, *own: str) -> list[str]:
        kept = [text for text in arguments if not text.startswith(("corpus.path", "tokenizer.vocab_size"))]
        model = ["model=pretrained", f"model.name={start}", "tokenizer=pretrained", f"tokenizer.name={start}"]
        return [*kept, *own, f"corpus.path={other_text}", "trainer.max_steps=2", *model]

    return overrides


@pytest.mark.parametrize("objective", HEADED)
def test_stages_in_one_run_are_runs_by_hand_in_every_bit(
    first: list[str], other_text: Path, go_on: Callable[..., list[str]], objective: str
) -> None:
    text, own = [f"+stages.further.corpus.path={other_text}", "+stages.further.trainer.max_steps=2"], HEADED[objective]
    folder = run(compose([*first, *own, *text]))
    hand = run(compose(go_on(run(compose([*first, *own])), *own)))
    assert every_weight(folder) == every_weight(hand)
    assert record(folder)["stages"][-1]["metrics"] == record(hand)["metrics"]


@pytest.mark.parametrize("objective", ["sbo", "several", "electra", "electra_one_network"])
def test_heads_and_further_networks_begin_where_the_checkpoint_ended(
    first: list[str], go_on: Callable[..., list[str]], objective: str
) -> None:
    own = HEADED[objective]
    start = run(compose([*first, *own]))
    chain = run(compose([*first, *own, "+stages.further.trainer.max_steps=0"]))
    hand = run(compose([*go_on(start, *own), "trainer.max_steps=0"]))
    fresh = run(compose([*first, *own, "trainer.max_steps=0"]))
    assert every_weight(chain) == every_weight(hand) == every_weight(start)
    untouched, ended = every_weight(fresh), every_weight(start)
    assert any(name.startswith("further.") and untouched[name] != ended[name] for name in ended)
    anew = run(compose([*go_on(start, *own), "trainer.max_steps=0", "model.fresh=true"]))
    assert every_weight(anew) == untouched


def test_a_checkpoint_counts_with_its_further_heads(first: list[str], go_on: Callable[..., list[str]]) -> None:
    start = run(compose([*first, *HEADED["sbo"]]))
    own = go_on(start, *HEADED["sbo"])
    before = Run.of(compose(own)).identity.pretrain
    heads = start / "model" / "heads.safetensors"
    changed = {name: tensor + 1 for name, tensor in load_file(heads).items()}
    save_file(changed, heads)
    assert Run.of(compose(own)).identity.pretrain != before


def test_a_run_resumes_between_and_inside_stages_to_the_same_bits(
    two: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = weights(run(compose(two)))
    shutil.rmtree(tmp_path / "runs")
    kept = compose([*two, "profile.checkpoint_steps=1"])
    backward, reached = Learner.manual_backward, list[int]()
    for last in (2, 3, 2):  # steps of this process: inside the first stage, at the start of the second, inside that

        def die_at(self: Learner, *given: Any, last: int = last, **named: Any) -> None:
            reached.append(self.trainer.global_step)
            if len(reached) == last:
                raise RuntimeError("the machine went away")
            backward(self, *given, **named)

        reached.clear()
        monkeypatch.setattr(Learner, "manual_backward", die_at)
        with pytest.raises(RuntimeError, match="went away"):
            run(kept)
        assert reached == {2: [0, 1], 3: [1, 2, 0]}[last]
    monkeypatch.setattr(Learner, "manual_backward", backward)
    assert weights(run(kept)) == whole


def test_a_stage_that_arms_share_is_trained_once_and_serves_a_run_without_stages(
    two: list[str], first: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import paribus.training.pretrain as module

    trained: list[str] = []
    take = module.take_steps
    count = lambda stage, *rest: (trained.append(stage.run.last_stage), take(stage, *rest))  # noqa: E731
    monkeypatch.setattr(module, "take_steps", count)
    arms = {"as_it_is": first, "whole_word": two, "more": [*two, "stages.further.masking.rate=0.3"]}
    for seed in range(2):
        for arm, overrides in arms.items():
            run(compose([*overrides, f"arm={arm}", f"seed={seed}"]))
    assert trained == ["pretraining", "further", "further"] * 2
    assert "pre-training found" in capsys.readouterr().err


def test_what_is_forgotten_of_the_first_text_is_measured(first: list[str], other_text: Path) -> None:
    text = [f"+stages.further.corpus.path={other_text}", "+stages.further.trainer.max_steps=4"]
    found = record(run(compose([*first, *text])))
    before, after = found["stages"]
    again = after["earlier"]["pretraining"]["mlm_loss"]
    assert found["metrics"]["stage_forgetting"] == pytest.approx(again - before["metrics"]["mlm_loss"], abs=1e-12)
    assert again != before["metrics"]["mlm_loss"] != after["metrics"]["mlm_loss"]
    still = record(run(compose([*first, "+stages.further.trainer.max_steps=0"])))
    assert still["metrics"]["stage_forgetting"] == 0.0


def test_a_chain_has_its_own_name(two: list[str], first: list[str]) -> None:
    one, other = Run.of(compose(two)), Run.of(compose([*two, "stages.further.masking.rate=0.3"]))
    alone, longer = Run.of(compose(first)), Run.of(compose([*two, "trainer.max_steps=4"]))
    assert one.chain[0].identity.pretrain == other.chain[0].identity.pretrain == alone.identity.pretrain
    assert len({each.identity.pretrain for each in (one, other, alone, longer)}) == 4


def test_a_stage_changes_the_one_before_and_has_its_tokenizer(first: list[str], other_text: Path) -> None:
    more = ["+stages.third.trainer.max_steps=1", f"+stages.further.corpus.path={other_text}"]
    chain = Run.of(compose([*first, *FURTHER, *more])).chain
    assert [own.trainer.max_steps for own in chain] == [3, 2, 1]
    assert [type(own.masking).__name__ for own in chain] == ["Bernoulli", "WholeWord", "WholeWord"]
    start, further, third = (own.data() for own in chain)
    assert start.tokenizer_folder == further.tokenizer_folder == third.tokenizer_folder
    assert start.fingerprint["text"] != further.fingerprint["text"] == third.fingerprint["text"]


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ("+stages.further.finetune.epochs=1", "stages.further.finetune"),
        ("+stages.further.model.hidden=64", "stages.further.model"),
        ("+stages.further.tokenizer.vocab_size=99", "stages.further.tokenizer would change the vocabulary"),
        ("+stages.further.trainer.max_stepz=4", "trainer.max_stepz"),
        ("+stages.pretraining.trainer.max_steps=4", "stages.pretraining is the run's own config"),
        ("+stages.empty={}", "stages.empty changes nothing"),
        ("+stages.further.input.length=100000", "input.length"),
    ],
)
def test_what_a_stage_cannot_have_is_told_before_compute(
    two: list[str], bad: str, named: str, refused_run: Callable[..., str]
) -> None:
    assert named in refused_run(*two, bad)


def test_a_stage_with_another_generator_is_told_before_compute(
    first: list[str], go_on: Callable[..., list[str]], refusal: Callable[..., str]
) -> None:
    wider = ["+stages.further.objective.generator=1.0"]
    assert "stages.further.objective has another shape of 'generator'" in refusal(
        "train", *first, *HEADED["electra"], *wider
    )
    start = run(compose([*first, *HEADED["electra"]]))
    assert "heads.safetensors does not fit the model" in refusal(
        "train", *go_on(start, *HEADED["electra"]), "objective.generator=1.0"
    )


def test_a_stage_of_which_a_filter_leaves_no_text_is_told_before_compute(
    first: list[str], tmp_path: Path, refused_run: Callable[..., str]
) -> None:
    empty = ["+corpus@stages.further.corpus=filtered", "corpus@stages.further.corpus.of=text"]
    page = tmp_path / "page.txt"
    page.write_text("lorem ipsum\n\nlorem ipsum dolor\n" * 50)
    assert "no train document" in refused_run(*first, *empty, f"stages.further.corpus.of.path={page}")


def test_what_fine_tuning_makes_forget_is_measured_if_it_is_asked_for(first: list[str], task_folder: Path) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.optimizer.lr=1e-2", "finetune.seeds=[0,1]"]
    plain = record(run(compose([*first, *task])))
    asked = record(run(compose([*first, *task, "finetune.forgetting=true"])))
    lost = asked["metrics"].pop("sst2/forgetting")
    assert lost != 0.0
    assert lost == pytest.approx(sum(one["metrics"].pop("forgetting") for one in asked["task_runs"]) / 2)
    assert (asked["metrics"], asked["task_runs"]) == (plain["metrics"], plain["task_runs"])
    assert asked["signature"] != plain["signature"]
    frozen = ["finetune/method=frozen", "finetune.forgetting=true"]
    assert record(run(compose([*first, *task, *frozen])))["metrics"]["sst2/forgetting"] == 0.0
    after = ["+stages.further.trainer.max_steps=2", *frozen]
    both = record(run(compose([*first, *task, *after])))["metrics"]
    assert both["sst2/forgetting"] == both["stage_forgetting"]


def test_an_untrained_head_has_nothing_to_forget(
    first: list[str], task_folder: Path, refused_run: Callable[..., str]
) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.forgetting=true"]
    none = record(run(compose([*first, *task, "trainer.max_steps=0", "+stages.further.trainer.max_steps=1"])))
    assert "stage_forgetting" not in none["metrics"]
    ensemble = ["finetune.ensemble=2", "finetune.forgetting=true", "task=sst2", f"tasks.sst2.path={task_folder}"]
    assert "finetune.forgetting=true needs a single model" in refused_run(*first, *ensemble)


def test_the_pooler_of_an_earlier_stage_is_kept(first: list[str], task_folder: Path) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.head.pooler=pretrained"]
    pairs = ["objective=mlm_nsp", "input=segment_pair"]
    single = ["+objective@stages.further.objective=mlm", "+input@stages.further.input=full_sentences"]
    config = compose([*first, *pairs, *task, *single, "+stages.further.trainer.max_steps=1"])
    folder = run(config)
    after, before = (load_file(place / "model" / "model.safetensors") for place in (folder, folder / EARLIER))
    assert after["bert.pooler.dense.weight"].tobytes() == before["bert.pooler.dense.weight"].tobytes()
    assert seconds(Run.of(config))["start_seconds"] > 0  # what a plan measures takes it too


def test_only_the_last_stage_is_fine_tuned_on_the_way(two: list[str], task_folder: Path) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "evaluation.task_points=2"]
    found = record(run(compose([*two, *task])))
    assert [point["step"] for point in found["task_points"]] == [1]


def moved_in_a_step(overrides: Sequence[str]) -> dict[str, float]:
    """{weight: the most that an entry of it moves} in a further stage of one step."""
    folder = run(compose([*overrides, "+stages.further.trainer.max_steps=1"]))
    after, before = (load_file(place / "model" / "model.safetensors") for place in (folder, folder / EARLIER))
    return {name: float(abs(after[name] - before[name]).max()) for name in after}


def test_a_stage_can_have_lower_rates_in_lower_layers(first: list[str], refused_run: Callable[..., str]) -> None:
    plain, decayed = (moved_in_a_step([*first, *own]) for own in ([], ["+stages.further.trainer.layer_decay=0.1"]))
    for name, share in (("encoder.layer.1", 1.0), ("encoder.layer.0", 0.1), ("embeddings.word", 0.01)):
        weight = next(each for each in plain if name in each and each.endswith("weight") and plain[each])
        assert decayed[weight] / plain[weight] == pytest.approx(share, rel=0.2)
    assert "trainer.layer_decay=0" in refused_run(*first, "trainer.layer_decay=0")


def test_rates_of_the_encoder_reach_its_optimizer(first: list[str]) -> None:
    """The first step of Adam moves a weight by about its rate."""
    changed = ["+model/change@model.changes.init=mup", "model.changes.init.base_hidden=64"]
    overrides = [*first, "optimizer.weight_decay=0"]
    plain, mup = (moved_in_a_step([*overrides, *own]) for own in ([], changed))
    hidden = compose(first).model.hidden
    for name, share in (("encoder.layer.1.output.dense.weight", 64 / hidden), ("embeddings.word", 1.0)):
        weight = next(each for each in plain if name in each)
        assert mup[weight] / plain[weight] == pytest.approx(share, rel=0.2)


def test_a_tasks_own_text_is_that_of_its_training_examples(
    first: list[str], task_folder: Path, cache: Path, refused_run: Callable[..., str]
) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "+corpus@stages.further.corpus=task_text"]
    steps = "+stages.further.trainer.max_steps=1"
    corpus = Run.of(compose([*first, *task, steps])).corpus
    texts = {split: [one.text for one in corpus.documents(cache) if one.split == split] for split in SPLITS}
    assert [len(own) for own in texts.values()] == [64, 32]
    assert texts["train"][0].startswith("dull ")
    shown = Run.of(compose([*first, *task, steps, "stages.further.corpus.include_test_text=true"])).corpus
    read = [one.text for one in shown.documents(cache) if one.split == "train"]
    assert set(read) == {text for own in texts.values() for text in own}
    assert "task" in refused_run(*first, "+corpus@stages.further.corpus=task_text")


@pytest.mark.slow
def test_replay_of_text_is_remembered(first: list[str], other_text: Path, task_folder: Path) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.optimizer.lr=1e-2", "finetune.epochs=5"]
    asked = [*first, *task, "trainer.max_steps=20", "optimizer.lr=1e-3", "finetune.forgetting=true"]
    further = ["+stages.further.trainer.max_steps=2", f"+stages.further.corpus.path={other_text}"]

    def forgotten(*own: str) -> float:
        value: float = record(run(compose([*asked, *own])))["metrics"]["sst2/forgetting"]
        return value

    bare, replayed = forgotten(), forgotten("finetune.replay=1.0")
    assert replayed < bare
    assert len({replayed, forgotten("finetune.replay=0.1"), forgotten("finetune.replay=1.0", TASK_TEXT)}) == 3
    assert len({forgotten(*further), *(forgotten(*further, "finetune.replay=1.0", own) for own in WHOSE)}) == 3


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (["finetune.replay=-1"], "finetune.replay=-1"),
        (
            ["finetune.replay=1", "finetune.replay_text=nowhere"],
            "finetune.replay_text=nowhere is not a text of the run",
        ),
        (["finetune.replay_text=task"], "finetune.replay_text=task, but finetune.replay=0"),
    ],
)
def test_replay_of_nothing_is_told(
    first: list[str], task_folder: Path, bad: list[str], said: str, refused_run: Callable[..., str]
) -> None:
    assert said in refused_run(*first, "task=sst2", f"tasks.sst2.path={task_folder}", *bad)


KEEP = "+stages.further.trainer.keep_optimizer=true"


@pytest.fixture
def one_row(tmp_path: Path, cache: Path) -> list[str]:
    """Overrides of a run whose every step reads the same row under the same noise, at one rate."""
    text = tmp_path / "one"
    text.mkdir()
    (text / "train.txt").write_text(story(1, 2) + "\n")
    (text / "validation.txt").write_text(story(2, 2) + "\n")
    noise = ["masking/schedule=static", "model.dropout=0", "model.attention_dropout=0", "evaluation.own_points=0"]
    steps = ["batch.size=1", "lr_schedule=constant", "lr_schedule.warmup=0", "optimizer.lr=1e-2", "input.length=64"]
    folders = [f"paths.cache={cache}", f"paths.runs={tmp_path / 'runs'}", "tokenizer.vocab_size=90"]
    profile = ["profile.threads=1", "profile.precision=32-true"]
    return ["scale=test", "corpus=text", f"corpus.path={text}", *noise, *steps, *folders, *profile]


@pytest.mark.parametrize("optimizer", ["adamw", "adafactor", "lamb"])
def test_stages_that_keep_the_optimizer_are_one_training_in_every_bit(one_row: list[str], optimizer: str) -> None:
    own = [*one_row, f"optimizer={optimizer}"]
    chain = [*own, "trainer.max_steps=2", "+stages.further.trainer.max_steps=3"]
    whole = run(compose([*own, "trainer.max_steps=5"]))
    assert weights(run(compose([*chain, KEEP]))) == weights(whole)
    fresh = run(compose(chain))
    assert weights(fresh) != weights(whole)
    assert not list(fresh.rglob("optimizer.pt"))


def test_a_kept_optimizer_is_shared_and_resumed(
    first: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import paribus.training.pretrain as module

    trained: list[str] = []
    train = module.train

    def counting(stage: Any, *rest: Any) -> None:
        trained.append(stage.run.last_stage)
        if trained == ["pretraining"]:  # stopped after the first stage's last step, before its checkpoint
            stage.run.profile.__dict__["checkpoint_steps"] = 1
            train(stage, *rest)
            raise KeyboardInterrupt
        train(stage, *rest)

    monkeypatch.setattr(module, "train", counting)
    own = [*first, "lr_schedule=constant", "+stages.further.trainer.max_steps=2", KEEP]
    with pytest.raises(KeyboardInterrupt):
        run(compose(own))
    resumed = weights(run(compose(own)))
    assert trained == ["pretraining", "pretraining", "further"]
    run(compose([*own, "arm=more", "+stages.further.masking.rate=0.3"]))
    assert trained[3:] == ["further"]
    shutil.rmtree(tmp_path / "runs")
    run(compose([*first, "lr_schedule=constant", "arm=as_it_is"]))
    assert weights(run(compose(own))) == resumed
    assert trained[4:] == ["pretraining", "pretraining", "further"]  # nobody kept the optimizer of the first


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (["trainer.keep_optimizer=true"], "trainer.keep_optimizer=true, but no stage is before"),
        ([KEEP, "trainer.max_steps=0"], "stages.further.trainer.keep_optimizer=true, but the stage before takes no"),
        ([KEEP, "+stages.further.optimizer.eps=1e-4"], "the optimizers differ in more than lr"),
        ([KEEP, "+optimizer@stages.further.optimizer=lamb"], "the optimizers differ in more than lr"),
    ],
)
def test_an_optimizer_that_cannot_be_kept_is_told_before_compute(
    two: list[str], bad: list[str], named: str, refused_run: Callable[..., str]
) -> None:
    assert named in refused_run(*two, *bad)


def test_a_kept_optimizer_goes_on_at_another_rate(two: list[str]) -> None:
    folder = run(compose([*two, KEEP, "+stages.further.optimizer.lr=1e-4"]))
    assert record(folder)["budget"]["steps"] == 5
