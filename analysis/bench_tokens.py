"""Speed and memory of the token store's build.

python analysis/bench_tokens.py speed TEXT.txt            build against bare `encode_batch`, sentences split before
python analysis/bench_tokens.py memory TEXT.txt --gigabytes 1   fingerprint, training, splitting and build: peak memory
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.data.corpus.document import Corpus, Document
from paribus.data.corpus.sentences import Blingfire, Lines, Splitter
from paribus.data.tokens import store
from paribus.data.tokens.tokenizer import Tokenizer
from paribus.data.tokens.trained import BPE, Trained, Unigram, WordPiece

KINDS: dict[str, type[Trained]] = {"wordpiece": WordPiece, "bpe": BPE, "unigram": Unigram}
SENTENCES = 5000  # per bare call and per document


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def speed(text: str, kind: str, size: int, rounds: int) -> dict[str, Any]:
    """Bare `encode_batch` and the build by turns on the same sentences; medians."""
    sentences = [sentence for line in text.split("\n") for sentence in Blingfire()(line)]
    chunks = [sentences[at : at + SENTENCES] for at in range(0, len(sentences), SENTENCES)]
    documents = [Document(str(number), "\n".join(chunk), "train") for number, chunk in enumerate(chunks)]
    with tempfile.TemporaryDirectory() as place:
        tokenizer = KINDS[kind](size).build(sentences, Path(place) / "tokenizer")
        pairs = []
        for number in range(rounds):
            bare = seconds(lambda: [len(tokenizer.backend.encode_batch(c, add_special_tokens=False)) for c in chunks])
            whole = seconds(lambda n=number: store.build(documents, tokenizer, Lines(), Path(place) / str(n)))  # type: ignore[misc]
            pairs.append((bare, whole))
    megabytes = sum(len(sentence.encode()) for sentence in sentences) / 1e6
    bare, whole = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {
        "kind": kind,
        "bare_mb_per_s": round(megabytes / bare, 2),
        "build_mb_per_s": round(megabytes / whole, 2),
        "ratio": round(statistics.median(b / w for b, w in pairs), 3),
    }


@dataclass(frozen=True)
class Repeated(Corpus):
    """A text again and again, each copy a document with a number before it."""

    text: str
    copies: int
    sentences: Splitter
    validation: float = 0.05

    def documents(self, cache: Path) -> Iterator[Document]:
        for copy in range(self.copies):
            yield Document(str(copy), f"{copy}\n{self.text}")

    def source(self) -> Any:
        return [len(self.text), self.copies]


def memory(text: str, kind: str, size: int, gigabytes: float) -> dict[str, Any]:
    """The whole way from documents to stores in this process, in a new cache."""
    from paribus.data.tokens.prepare import Data, Plan

    copies = round(gigabytes * 1e9 / len(text.encode()))
    with tempfile.TemporaryDirectory() as place:
        plan = Plan(Repeated(text, copies, Blingfire()), KINDS[kind](size), Path(place))
        start = time.perf_counter()
        text_of = plan.text
        Tokenizer.load(plan.tokenizer_folder)
        trained, before = time.perf_counter() - start, peak()
        built = seconds(lambda: plan.store_folder)
        stores = {path.name: store.TokenStore(path) for path in plan.store_folder.iterdir()}
        data = Data(dict(stores), plan.tokenizer_folder, plan.plain)
        return {
            "kind": kind,
            "characters": sum(text_of.characters.values()),
            "tokens": sum(found.tokens for found in data.stores.values()),
            "read_and_train_seconds": round(trained, 1),
            "build_seconds": round(built, 1),
            "peak_mb_after_training": before,
            "peak_mb": peak(),
        }


def peak() -> int:
    """Largest resident memory so far in megabytes, of this process or of a child."""
    both = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return max(both) // 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "memory"))
    parser.add_argument("text", type=Path, help="a text file, one paragraph a line")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--size", type=int, default=8192, help="entries of the vocabulary")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    given = parser.parse_args()
    text = given.text.read_text(encoding="utf-8")
    for kind in given.kinds:
        if given.what == "speed":
            print(json.dumps(speed(text, kind, given.size, given.rounds)), flush=True)
        else:
            print(json.dumps(memory(text, kind, given.size, given.gigabytes)), flush=True)


if __name__ == "__main__":
    main()
