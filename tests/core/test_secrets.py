"""Secrets among settings are masked wherever settings are shown or kept for others."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.core.trust import is_secret, mask, mask_text
from paribus.runs.store import portable_config, portable_overrides
from paribus.sweeps.launchers.base import Events, Work
from paribus.sweeps.launchers.local import Slot, Slots


def test_names_of_secrets() -> None:
    assert all(map(is_secret, ["api_key", "hf_token", "password", "db_password", "token", "auth_token_file", "secret"]))
    assert not any(map(is_secret, ["max_tokens", "train_tokens", "tokenizer", "key", "keys", "monkey", "tokens"]))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:hunter2@host/x", "https://me:***@host/x"),
        ("corpus.path=s3://k:hunter2@b/t", "corpus.path=s3://k:***@b/t"),
        ("https://host/x?token=hunter2&a=1", "https://host/x?token=***&a=1"),
        ("+logger.api_key=hunter2", "+logger.api_key=***"),
        ("trainer.max_tokens=5000", "trainer.max_tokens=5000"),
        ("masking.rate=0.15", "masking.rate=0.15"),
        ("a b@c.d", "a b@c.d"),
    ],
)
def test_texts(text: str, shown: str) -> None:
    assert mask_text(text) == shown


def test_trackers_and_committed_records_get_no_secret() -> None:
    config = {"corpus": {"path": "https://me:hunter2@host/x", "hub": None}, "x": {"api_key": "hunter2", "keys": [1]}}
    assert "hunter2" not in repr(portable_config(config))
    assert portable_config(config)["x"]["keys"] == [1]
    assert "hunter2" not in repr(portable_overrides(["corpus.path=https://me:hunter2@h/x", "x.api_key=hunter2"]))
    assert mask({"trainer": {"max_tokens": 5}, "seed": 0}) == {"trainer": {"max_tokens": 5}, "seed": 0}


def test_a_run_s_log_shows_no_secret(tmp_path: Path) -> None:
    work = Work("a", ("true", "corpus.path=https://me:hunter2@h/x", "x.api_key=hunter2"), tmp_path / "log.txt")
    Slots([Slot((0,))]).run([work], Events())
    assert "hunter2" not in work.log.read_text()
    assert "x.api_key" in work.log.read_text()
