# SPDX-License-Identifier: Apache-2.0
"""A page of HTML in one file: nothing is loaded from anywhere, and no text can become markup.

Texts come from the log, and anybody who may join a group can choose them. So every text goes
through `escape`, and every value that a script reads through `json_of`, which leaves no `<` in it.
Both show what has no shape of its own: a name must not turn the order of the letters beside it.
"""

import html
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from kohort.escaping import visible
from kohort.pipeline.report.library import library

_RANGE = """<form id="range" hidden aria-label="time shown in the charts">
<b>Charts show</b>
<button type="button" data-seconds="0">all</button>
<button type="button" data-seconds="604800">last 7 d</button>
<button type="button" data-seconds="86400">last 24 h</button>
<button type="button" data-seconds="3600">last hour</button>
<label>from <input type="datetime-local" step="1" name="from"></label>
<label>to <input type="datetime-local" step="1" name="to"></label> UTC</form>"""


HATCHED = "url(#hatched)"
"""What charts may fill something with, beside colours."""
_HATCH = """<svg width="0" height="0" aria-hidden="true"><defs>
<pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)"><rect width="6" height="6"/><path d="M1.5 0V6"/></pattern>
</defs></svg>"""


class Html(str):
    """Markup that is finished: put on the page as it is."""

    __slots__ = ()


class Heading(NamedTuple):
    """A column of a table. `style` is a class of the style sheet: `number`, `time`, `name`."""

    text: str
    style: str = ""


class Tile(NamedTuple):
    """A figure of the summary, what it counts, and how it looks: `good`, `warn`, `bad` or plain."""

    value: str
    text: str
    style: str = ""


class Section(NamedTuple):
    """A part of the page with a heading of its own, which the list on top leads to."""

    key: str
    title: str
    content: tuple[Html, ...]


def escape(text: str) -> str:
    """A text as HTML that shows every character of it."""
    return html.escape(visible(text, spaces=True))


def document(
    title: str, top: Iterable[Html], sections: Sequence[Section], foot: str, mark: str = ""
) -> str:
    """The whole page. `mark` is not shown: it says what the page was made of."""
    links = "".join(
        f'<a href="#{escape(section.key)}">{escape(section.title)}</a>' for section in sections
    )
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        *([f'<meta name="kohort" content="{escape(mark)}">'] if mark else []),
        f"<title>{escape(title)}</title>",
        f"<style>{_resource('page.css')}</style></head><body>",
        f"<header><h1>{escape(title)}</h1>",
        *top,
        f"<nav>{links}</nav></header>",
        _HATCH,
        _RANGE,
        "<noscript><p class='note'>The charts need JavaScript; the tables do not.</p></noscript>",
    ]
    for section in sections:
        parts.append(f'<section id="{escape(section.key)}"><h2>{escape(section.title)}</h2>')
        parts += section.content
        parts.append("</section>")
    parts += [
        f"<footer>{escape(foot)}</footer>",
        f"<script>{library()}</script>",
        f"<script>{_resource('page.js')}</script>",
        "</body></html>",
    ]
    return "\n".join(parts)


def paragraph(text: str, style: str = "") -> Html:
    """A paragraph of plain text."""
    return Html(
        f'<p class="{escape(style)}">{escape(text)}</p>' if style else f"<p>{escape(text)}</p>"
    )


def empty(text: str) -> Html:
    """What stands where there is nothing to show, and why there is nothing."""
    return paragraph(text, "empty")


def tagged(text: str, style: str) -> Html:
    """A word in the colour of good, warn or bad."""
    return Html(f'<b class="{escape(style)}">{escape(text)}</b>')


def heading(text: str) -> Html:
    """A heading within a section."""
    return Html(f"<h3>{escape(text)}</h3>")


def tiles(figures: Iterable[Tile]) -> Html:
    """The figures of the summary."""
    inside = "".join(
        f'<div class="tile {escape(tile.style)}"><b>{escape(tile.value)}</b>'
        f"<span>{escape(tile.text)}</span></div>"
        for tile in figures
    )
    return Html(f'<div class="tiles">{inside}</div>')


def table(headings: Sequence[Heading], rows: Iterable[Sequence[str]]) -> Html:
    """A table that scrolls by itself on a narrow screen. An `Html` in a cell stays as it is."""
    head = "".join(f'<th class="{column.style}">{escape(column.text)}</th>' for column in headings)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{column.style}" data-label="{escape(column.text)}">'
            f"{cell if isinstance(cell, Html) else escape(cell)}</td>"
            for column, cell in zip(headings, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return Html(
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def fold(summary: str, content: Iterable[Html]) -> Html:
    """What is shown when somebody opens it. `summary` is plain text, or finished markup."""
    line = summary if isinstance(summary, Html) else escape(summary)
    inside = "".join(content)
    return Html(f"<details><summary>{line}</summary>{inside}</details>")


def search(what: str) -> Html:
    """A field that leaves those folds of its section whose summary has what is typed."""
    return Html(
        f'<p class="search" hidden><input type="search" aria-label="{escape(what)}" '
        f'placeholder="{escape(what)}"> <span class="quiet"></span></p>'
    )


def dated(text: str, at_ms: int) -> Html:
    """A paragraph about a moment. A script says behind it how long that is ago."""
    return Html(f'<p class="quiet">{escape(text)}<span class="age" data-at="{at_ms}"></span></p>')


def figure(key: str, caption: str, spec: dict[str, Any]) -> Html:
    """A chart: its caption, its place, and the specification that the script draws there."""
    return Html(
        f'<figure id="{escape(key)}"><figcaption>{escape(caption)}</figcaption>'
        f'<div class="chart"></div>'
        f'<script type="application/json">{json_of(spec)}</script></figure>'
    )


def json_of(value: Any) -> str:
    """JSON that may stand in a script element: without `<`, nothing in it can end the element."""
    text = json.dumps(_shown(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c")


def _shown(value: Any) -> Any:
    match value:
        case str():
            return visible(value, spaces=True)
        case dict():
            return {key: _shown(one) for key, one in value.items()}
        case list() | tuple():
            return [_shown(one) for one in value]
    return value


def _resource(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
