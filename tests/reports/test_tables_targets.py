"""A held-out loss over other targets than the baseline's is no value of the table's column."""

from __future__ import annotations

from typing import Any

from fake_records import LOSS, TASK, design, make_table, read, study

from paribus.reports.tables.design import Design
from paribus.reports.tables.evidence import gather
from paribus.reports.tables.files import render_texts


def with_targets(sets: dict[str, tuple[str, int]]) -> list[dict[str, Any]]:
    """The records of the study; each arm says what its loss is over."""
    records = []
    for record in study():
        what, places = sets.get(record["arm"], ("15% of the tokens, masked", 166))
        metrics = {**record["metrics"], "mlm_accuracy": 0.25}
        records.append({**record, "metrics": metrics, "targets": {LOSS: {"what": what, "places": places}}})
    return records


def asked(**changes: Any) -> Design:
    claims = ("dynamic > static on mlm_loss", "static > static_x10 on mlm_loss")
    return design(columns=(LOSS, "mlm_accuracy", TASK), claims=claims, published={}, **changes)


def test_an_arm_with_other_targets_leaves_the_column_and_a_note_says_why() -> None:
    table = make_table(asked(), with_targets({"static": ("every token", 1100)}))
    arms = {arm.name: arm for arm in table.arms}
    assert not {LOSS, "mlm_accuracy"} & arms["static"].metrics.keys()
    assert not {LOSS, "mlm_accuracy"} & arms["static"].versus_baseline.keys()
    assert TASK in arms["static"].metrics
    assert LOSS in arms["dynamic"].versus_baseline
    for claim in table.claims:
        assert claim.verdict == "not run"
        assert "static: measured over other targets" in claim.contrasts[0].reason
    said = (
        'static: left out because its targets are others: mlm_loss 5.404, mlm_accuracy 25.0 over "every token" (1,100 '
        'places); static_x10 has mlm_loss 5.005, mlm_accuracy 25.0 over "15% of the tokens, masked" (166 places).'
    )
    assert said in table.notes
    assert f"] {said}" in render_texts(table)["table.md"]


def test_the_accuracy_of_a_loss_that_nobody_registered_leaves_with_it() -> None:
    records = [
        {**record, "metrics": {"odd_loss": 5.0, "odd_accuracy": 0.25}, "targets": {"odd_loss": targets}}
        for record in study()
        for targets in ({"what": record["arm"] if record["arm"] == "static" else "every token", "places": 9},)
    ]
    evidence = gather(design(columns=("odd_loss", "odd_accuracy"), claims=(), published={}), read(records))
    assert evidence.values("dynamic", "odd_accuracy")
    assert not evidence.values("static", "odd_accuracy")


def test_the_number_of_places_counts_if_the_text_is_the_same() -> None:
    records = with_targets({"dynamic": ("15% of the tokens, masked", 189)})

    def find(**changes: Any) -> frozenset[str]:
        return gather(asked(**changes), read(records)).apart[LOSS]

    assert find() == {"dynamic"}
    assert find(varies=("objective",)) == {"dynamic"}
    for varies in ("corpus", "tokenizer.vocab_size", "input.length"):
        assert not find(varies=(varies,))
    differences = {"differences": {"dynamic": {"input.length": [64, 128]}}}
    assert not find(varies=("input",), audit={"controlled": True, **differences})


def test_losses_per_token_of_other_tokens_are_apart_if_all_records_say_what_they_are() -> None:
    names = {"static": "105 characters", "static_x10": "8,192 WordPieces", "dynamic": "8,192 WordPieces"}
    records = [
        {**each, "targets": {LOSS: {"what": "every token", "places": 9, "tokens": names.get(each["arm"], "")}}}
        for each in study()
    ]
    told = [each for each in records if each["arm"] in names]
    assert gather(asked(varies=("tokenizer",)), read(told)).apart[LOSS] == {"static"}
    table = make_table(asked(varies=("tokenizer",)), told)
    assert any('"every token" (9 places, per token of 105 characters)' in note for note in table.notes)
    del told[0]["targets"][LOSS]["tokens"]
    assert not gather(asked(varies=("tokenizer",)), read(told)).apart[LOSS]


def test_records_that_name_no_targets_share_a_column() -> None:
    table = make_table(asked(), [{**record, "targets": {}} for record in with_targets({})])
    assert all(LOSS in arm.metrics for arm in table.arms)


def test_a_pretrained_arm_without_a_loss_on_its_own_noise_is_unjudged_whatever_it_measures() -> None:
    records = study()
    for record in records:
        if record["arm"] == "dynamic":
            del record["metrics"][LOSS], record["own"]
    evidence = gather(asked(), read(records))
    assert evidence.unjudged == ("dynamic",)
    table = make_table(design(columns=(TASK,), claims=(f"dynamic > static_x10 on {TASK}",), published={}), records)
    assert table.claims[0].verdict == "undecided"
    assert "not recorded whether runs left the plateau" in table.claims[0].contrasts[0].reason
