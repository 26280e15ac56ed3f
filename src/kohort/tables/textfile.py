# SPDX-License-Identifier: Apache-2.0
"""What a check has found for Prometheus: a file that node_exporter's textfile collector reads.

It reads at any moment, so the file is written under a name that it skips and then renamed. Where
nothing could be judged the file says so: an old one would go on telling that all is well.
"""

import math
import os
from datetime import datetime
from pathlib import Path

from kohort.errors import KohortError
from kohort.tables.judging import Verdict
from kohort.tables.thresholds import State

HELP = {
    "kohort_check_worst": "The worst state: 0 ok, 1 warning, 2 critical, 3 unknown.",
    "kohort_check_timestamp_seconds": "When the tables were checked.",
    "kohort_check_tables_as_of_seconds": "The moment that lag and status are of.",
    "kohort_check_state": "Each rule and group: 0 ok, 1 warning, 2 critical, 3 unknown.",
    "kohort_check_value": "What was judged, in records, seconds or rebalances; absent if unknown.",
    "kohort_check_value_at_least": "The least that the true value may be; absent if unknown.",
    "kohort_check_value_at_most": "The most that the true value may be; +Inf if nobody knows.",
}
"""Every metric, all of them gauges."""


def text(verdict: Verdict | None, now: datetime) -> str:
    """The metrics; None for tables that could not be judged."""
    worst = State.UNKNOWN if verdict is None else verdict.state
    samples = {
        "kohort_check_worst": [("", float(worst))],
        "kohort_check_timestamp_seconds": [("", now.timestamp())],
    }
    if verdict is not None:
        samples["kohort_check_tables_as_of_seconds"] = [
            (_labels(cluster=name), at.timestamp())
            for name, at in verdict.clusters.items() or [(None, verdict.as_of)]
            if at is not None
        ]
        labels = [
            (_labels(rule=finding.rule, group=finding.group, cluster=finding.cluster), finding)
            for finding in verdict.findings
        ]
        samples["kohort_check_state"] = [(name, float(finding.state)) for name, finding in labels]
        samples["kohort_check_value"] = [
            (name, float(finding.value)) for name, finding in labels if finding.value is not None
        ]
        bounded = [
            (name, finding.figure)
            for name, finding in labels
            if finding.figure is not None and finding.value is not None
        ]
        samples["kohort_check_value_at_least"] = [
            (name, float(figure.low)) for name, figure in bounded if figure.low is not None
        ]
        samples["kohort_check_value_at_most"] = [
            (name, math.inf if figure.high is None else float(figure.high))
            for name, figure in bounded
        ]
    return "".join(
        f"# HELP {metric} {HELP[metric]}\n# TYPE {metric} gauge\n"
        + "".join(f"{metric}{label} {_number(value)}\n" for label, value in values)
        for metric, values in samples.items()
        if values
    )


def write(path: Path, verdict: Verdict | None, now: datetime) -> None:
    """Replace the file as a whole. Raises KohortError: it cannot be written."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            aside.write_text(text(verdict, now), encoding="utf-8")
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        raise KohortError(f"{path} cannot be written: {error.strerror}") from error


def _labels(**values: str | None) -> str:
    labels = [f'{name}="{_escaped(value)}"' for name, value in values.items() if value is not None]
    return "{" + ",".join(labels) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf"  # as the text format of Prometheus has it
    return str(int(value)) if value.is_integer() else repr(value)
