"""The docs_long task: a majority of paragraphs that no beginning gives away."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from paribus.core.errors import UserError
from paribus.tasks.baselines import measure_baselines
from paribus.tasks.docs.long import DocsLong, join_paragraphs
from paribus.tasks.docs.package import DocsPackage
from paribus.tasks.examples import Examples

SMALL = ["rich", "hypothesis", "aiohttp"]


def task(**changes: Any) -> DocsLong:
    return DocsLong(**{"name": "long", "packages": SMALL, "words": [6, 60], "most": 4, "others": 2} | changes)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def examples(cache: Path) -> Examples:
    return task().examples(cache)


def test_most_paragraphs_are_of_the_label_and_each_is_in_one_text(examples: Examples, cache: Path) -> None:
    rows = list(DocsPackage("package", SMALL, words=[6, 60])._candidates(cache))
    label_of = {row.text: row.label for row in rows}
    split_of = {row.text: task().split_of(row.module) for row in rows}
    used = Counter[str]()
    for split, texts in examples.items():
        assert len({*Counter(row.label for row in texts).values()}) == 1
        for row in texts:
            paragraphs = row.text.split("\n")
            used.update(paragraphs)
            counts = Counter(label_of[each] for each in paragraphs)
            assert sorted(counts.values()) == [2, 4]
            assert counts.most_common(1)[0][0] == row.label
            assert {split_of[each] for each in paragraphs} == {split}
    assert max(used.values()) == 1


def test_the_first_paragraph_is_of_either_as_often() -> None:
    texts = [([f"own {n} {k}" for k in range(4)], [f"other {n} {k}" for k in range(2)]) for n in range(400)]
    made = [join_paragraphs(most, others, 0) for most, others in texts]
    first = Counter(row.text.split()[0] for row in made)
    assert 160 < first["own"] < 240
    assert len({tuple(line.split()[0] for line in row.text.split("\n")[1:]) for row in made}) == 15


def test_its_baselines_show_that_the_beginning_is_not_enough(cache: Path) -> None:
    found = measure_baselines(task(), cache)["accuracy"]
    assert found.keys() == {"majority", "bag_of_words", "bag_of_words_first_64"}
    assert found["bag_of_words"] > found["bag_of_words_first_64"] + 0.1


def test_limits_and_bad_settings_are_one_line(cache: Path) -> None:
    assert len(task(max_train=13).examples(cache)["train"]) == 12  # two of each of the six pairs
    with pytest.raises(UserError, match=r"tasks\.long\.most=3 and others=3 leave no majority"):
        task(most=3, others=3)
    with pytest.raises(UserError, match=r"tasks\.long\.packages: \w+ has \d+ paragraphs, but 2002 are needed"):
        task(most=1000, others=1).examples(cache)


def test_its_config_is_of_packages_that_are_installed() -> None:
    settings = yaml.safe_load((Path(__file__).parents[2] / "conf/task/docs_long.yaml").read_text())
    assert settings.pop("_target_") == "paribus.tasks.docs.long.DocsLong"
    assert len(DocsLong(**settings).source()[-1]) == 6
