"""What many tests need: a small text, prepared data, the shared folder where it is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from quick_sweeps import Ask
from stories import story

from paribus.commands.cli import main
from paribus.core.config import compose, keep_bases
from paribus.core.errors import UserError
from paribus.core.files import user_cache
from paribus.core.processes import collect_often, collect_rarely
from paribus.sweeps.request import Request, parse
from paribus.training.run import run

SHARED = Path(__file__).parents[2] / "shared" / "data"


def pytest_configure() -> None:
    """Composing the choices of a config takes 0.3 seconds, so what a process has composed serves all others."""
    keep_bases(user_cache("test-configs"))
    collect_rarely()


def pytest_collection_finish() -> None:
    """What the imports and the list of tests have made stays to the end, so no test looks for garbage in it."""
    collect_often()


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real corpora and tasks; the test is skipped where they are absent."""
    if not SHARED.is_dir():
        pytest.skip("the shared data folder is not beside this checkout")
    return SHARED


@pytest.fixture(scope="session")
def text_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of plain text: one paragraph a line, a blank line between documents."""
    folder = tmp_path_factory.mktemp("text")
    (folder / "train.txt").write_text("\n\n".join(story(n) for n in range(60)) + "\n")
    (folder / "validation.txt").write_text("\n\n".join(story(n) for n in range(100, 112)) + "\n")
    return folder


@pytest.fixture(scope="session")
def session_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder shared by the tests of one session, those of pytest's other processes included."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def cache(session_folder: Path) -> Path:
    """A cache shared by the tests of one session."""
    (folder := session_folder / "cache").mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def task_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-class task of the layout of GLUE's sst2."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("sst2")
    for split, count in (("train", 64), ("validation", 32)):
        rows = [
            {"sentence": f"{('dull', 'bright')[n % 2]} {story(n, 1)}", "label": n % 2, "idx": n} for n in range(count)
        ]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{split}.parquet")
    return folder


@pytest.fixture
def equal_arms(arguments: list[str], task_folder: Path) -> list[str]:
    """A sweep on the small corpus and task with two arms that differ in nothing: `scratch` and the anchor."""
    given = [text for text in arguments if not text.startswith(("scale=", "profile.", "paths.runs="))]
    own = ["columns.text=sentence", "classes=[dull,bright]", "splits.validation=validation", f"path={task_folder}"]
    task = [f"tasks.ag_news.{setting}" for setting in own]
    return ["pretraining_helps", *given, "scale=smoke", "arms=scratch,from_scratch", "seeds=0,1", "task=ag_news", *task]


@pytest.fixture
def trust(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that declares modules as trusted in this process, as `conf/trusted.yaml` does."""
    return lambda *names: monkeypatch.setattr("paribus.core.trust.declared", lambda: names)


@pytest.fixture
def arguments(text_folder: Path, cache: Path, tmp_path: Path) -> list[str]:
    """Overrides of a run of seconds on the small corpus, in a folder of its own."""
    return [
        "scale=test",
        "corpus=text",
        f"corpus.path={text_folder}",
        "tokenizer.vocab_size=150",
        f"paths.cache={cache}",
        f"paths.runs={tmp_path / 'runs'}",
        "profile.threads=1",
        "profile.precision=32-true",
    ]


@pytest.fixture
def trained(tmp_path: Path) -> Callable[[], set[Path]]:
    """A function that lists the files that training has written."""
    names = ("metrics.jsonl", "pretrain.json", "last.ckpt")
    return lambda: {path for name in names for path in tmp_path.rglob(name)}


@pytest.fixture
def refusal(trained: Callable[[], set[Path]], capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A function that gives a command and returns its message: it must end with status 2 and one line, untrained."""

    def give(*command: str) -> str:
        before = trained()
        capsys.readouterr()
        assert main(list(command)) == 2
        (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("paribus: ")]
        assert trained() == before
        return line

    return give


@pytest.fixture
def refused_run(trained: Callable[[], set[Path]]) -> Callable[..., str]:
    """A function that gives the overrides of a run and returns the message of its UserError, which comes untrained.

    `paribus train` prints that message and ends with status 2, but Hydra takes most of a second to start the command.
    """

    def give(*overrides: str) -> str:
        before = trained()
        with pytest.raises(UserError) as refused:
            run(compose(overrides))
        assert trained() == before
        return str(refused.value)

    return give


@pytest.fixture
def ask(arguments: list[str], tmp_path: Path) -> Ask:
    """A request for roberta_table1 on the small corpus, in a folder of its own."""

    def made(*more: str, scale: str = "smoke") -> Request:
        given = [text for text in arguments if not text.startswith(("scale=", "paths.runs="))]
        own = [f"scale={scale}", f"runs={tmp_path / 'runs'}", "task=none", "profile.threads=null"]
        request = parse("run", ["roberta_table1", *given, *own, *more])
        return request._replace(results=request.results if request.keep else tmp_path / "results")

    return made
