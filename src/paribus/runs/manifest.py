"""The manifest of a study at a scale, `<study>/<scale>.json`: which runs make the sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.checksums import parse, verify
from paribus.core.console import say
from paribus.core.files import alone, is_name, write_sealed
from paribus.runs.archive import open_stores


class Manifest(NamedTuple):
    """Which runs make the sweep: `runs` {arm/seed<k>: signature}, `steps` {arm: planned optimizer steps}, or
    {arm/seed<k>: them} in a sweep with a universe.

    `absent`: {arm: why no machine has run it}. `until`: if seeds are added until the claims are decided, {first, most:
    how many seeds at the first and the last look, seeds: those of the latest look, settled: arms that it gave none}.
    `tuning`: the JSON of `sweeps.tuning.Tuning`, empty if no arm was tuned. `settings`: those of a universe as they
    were drawn, {number: {factor: the text of its value}}. `lock`: if the runs confirm a frozen sweep, {hash, commit,
    generation, seeds} of its lock.
    """

    sweep_hash: str
    overrides: list[str]
    runs: dict[str, str]
    steps: dict[str, int]
    absent: Mapping[str, str] = {}
    until: dict[str, Any] | None = None
    tuning: Mapping[str, Any] = {}
    settings: Mapping[str, Mapping[str, str]] = {}
    lock: Mapping[str, Any] = {}

    def holds(self, label: str, signature: str) -> bool:
        """Whether a run, such as `dynamic/seed0`, belongs to the sweep under this signature."""
        return self.runs.get(label) == signature

    def arms(self) -> set[str]:
        return {label.rpartition("/seed")[0] for label in self.runs}


def find_manifest(roots: Sequence[Path], study: str, scale: str) -> Manifest | None:
    """The manifest of the first root that has one."""
    return next((manifest for root in roots if (manifest := read_manifest(root, study, scale))), None)


def read_manifest(root: Path, study: str, scale: str) -> Manifest | None:
    """The manifest of a study at a scale, or None if there is none that can be read."""
    if (content := read_manifest_file(root, study, scale)) is None:
        return None
    if (manifest := _parse(content)) is None:
        say(f"{root / study / scale}.json is damaged and ignored; `paribus run` rewrites it")
    return manifest


def read_manifest_file(root: Path, study: str, scale: str) -> bytes | None:
    """As JSON, whatever it holds."""
    contents = (store.read_manifest(scale) for store in open_stores(root, study))
    return next((content for content in contents if content is not None), None)


def _parse(content: bytes) -> Manifest | None:
    try:
        fields = parse(content.decode("utf-8"))
        if "checksum" in fields and not verify(fields):  # older ones have none
            return None
        manifest = Manifest(**{key: value for key, value in fields.items() if key != "checksum"})
    except (ValueError, TypeError, AttributeError):
        return None
    kinds = (str, list, dict, dict, Mapping)
    if not all(isinstance(part, kind) for part, kind in zip(manifest, kinds, strict=False)):
        return None
    labels = (str(label).rpartition("/seed") for label in manifest.runs)
    return manifest if all(is_name(arm) and seed.isdecimal() for arm, _, seed in labels) else None


def write_manifest(root: Path, study: str, scale: str, manifest: Manifest) -> Manifest:
    """Write a manifest and return it; the runs of an older one of the same sweep, overrides and lock stay in it."""
    with alone(root / study):
        old = read_manifest(root, study, scale)
        same_lock = old is not None and old.lock.get("hash") == manifest.lock.get("hash")
        if old is not None and same_lock and old[:2] == manifest[:2]:  # both as one; the new one counts if they differ
            tuning = manifest.tuning
            if tuning and old.tuning.get("spec") == tuning["spec"]:
                tuning = {**tuning, "arms": {**old.tuning["arms"], **tuning["arms"]}}
            runs, steps = {**old.runs, **manifest.runs}, {**old.steps, **manifest.steps}
            settings = {**old.settings, **manifest.settings}
            manifest = manifest._replace(
                runs=runs, steps=steps, until=manifest.until or old.until, tuning=tuning, settings=settings
            )
        ran = manifest.arms()  # another machine may have run an absent arm
        manifest = manifest._replace(absent={arm: why for arm, why in manifest.absent.items() if arm not in ran})
        if manifest != old:
            optional = ("absent", "until", "tuning", "settings", "lock")
            given = {key: value for key, value in manifest._asdict().items() if value or key not in optional}
            write_sealed(root / study / f"{scale}.json", given)
    return manifest
