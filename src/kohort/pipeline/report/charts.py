# SPDX-License-Identifier: Apache-2.0
"""What all charts of the page have in common: an axis of time in UTC, names as rows, as wide as the
screen. Colours and fonts are the page's, which knows whether it is dark.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import altair as alt

ROW_PX = 22
SEVERAL: Final = "tableau10"
MANY: Final = "tableau20"

_TIME = "datum.value"
_CLOCK = (
    f"utcFormat({_TIME}, utcmilliseconds({_TIME}) ? '%S.%L' : utcseconds({_TIME}) ? '%H:%M:%S' : "
    f"utchours({_TIME}) + utcminutes({_TIME}) ? '%H:%M' : '%b %-d')"
)
_STEPS_S = (
    *(1, 2, 5, 10, 15, 30),
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600 * hours for hours in (1, 2, 3, 6, 12)),
    *(86400 * days for days in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
)
_DURATION = (
    "datum.value >= 86400 ? datum.value / 86400 + ' d' : "
    "datum.value >= 3600 ? datum.value / 3600 + ' h' : "
    "datum.value >= 60 ? datum.value / 60 + ' min' : datum.value + ' s'"
)


def times(field: str, domain: tuple[int, int] | None = None) -> alt.X:
    """The axis of time. Several charts with one domain can be compared."""
    scale = alt.Scale(type="utc", domain=list(domain)) if domain else alt.Scale(type="utc")
    ticks = alt.Axis(
        title=None, grid=True, tickCount=alt.ExprRef("ceil(width / 90)"), labelExpr=_CLOCK
    )
    return alt.X(f"{field}:T", scale=scale, axis=ticks)


def durations(most: float) -> alt.Axis:
    """An axis of seconds up to `most`, with steps that clocks know."""
    if most <= 1:
        return alt.Axis(title=None, tickCount=5, labelExpr=_DURATION)
    return alt.Axis(title=None, values=_ticks(most, _STEPS_S), labelExpr=_DURATION)


def amounts(most: float) -> alt.Axis:
    """An axis of whole numbers up to `most`."""
    steps = (digit * 10**power for power in range(19) for digit in (1, 2, 5))
    return alt.Axis(title=None, values=_ticks(most, steps), format="~s")


def _ticks(most: float, steps: Iterable[int]) -> list[int]:
    """From 0 to beyond `most`, in the smallest of the steps with which that takes few."""
    step = next((size for size in steps if size * 6 >= most), int(most / 6) + 1)
    return [step * number for number in range(int(most // step) + 2)]


def names(field: str, order: Sequence[str], *, label_px: int | None = None) -> alt.Y:
    """A row for each name, in this order; names may be as wide as `label_px`, or the page's."""
    axis = alt.Axis(grid=True) if label_px is None else alt.Axis(grid=True, labelLimit=label_px)
    return alt.Y(f"{field}:N", sort=list(order), title=None, axis=axis)


def tooltip(fields: Mapping[str, str]) -> list[alt.Tooltip]:
    """What a touch shows: field -> title. Texts and numbers as they are."""
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in fields.items()]


def finished(
    chart: alt.Chart | alt.LayerChart | alt.FacetChart,
    rows: Sequence[Mapping[str, Any]],
    height: int,
) -> dict[str, Any]:
    """The specification with its data, as wide as its place."""
    spec: dict[str, Any] = chart.properties(width="container", height=height).to_dict(
        validate=False
    )
    for unneeded in ("config", "datasets"):
        spec.pop(unneeded, None)
    _without_data(spec)
    spec["data"] = {"values": list(rows)}
    spec["autosize"] = {"type": "fit-x", "contains": "padding", "resize": True}
    return spec


def _without_data(spec: dict[str, Any]) -> None:
    spec.pop("data", None)
    for layer in spec.get("layer", ()):
        _without_data(layer)
