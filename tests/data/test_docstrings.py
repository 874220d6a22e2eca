"""The prose of docstrings."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import psutil
import pytest
from omegaconf import OmegaConf

from paribus.core.config_names import conf_dir
from paribus.core.errors import UserError
from paribus.data.corpus.docstrings import Docstrings, find_documented
from paribus.data.corpus.document import Document
from paribus.data.corpus.prose import prose
from paribus.data.corpus.splits import fingerprint, hash_share
from paribus.tasks.docs.order import DocsOrder
from paribus.tasks.docs.overlap import DocsOverlap
from paribus.tasks.docs.package import DocsPackage
from paribus.tasks.docs.parameters import DocsParameters
from paribus.tasks.docs.signature import DocsSignature

SAMPLES = {
    "numpy style": (
        '''
        Return the mean of the :class:`~pkg.Array` along an axis, see `the guide <http://x.org/y>`_.

        Parameters
        ----------
        values : ndarray of shape (n,)
            The values whose mean is wanted, as floats.
        axis, keep : int, optional
            The axis along which the means are computed.

        Raises
        ------
        ValueError
            If the axis is outside of the array.

        Examples
        --------
        >>> mean([1, 2])
        1.5

        =====  ======
        name   what is held in the column here
        =====  ======
        ''',
        [
            "Return the mean of the pkg.Array along an axis, see the guide.",
            "The values whose mean is wanted, as floats.",
            "The axis along which the means are computed.",
            "If the axis is outside of the array.",
        ],
    ),
    "google style": (
        '''
        Loads the model from a folder, for instance like this::

            model = load("here is some code of five words")

        Args:
            path (str): The folder that holds the weights of
                the model and its settings.
            strict: whether all of the weights must be there.
            *rest: passed on to the reader of the files.
        Returns:
            A model that is ready to be used.

        ```python
        the code in this fence is not prose at all
        ```
        .. note:: This may take a while on slow disks.
        .. code-block:: python

            this is not prose either it is some code
        ''',
        [
            "Loads the model from a folder, for instance like this:",
            "The folder that holds the weights of the model and its settings.",
            "whether all of the weights must be there.",
            "passed on to the reader of the files.",
            "A model that is ready to be used.",
            "This may take a while on slow disks.",
        ],
    ),
    "fields": (
        '''
        Sends the message to all of them, as done by
        :meth:`send` of the class of the channel.

        :param text: What is said to all of the listeners,
            in a single piece of text.
        :type text: str with very many words that tell nothing
        :returns: How many of them did listen to it.
        ''',
        [
            "Sends the message to all of them, as done by send of the class of the channel.",
            "What is said to all of the listeners, in a single piece of text.",
            "How many of them did listen to it.",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("style", SAMPLES)
def test_prose_only(style: str) -> None:
    docstring, wanted = SAMPLES[style]
    assert prose(textwrap.dedent(docstring)) == wanted


def test_names_before_a_colon_are_read_in_linear_time() -> None:
    import time

    start = time.perf_counter()
    prose("a" * 5000 + "`*.," * 2000 + " and so on it goes")
    prose("name, " * 3000 + "(" * 3000)
    assert time.perf_counter() - start < 2


def test_modules_are_documents_in_a_fixed_order(tmp_path: Path) -> None:
    corpus = Docstrings(["omegaconf", "hydra-core"])
    first = list(corpus.documents(tmp_path / "one"))
    assert first == list(corpus.documents(tmp_path / "one")) == list(corpus.documents(tmp_path / "two"))
    names = [one.id for one in first]
    assert "omegaconf.omegaconf" in names
    assert "hydra.main" in names
    for split in ("train", "validation"):
        paragraphs = paragraphs_of(first, split)
        assert len(paragraphs) == len(set(paragraphs)) > 20


def paragraphs_of(documents: list[Document], split: str) -> list[str]:
    return [line.lower() for one in documents if one.split == split for line in one.text.split("\n")]


def test_held_out_modules_are_out_of_the_training_text(tmp_path: Path) -> None:
    """By name, whichever distributions there are; and none of their paragraphs is left in another module."""
    found = {
        share: list(Docstrings(["rich", "hypothesis"], validation=share).documents(tmp_path)) for share in (0.2, 0.5)
    }
    for share, documents in found.items():
        held = {one.id for one in documents if one.split == "validation"}
        assert held == {one.id for one in documents if hash_share(one.id) < share}
        assert not set(paragraphs_of(documents, "train")) & set(paragraphs_of(documents, "validation"))
    few, many = ({one.id for one in documents if one.split == "validation"} for documents in found.values())
    assert few < many
    alone = {one.id for one in Docstrings(["rich"]).documents(tmp_path) if one.split == "validation"}
    assert alone == {name for name in few if name.startswith("rich")}


def test_what_is_held_out_is_part_of_the_fingerprint(tmp_path: Path) -> None:
    prints = {fingerprint(Docstrings(["rich"], validation=share), tmp_path).text for share in (0.2, 0.3)}
    assert len(prints) == 2


@pytest.mark.parametrize("kind", [DocsPackage, DocsOrder, DocsOverlap, DocsSignature, DocsParameters])
def test_the_corpus_holds_out_what_the_tasks_evaluate_on(kind: Any, tmp_path: Path) -> None:
    packages = ["rich", "hypothesis"]
    read = paragraphs_of(list(Docstrings(packages).documents(tmp_path)), "train")
    task = kind("docs", packages, max_train=None, max_validation=None)
    evaluated = {text.lower() for row in task.examples(tmp_path)["validation"] for text in row.texts}
    assert len(evaluated) > 50
    assert not set(read) & evaluated


def test_tasks_and_corpus_are_configured_to_hold_out_the_same() -> None:
    shares = {path.stem: OmegaConf.load(path).validation for path in (conf_dir() / "task").glob("docs_*.yaml")}
    assert len(shares) == 13
    assert set(shares.values()) == {OmegaConf.load(conf_dir() / "corpus/docstrings.yaml").validation}


def test_a_distribution_that_is_not_installed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no-such-thing is not installed"):
        list(Docstrings(["numpy", "no-such-thing"]).documents(tmp_path))


@pytest.mark.slow
def test_the_corpus_is_large_enough(tmp_path: Path) -> None:
    names = OmegaConf.load(conf_dir() / "corpus" / "docstrings.yaml").distributions
    assert sum(len(one.text) for one in Docstrings(list(names)).documents(tmp_path)) > 15_000_000


def test_docstrings_are_found_in_the_order_of_the_source_however_deep(tmp_path: Path) -> None:
    def function(name: str, indent: int) -> str:
        return f"{' ' * indent}def {name}():\n{' ' * indent}    'The docstring of {name}.'\n"

    source = f"try:\n{function('a', 4)}except OSError:\n{function('b', 4)}else:\n{function('c', 4)}"
    source += "if 0:\n    pass\n" + "elif 1:\n    pass\n" * 600 + f"else:\n{function('d', 4)}{function('e', 0)}"
    (tmp_path / "m.py").write_text(source)
    found = [getattr(node, "name", None) for node in find_documented(str(tmp_path / "m.py"))]
    assert found == [None, "a", "b", "c", "d", "e"]


def test_readers_end_with_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "read.py"
    script.write_text(
        "import time\n"
        "from paribus.data.corpus.docstrings import CHUNK, readers\n"
        "if __name__ == '__main__':\n"
        "    with readers(CHUNK + 1) as pool:\n"
        "        list(pool.map(abs, range(4)))\n"
        "        print(*pool._processes, flush=True)\n"
        "        time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        found = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        parent.kill()
    assert found
    _, alive = psutil.wait_procs(found, timeout=10)
    assert alive == []
