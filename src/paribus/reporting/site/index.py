"""The first page: the user's own tables, verdicts by scale, every contrast on one axis, then a row per claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

from paribus.reporting.ladder import rate_stability
from paribus.reporting.site.claims import (
    CLAIMED,
    Line,
    find_weakest,
    list_scales,
    render_effects,
    render_source,
    render_verdicts,
    tell_below,
)
from paribus.reporting.site.collect import Entry
from paribus.reporting.site.cost import NO_COST, add_hours, describe_cost, describe_tuning, format_hours
from paribus.reporting.site.forest import render_forest
from paribus.reporting.site.frame import Row, render_frame, render_link, render_list, render_search
from paribus.reporting.site.searches import Search, render_searches
from paribus.reporting.tables.html import make_slug, render_verdict
from paribus.verdict.claims import OWNERS
from paribus.verdict.published import ids
from paribus.verdict.words import NOT_RUN, WORDS, find_word

COLUMNS = {"claim": "claim", "verdict": "verdict", "effect": "measured", "cost": "cost", "study": "table"}
COSTS = {  # heading: what stands behind the number on a phone
    "pre-training": "of pre-training",
    "pre-training per decided claim": "of it per decided claim",
    "fine-tuning": "of fine-tuning",
}
SCALES = {
    "test": "seconds, to see that a sweep works",
    "smoke": "minutes on two cores, too small for most claims",
    "cpu": "hours on two cores, mostly 2-layer models",
    "gpu": "a day at most on one GPU",
    "paper": "the paper's own setting",
}
OWN = {"table": "table", "verdict": "verdicts", "runs": "runs"}
WAITING = {"claim": "claim", "study": "table", "source": "source"}
_SAME = {"stable": "stable over scales", "changes": "changes with the scale"}


def render_index(entries: Sequence[Entry], lines: Sequence[Line], searches: Sequence[Search]) -> bytes:
    """The page at index.html."""
    body = [*_render_body(entries, lines), *render_searches(searches)]
    return render_frame("index.html", "Paribus: claims and verdicts", body)


def _render_body(entries: Sequence[Entry], lines: Sequence[Line]) -> Iterator[str]:
    ran, waiting = [line for line in lines if line.measured], [line for line in lines if not line.measured]
    own = [entry for entry in entries if not entry.committed]
    ran.sort(key=lambda line: line.measured[-1][0].committed)
    yield "<h1>Does the published choice hold here?</h1>"
    yield (
        '<p class="lead">Each table trains models of text in several ways, its arms, over the same seeds. Claims are '
        "fixed before their first run; a table says so if its sweep file has changed since then. A margin is the "
        "smallest difference that matters. A verdict holds only at its scale; each number links to its runs.</p>"
    )
    scales = [one for one in reversed(list_scales(entries)) if any(entry.scale == one for entry in entries)]
    known = "; ".join(f"{scale}: {SCALES[scale]}" for scale in scales if scale in SCALES)
    yield f'<p class="lead">Scales: {escape(known)}.</p>' if known else ""
    places = {"#own": "Your tables", "#contrasts": "Contrasts", "#claims": "Claims"}
    yield f"<p>{' · '.join(render_link(*each) for each in places.items() if own or each[0] != '#own')}</p>"
    if own:
        yield '<h2 id="own">Your tables</h2>'
        yield render_list(OWN, [_render_own(entry) for entry in own], "Your tables", sortable=False)
        yield f"<h2>{'All tables' if len(own) < len(entries) else 'Verdicts'}</h2>"
    yield _render_counts(entries, lines, scales)
    yield '<h2 id="contrasts">Every measured contrast</h2>'
    yield '<p class="lead">Effect divided by margin. To the right, the arm that the claim names first is better.</p>'
    yield from render_forest(lines)
    yield '<h2 id="claims">Claims</h2>'
    yield render_search({
        "verdict": ("every verdict", [word.name for word in WORDS.all()]),
        "scale": ("every scale", list_scales(entries)),
        "paper": ("every paper", sorted({line.authors for line in lines})),
        "whose": ("whoever's claim", [*OWNERS, CLAIMED]),
    })  # fmt: skip
    yield render_list(COLUMNS, [_render_row(line) for line in ran], "Claims with a measured contrast")
    yield f'<p class="below">{render_link("claims.md", "The same as Markdown")}</p>'
    yield from _render_waiting(entries, waiting)


def _render_own(entry: Entry) -> Row:
    """A table of the user's, with a verdict per claim."""
    told = (
        (render_verdict(claim.verdict, escape(claim.word)), claim.says or claim.text) for claim in entry.table.claims
    )
    said = "".join(f'<span class="found">{verdict} {escape(text)}</span>' for verdict, text in told)
    name = render_link(f"{entry.place}/index.html", f"{entry.study} at {entry.scale} scale")
    runs = sum(record.done for record in entry.found.records)
    return Row([f'<span class="say">{name}</span>', said, str(runs)], {})


def _render_waiting(entries: Sequence[Entry], waiting: Sequence[Line]) -> Iterator[str]:
    """What has no run, folded: claims of sweeps, and published tables."""
    papers = len(ids()) - len({entry.table.paper.table for entry in entries if entry.table.paper})
    parts = {f"{len(waiting)} claims": waiting, f"{papers} published tables": papers}
    head = " and ".join(part for part, some in parts.items() if some)
    if not head:
        return
    listed = render_list(WAITING, [_render_claim_to_run(line) for line in waiting], "Claims that were not run")
    atlas = f"<p>The tables are at the end of {render_link('published/index.html', 'Papers')}.</p>"
    body = (atlas if papers else "") + (listed if waiting else "")
    yield f"<details><summary>Not run yet: {head}</summary>{body}</details>"


def _render_counts(entries: Sequence[Entry], lines: Sequence[Line], scales: Sequence[str]) -> str:
    """Verdicts at each of the scales; claims about identical arms are counted separately."""
    words = [word.name for word in WORDS.all() if word.name != NOT_RUN]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("scale", *words))
    head += "".join(f'<th scope="col" class="cost">{name}</th>' for name in COSTS)
    own = [line for line in lines if not line.of_twins]
    rows = "".join(_render_scale(scale, words, own, entries) for scale in scales)
    twins = Counter(claim.verdict for line in lines if line.of_twins for _, claim in line.entries)
    aside = "; ".join(f"{count} {verdict}" for verdict, count in sorted(twins.items()))
    asides = [said for scale in scales if (said := _tell_below(scale, own))]
    asides += [f"Not counted: A/A tests of two identical arms ({aside})."] if twins else []
    below = "".join(f'<p class="below">{escape(text)}</p>' for text in asides)
    caption = '<caption class="unseen">Claims by verdict at each scale</caption>'
    return f'<table class="counts">{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{below}'


def _tell_below(scale: str, lines: Sequence[Line]) -> str:
    return tell_below([claim for line in lines for entry, claim in line.entries if entry.scale == scale], scale)


def _render_scale(scale: str, words: Sequence[str], lines: Sequence[Line], entries: Sequence[Entry]) -> str:
    found = [claim.verdict for line in lines for entry, claim in line.entries if entry.scale == scale]
    counts = Counter(found)
    cells = "".join(
        f'<td class="v-{make_slug(word)}" data-name="{escape(word)}">'
        f"{render_link(f'#verdict={word}&scale={scale}&whose={CLAIMED}', str(counts[word]))}</td>"
        for word in words
    )
    records = [record for entry in entries if entry.scale == scale for record in entry.found.records]
    hours = add_hours(records)
    decided = sum(find_word(verdict).decides for verdict in found)
    each = format_hours({unit: value / decided for unit, value in hours.items()}) if decided else ""
    costs = "".join(
        f'<td class="cost" data-name="{name}">{escape(text)}</td>'
        for name, text in zip(COSTS.values(), (format_hours(hours), each, describe_tuning(records)), strict=True)
    )
    return f'<tr><th scope="row">{escape(scale)}</th>{cells}{costs}</tr>'


def _render_row(line: Line) -> Row:
    entry, claim = line.measured[-1]
    arms = {arm for row in claim.contrasts for arm in (row.arm, row.versus)}
    cost = describe_cost(record for record in entry.found.records if record.arm in arms)
    stability = _SAME.get(rate_stability([one.verdict for _, one in line.entries]), "")
    verdicts = render_verdicts(line) + (f'<span class="small">{stability}</span>' if stability else "")
    study = f'<span class="name">{render_link(f"{entry.place}/index.html", line.study)}</span>'
    cells = [_render_claim(line), verdicts, render_effects(line), escape(cost or NO_COST), study]
    weakest = find_weakest(claim)
    return Row(cells, _describe_row(line), [None, claim.verdict, f"{weakest[1]:.6g}" if weakest else ""])


def _render_claim_to_run(line: Line) -> Row:
    return Row([_render_claim(line), escape(line.study), render_source(line)], _describe_row(line))


def _render_claim(line: Line) -> str:
    """The plain sentence, who claims it, and its source."""
    said = ", ".join(part for part in (OWNERS[line.claim.whose or ""], render_source(line)) if part)
    owner = f'<span class="small">{said}</span>' if line.claim.says else ""
    return f'<span class="say">{render_link(line.place, line.claim.says or line.claim.text)}</span><br>{owner}'


def _describe_row(line: Line) -> dict[str, str]:
    """The attributes to search and filter a row by."""
    shown = [(entry.scale, claim.verdict) for entry, claim in line.entries] or [("", NOT_RUN)]
    at = ";".join(f"{scale}:{verdict}" for scale, verdict in shown)
    words = [line.study, line.claim.sentence, line.claim.text, line.authors, at.replace(":", " ")]
    return {"text": " ".join(words).lower(), "paper": line.authors, "whose": line.claim.whose or "", "at": at}
