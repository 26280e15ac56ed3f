# SPDX-License-Identifier: Apache-2.0
"""A figure is measured on both servers in rounds; what counts is the median ratio in a round."""

from dataclasses import asdict, dataclass, field
from statistics import median, quantiles
from typing import Any


@dataclass
class Figure:
    """One line of the table. Entry i of `kohort` and of `kafka` were measured in the same round.

    `goal` is a bound for Kohort : Kafka, from below when more is better, else from above.
    """

    name: str
    unit: str
    more_is_better: bool
    goal: float | None = None
    kohort: list[float] = field(default_factory=list)
    kafka: list[float] = field(default_factory=list)
    note: str = ""

    def add(self, server: str, value: float) -> None:
        (self.kafka if server == "kafka" else self.kohort).append(value)

    @property
    def ratios(self) -> list[float]:
        return [ours / theirs for ours, theirs in zip(self.kohort, self.kafka, strict=False)]

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without a goal or without Kafka."""
        if self.goal is None or not self.ratios:
            return None
        ratio = median(self.ratios)
        return ratio >= self.goal if self.more_is_better else ratio <= self.goal

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratios": self.ratios, "met": self.met}

    def row(self) -> list[str]:
        goal = ""
        if self.goal is not None:
            goal = f"{'>=' if self.more_is_better else '<='} {number(self.goal)}"
        verdict = {True: "met", False: "MISSED", None: ""}[self.met]
        return [
            self.name,
            self.unit,
            middle(self.kohort),
            middle(self.kafka),
            spread(self.ratios),
            goal,
            verdict,
            self.note,
        ]


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def middle(values: list[float]) -> str:
    return number(median(values)) if values else "-"


def spread(ratios: list[float]) -> str:
    if not ratios:
        return "-"
    text = f"{median(ratios):.2f}"
    if len(ratios) > 2:
        low, _, high = quantiles(ratios, n=4)
        text += f" [{low:.2f}-{high:.2f}]"
    return text


HEAD = ["measure", "unit", "Kohort", "Kafka", "Kohort : Kafka", "goal", "", "note"]


def table(figures: list[Figure]) -> str:
    rows = [HEAD, *(figure.row() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])
