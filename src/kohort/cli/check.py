# SPDX-License-Identifier: Apache-2.0
"""`kohort pipeline check`: are the groups well? For cron, Nagios and Prometheus. No Spark, no Java.

Its exit code is what Nagios knows: 0 for fine, 1 for a warning, 2 for critical, 3 for unknown. So
what cannot be judged ends with 3, a wrong call too.
"""

from argparse import ArgumentParser, Namespace
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kohort.cli.arguments import add_group, add_out, count, require
from kohort.cli.command import Command, complain, error_fields, print_result, reason
from kohort.cli.render import Cell, Output
from kohort.errors import KohortError

if TYPE_CHECKING:
    from kohort.tables.judging import Finding, Verdict
    from kohort.tables.thresholds import Rules

UNKNOWN = 3
LISTED = 50
"""How many findings a terminal gets, and the mail of a cron job."""
OPTIONS = {
    "lag_records": ("1000,10000", "records that a group is behind"),
    "lag_seconds": ("5m,1h", "the same in time"),
    "status": ("on|off", "its status: WARN is a warning, what is worse is critical (default on)"),
    "rebalances": ("10,30", "rebalances of a group in an hour (default 10,30)"),
    "expiring": ("2d,12h", "time until the broker forgets a group"),
    "age": ("2h,1d", "age of the tables (default 2h,1d)"),
}
"""Rule -> an example of its option, and what it is about."""


class Check(Command):
    """`kohort pipeline check`."""

    help: ClassVar[str] = "say whether all groups are well, with an exit code for Nagios"
    notes: ClassVar[str] = (
        "Exit code: 0 all is well, 1 a warning, 2 critical, 3 unknown. What is not known is never "
        "told as well. Rules are off until they have thresholds, but for those with defaults."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort pipeline check --out groups --lag-records 1000,10000",
        "kohort pipeline check --out groups --rules rules.toml --prometheus groups.prom",
    )

    def configure(self, parser: ArgumentParser) -> None:
        parser.set_defaults(wrong_call=UNKNOWN)  # 2 would be critical
        add_out(parser, several=True)
        parser.add_argument(
            "--rules", type=Path, metavar="FILE", help="thresholds out of a TOML file"
        )
        for rule, (example, about) in OPTIONS.items():
            parser.add_argument(
                f"--{rule.replace('_', '-')}",
                dest=rule,
                metavar=example.upper() if rule == "status" else "WARN,CRIT",
                help=about if rule == "status" else f"{about}, such as {example}; or off",
            )
        parser.add_argument(
            "--grace",
            metavar="TIME",
            help="how long a group may have no members before that is critical (default 5m)",
        )
        add_group(parser, "only this group; may be repeated")
        parser.add_argument(
            "--limit",
            type=count,
            metavar="N",
            help="list at most N findings, the worst first (default 50, and all in JSON)",
        )
        parser.add_argument(
            "--prometheus", type=Path, metavar="FILE", help="write metrics for a textfile collector"
        )
        parser.add_argument(
            "--format",
            choices=("table", "json"),
            default="table",
            help="table for people and Nagios (default), json for programs",
        )

    def main(self, args: Namespace) -> int:
        return print_result(lambda output: _check(args, output), args.format)


def _check(args: Namespace, output: Output) -> int:
    verdict = None
    try:
        verdict = _verdict(args)
    except (KohortError, OSError) as error:
        complain(reason(error))
        if not output.is_table:
            output.json({"state": "UNKNOWN", "exit_code": UNKNOWN, **error_fields(error)})
        else:
            output.line(f"UNKNOWN - {reason(error)}")
    if args.prometheus is not None:
        from kohort.tables.textfile import write

        try:
            write(args.prometheus, verdict, datetime.now(UTC))
        except KohortError as error:
            complain(reason(error))
            if verdict is not None and verdict.state == 0:
                return UNKNOWN
    if verdict is None:
        return UNKNOWN
    limit = args.limit
    if not output.is_table:
        _tell_json(verdict, output, limit)
    else:
        _tell(verdict, output, LISTED if limit is None else limit)
    return int(verdict.state)


def _verdict(args: Namespace) -> "Verdict":
    require("tables")
    from kohort import tables

    return tables.check(args.out, _rules(args), group=args.group)


def _rules(args: Namespace) -> "Rules":
    from kohort.tables.thresholds import Rules, load, of_text, seconds

    rules = Rules() if args.rules is None else load(args.rules)
    if args.grace is not None:
        rules = replace(rules, grace_s=seconds("--grace", args.grace))
    given = {rule: getattr(args, rule) for rule in OPTIONS}
    return rules.with_(
        {rule: of_text(rule, text) for rule, text in given.items() if text is not None}
    )


def _tell(verdict: "Verdict", output: Output, limit: int) -> None:
    """A line that says it all, as Nagios shows it, and a table of what is not well."""
    counts = Counter(finding.state.name for finding in verdict.findings)
    states = ("CRITICAL", "WARNING", "UNKNOWN", "OK")
    listed = ", ".join(f"{counts[state]} {state.lower()}" for state in states if counts[state])
    first = next(iter(verdict.findings), None)
    about = "" if first is None or not first.state else f": {_where(first)}{first.why}"
    output.line(f"{verdict.state.name} - {listed or 'nothing was checked'}{about}")
    bad = [finding for finding in verdict.findings if finding.state]
    if bad:
        told = ("CLUSTER",) if any(finding.cluster for finding in bad) else ()
        output.table(
            ("STATE", "RULE", "GROUP", *told, "WHAT", "WARNING", "CRITICAL"),
            [
                (
                    *(finding.state.name, finding.rule, finding.group),
                    *(finding.cluster for _ in told),
                    *(finding.why, *_shown(finding)),
                )
                for finding in bad[:limit]
            ],
            spare=("WARNING", "CRITICAL"),
        )
    if len(bad) > limit:
        output.line(f"… and {len(bad) - limit:,} more: --limit N lists N, --format json all")


def _where(finding: "Finding") -> str:
    group = f" of {finding.group}" if finding.group else ""
    cluster = f" in {finding.cluster}" if finding.cluster else ""
    return f"{finding.rule}{group}{cluster}, "


def _bounds(finding: "Finding") -> tuple[float | None, float | None]:
    if finding.rule == "status":
        return None, None
    return finding.limit.warning, finding.limit.critical


def _shown(finding: "Finding") -> list[Cell]:
    """The thresholds, as options have them."""
    from kohort.tables.thresholds import DURATIONS

    is_time = finding.rule in DURATIONS
    return [
        None if bound is None else _time_text(bound) if is_time else f"{bound:g}"
        for bound in _bounds(finding)
    ]


def _time_text(seconds: float) -> str:
    sizes = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
    unit = next((letter for letter, size in sizes.items() if not seconds % size), "s")
    return f"{seconds / sizes[unit]:g}{unit}"


def _tell_json(verdict: "Verdict", output: Output, limit: int | None) -> None:
    output.json(
        {
            "state": verdict.state.name,
            "exit_code": int(verdict.state),
            "as_of": verdict.as_of and _time(verdict.as_of),
            "checked_at": _time(verdict.checked_at),
            **({"clusters": _moments(verdict)} if verdict.clusters else {}),
            "findings": [_fields(finding) for finding in verdict.findings[:limit]],
        }
    )


def _fields(finding: "Finding") -> dict[str, Any]:
    from kohort.tables.thresholds import RULES

    warning, critical = _bounds(finding)
    return {
        "state": finding.state.name,
        "rule": finding.rule,
        "group_id": finding.group,
        **({} if finding.cluster is None else {"cluster": finding.cluster}),
        "value": finding.value,
        "unit": RULES.get(finding.rule) or None,
        **_bound(finding),
        "warning": warning,
        "critical": critical,
        "why": finding.why,
    }


def _bound(finding: "Finding") -> dict[str, Any]:
    """What the value is to the truth: the range that the truth is in, null where it has no end."""
    found = finding.figure
    if found is None:
        return {}
    return {"at_least": found.low, "at_most": found.high, "reason": found.reason}


def _moments(verdict: "Verdict") -> dict[str, str | None]:
    return {cluster: None if at is None else _time(at) for cluster, at in verdict.clusters.items()}


def _time(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
