"""Adding seeds to a sweep until its claims are decided, at a controlled error rate."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.runs.manifest import find_manifest
from paribus.runs.store import find_records
from paribus.sweeps.request import Request
from paribus.sweeps.sweep import SCRATCH, Sweep
from paribus.verdict.rules import find_word
from paribus.verdict.sequential import FIRST, Looks

Claims = Sequence[Mapping[str, Any]]


def run_until_decided(
    request: Request, most: int, run: Callable[[Request], int], judge: Callable[[Request], Claims]
) -> int:
    """Run three seeds, or those that the sweep ran before, or all settings of its universe, then one more at a time in
    the arms of the claims that are still open. Stop as soon as every claim is decided; if arms are requested, every
    claim about them alone.

    The manifest records the looks, so that every table of these runs tests at the level that controls the error rate.

    Args:
        request: with the seeds in their order, if they are not those of the scale and then the smallest others.
        most: seeds at the last look.
        run: runs the arms and seeds of a request; returns 0, or 1 if a run failed, which ends the loop.
        judge: the claims of a request's table.

    Raises:
        UserError: for a sweep without claims about the requested arms, for one whose looks were planned differently,
            and as `run` does.
    """
    sweep = request.sweep
    if not sweep.claims:
        raise UserError(f"{sweep.path} has no claims", "add a claim to the file")
    needed = {claim: sweep.find_needed(claim) for claim in sweep.claims}
    arms = None
    if request.arms is not None:
        needed = {claim: of_claim for claim, of_claim in needed.items() if of_claim <= {*request.arms, SCRATCH}}
        if not needed:
            raise UserError(f"no claim is about {', '.join(request.arms)} alone", "name all arms of a claim in arms=")
        arms = _join_arms(sweep, needed.values())
    looks = _plan_looks(request, most)
    unit = "settings" if sweep.universes else "seeds"
    of_scale = sweep.seeds_at(request.scale)  # in their order, then the smallest that are not among them
    others = (seed for seed in itertools.count() if seed not in of_scale)
    listed = list(itertools.islice(request.seeds or itertools.chain(of_scale, others), looks.most))
    for seeds in (tuple(listed[:count]) for count in range(looks.first, looks.most + 1)):
        settled = [] if arms is None else [arm for arm in sweep.arms if arm not in arms]
        until = {"first": looks.first, "most": looks.most, "seeds": list(seeds), "settled": settled}
        if status := run(request._replace(arms=arms, seeds=seeds, until=until)):
            return status
        claims = [claim for claim in judge(request) if claim["text"] in needed]
        waiting = [claim for claim in claims if claim["open"]]
        left = waiting or [claim for claim in claims if not find_word(claim["verdict"]).decides]
        said = "; ".join(f"{claim['text']}: {claim['said']}" for claim in left) or "every claim is decided"
        said = said if waiting or not left else f"more {unit} decide none of {said}"
        say(f"after {len(seeds)} of at most {looks.most} {unit}: {said}")
        if not waiting:
            break
        arms = _join_arms(sweep, [needed[claim["text"]] for claim in waiting])
    return 0


def _join_arms(sweep: Sweep, needed: Iterable[Collection[str]]) -> tuple[str, ...]:
    """All arms that claims need, the model from scratch last."""
    arms = {arm for of_claim in needed for arm in of_claim}
    return tuple(arm for arm in (*sweep.arms, SCRATCH) if arm in arms)


def find_first_look(request: Request, most: int) -> int:
    """How many seeds the first look has if none ran before. Raises UserError if there may be fewer."""
    universe = request.sweep.universe_at(request.scale)
    first = FIRST if universe is None else universe.count  # its settings fill their ranges together
    if most < first:
        raise UserError(f"max_seeds={most}, but the universe has {first} settings", f"set max_seeds={first + 8}")
    return first


def _plan_looks(request: Request, most: int) -> Looks:
    """The first look is at all seeds that ran before, since a table of them may have been read, and at all settings of
    a universe.

    Raises UserError if more seeds than `most` ran before, or if earlier looks were planned for another number of seeds:
    their error rate is spent.
    """
    first = find_first_look(request, most)
    manifest = find_manifest(request.roots, request.study_name, request.scale)
    if manifest is None or manifest.sweep_hash != request.sweep.hash(request.scale):
        return Looks(first, most)
    if manifest.until is None:
        records = find_records(request.study_name, request.scale, request.roots).records
        if (ran := len({record.seed for record in records})) > most:
            raise UserError(
                f"max_seeds={most}, but {ran} seeds of {request.study_name} ran before", f"set max_seeds={ran + 1}"
            )
        return Looks(max(first, ran), most)
    if (before := int(manifest.until["most"])) != most:
        mend = f"resume with max_seeds={before}, or start over with study=NAME"
        raise UserError(f"max_seeds={most}, but this sweep began with max_seeds={before}", mend)
    return Looks(int(manifest.until["first"]), before)
