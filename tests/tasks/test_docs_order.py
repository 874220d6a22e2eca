"""The tasks docs_order and docs_shift: the same words in two orders, of which nothing but the order tells."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from paribus.core.errors import UserError
from paribus.data.corpus.docstrings import Docstrings
from paribus.tasks.docs.order import DocsOrder, DocsShift, find_swaps, shuffle_inner, swap_neighbors
from paribus.tasks.examples import Examples, normalize

CONF = Path(__file__).parents[2] / "conf/task"
BOTH = [DocsOrder, DocsShift]
TEXT = "The values whose mean is wanted, as floats."


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def task(kind: type[DocsOrder | DocsShift], **changes: Any) -> DocsOrder | DocsShift:
    settings: dict[str, Any] = {"name": "docs", "packages": ["networkx"], "max_train": 400}
    return kind(**{**settings, **changes})


def words_of(rows: list[Any], label: int) -> list[str]:
    return sorted(word for row in rows if row.label == label for word in row.text.split())


@pytest.fixture(scope="module", params=BOTH)
def examples(request: pytest.FixtureRequest, cache: Path) -> Examples:
    return task(request.param).examples(cache)


def test_inner_words_are_shuffled_by_their_hash() -> None:
    found = shuffle_inner(TEXT.split())
    assert found != TEXT.split()
    assert found == shuffle_inner(TEXT.split())
    assert (found[0], found[-1], sorted(found)) == ("The", "floats.", sorted(TEXT.split()))


def test_an_order_is_never_the_one_that_was_there() -> None:
    for number in range(60):  # half of all draws of two words leave them as they are
        assert shuffle_inner(["A", f"b{number}", "c", "d"]) == ["A", "c", f"b{number}", "d"]
        assert shuffle_inner(["A", f"b{number}", "c", "C", "d"])[1:4] != [f"b{number}", "C", "c"]


def test_two_different_neighbors_are_swapped() -> None:
    for number in range(60):
        words = f"The the THE {number} same SAME end".split()
        found = swap_neighbors(words)
        moved = [at for at, (new, old) in enumerate(zip(found, words, strict=True)) if new != old]
        assert moved in ([2, 3], [3, 4])
        assert [found[at] for at in moved] == [words[at] for at in reversed(moved)]
    assert find_swaps(["a", "b", "c", "d"]) == [1]
    assert find_swaps(["a", "b", "B", "c"]) == find_swaps(["a", "b", "c"]) == []


def test_every_paragraph_is_there_in_both_forms(examples: Examples) -> None:
    assert len(examples["train"]) == 400
    assert len(examples["validation"]) > 200
    for rows in examples.values():
        assert [row.label for row in rows] == [0, 1] * (len(rows) // 2)
        for changed, original in zip(rows[::2], rows[1::2], strict=True):
            assert normalize(changed.text) != normalize(original.text)
            assert Counter(changed.text.split()) == Counter(original.text.split())
            ends = [(words[0], words[-1]) for words in (changed.text.split(), original.text.split())]
            assert ends[0] == ends[1]
            assert 6 <= len(original.text.split()) <= 30
        assert words_of(rows, 0) == words_of(rows, 1)


@pytest.mark.parametrize("fitted", [True, False])
def test_a_bag_of_words_gets_exactly_half_of_them_right(fitted: bool, examples: Examples) -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    counter = CountVectorizer(token_pattern=r"\S+")
    seen = counter.fit_transform([row.text for row in examples["train"]])
    unseen = counter.transform([row.text for row in examples["validation"]])
    given, right = (np.array([row.label for row in examples[split]]) for split in ("train", "validation"))
    if not fitted:  # any bag of words
        given = np.random.default_rng(0).permutation(given)
    model = LogisticRegression(max_iter=50).fit(seen, given)
    assert (model.predict(unseen) == right).mean() == 0.5


def test_swapped_words_are_neighbors(cache: Path) -> None:
    for changed, original in pairwise(task(DocsShift).examples(cache)["validation"]):
        if original.label:
            pairs = enumerate(zip(changed.text.split(), original.text.split(), strict=True))
            first, second = [at for at, (new, old) in pairs if new != old]
            assert second == first + 1


@pytest.mark.parametrize("kind", BOTH)
def test_held_out_paragraphs_are_evaluated_on(kind: type[DocsOrder | DocsShift], cache: Path) -> None:
    corpus = Docstrings(["networkx"])
    sides: dict[str, set[str]] = {"train": set(), "validation": set()}
    for document in corpus.documents(cache):
        sides[str(document.split)] |= {" ".join(line.split()) for line in document.text.split("\n")}
    for split, rows in task(kind, max_train=None).examples(cache).items():
        assert {row.text for row in rows if row.label} <= sides[split]
    assert task(kind).summary(cache)["leaked"] == {"validation": 0}


@pytest.mark.parametrize("kind", BOTH)
def test_a_limit_keeps_pairs_and_all_of_a_smaller_one(kind: type[DocsOrder | DocsShift], cache: Path) -> None:
    few, more = (task(kind, max_train=limit).examples(cache)["train"] for limit in (51, 100))
    assert (len(few), len(more)) == (50, 100)
    assert set(few) < set(more)


def test_examples_depend_on_the_text_alone(cache: Path, tmp_path: Path) -> None:
    assert task(DocsOrder).data_hash(cache) == task(DocsOrder).data_hash(tmp_path)
    assert task(DocsOrder).data_hash(cache) != task(DocsShift).data_hash(cache)


def test_bad_settings_are_one_line() -> None:
    with pytest.raises(UserError, match=r"words=\[3, 30\]") as error:
        task(DocsOrder, words=[3, 30])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["docs_order", "docs_shift"])
def test_the_configs_read_what_docs_package_reads(name: str) -> None:
    own, other = (yaml.safe_load((CONF / f"{each}.yaml").read_text()) for each in (name, "docs_package"))
    assert own["packages"] == other["packages"]
    assert own["validation"] == other["validation"]
    assert own["max_validation"] >= 8000
