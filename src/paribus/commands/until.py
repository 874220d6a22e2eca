"""`paribus run SWEEP --until-decided [max_seeds=12]`: adds seeds while a claim is open, at a kept error rate."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.reporting.tables.assemble import made_of
from paribus.runs.store import first_manifest
from paribus.sweeps.request import Request
from paribus.verdict.sequential import FIRST, Looks


def run_until_decided(request: Request, most: int, run: Callable[[Request], int]) -> int:
    """Run seeds and look at the table after each, from the third to the one that decides all claims, or the last.

    The looks are on the manifest, so that every table of these runs tests at the level that keeps the error rate.

    Args:
        most: seeds at the last look.
        run: does a sweep with the seeds of its request; returns 0, or 1 where a run failed, which ends it.

    Raises:
        UserError: for a sweep without claims, for one that was looked at by another plan, and as `run` does.
    """
    if not request.sweep.claims:
        raise UserError(f"{request.sweep.path} has no claims", "without one there is nothing to decide")
    looks = _planned(request, most)
    for seeds in _growing(request.sweep.seeds_at(request.scale), looks):
        until = {"first": looks.first, "most": looks.most, "seeds": list(seeds)}
        if status := run(request._replace(seeds=seeds, until=until)):
            return status
        waiting = open_claims(made_of(request.sweep, request.scale, request.study, request.roots)["claims"])
        say(f"look after {len(seeds)} of at most {looks.most} seeds: {'; '.join(waiting) or 'nothing is open'}")
        if not waiting:
            break
    return 0


def _planned(request: Request, most: int) -> Looks:
    """Raises UserError where the sweep was looked at by another plan: what that plan spent cannot be spent again."""
    manifest = first_manifest(request.roots, request.named, request.scale)
    if manifest is None or manifest.until is None or manifest.sweep_hash != request.sweep.hash(request.scale):
        return Looks(FIRST, most)
    if (before := int(manifest.until["most"])) != most:
        mend = f"go on with max_seeds={before}, or give the runs another name with study="
        raise UserError(f"max_seeds={most}, but this sweep was looked at with max_seeds={before}", mend)
    return Looks(int(manifest.until["first"]), before)


def _growing(own: Sequence[int], looks: Looks) -> Iterator[tuple[int, ...]]:
    """The seeds of each look: those of the scale in their order, then the smallest that are not among them."""
    others = (seed for seed in itertools.count() if seed not in own)
    seeds = list(itertools.islice(itertools.chain(own, others), looks.most))
    return (tuple(seeds[:n]) for n in range(looks.first, looks.most + 1))


def open_claims(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is said of each of a table's claims that more seeds may decide."""
    return [f"{claim['text']}: {claim['said']}" for claim in claims if claim["open"]]
