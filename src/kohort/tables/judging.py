# SPDX-License-Identifier: Apache-2.0
"""What the tables say by the rules of `pipeline check`: a finding for each rule and group.

What is not known is a finding too, of the state UNKNOWN, and so is a value that may be fine or not:
a lower bound below a threshold, or one whose error reaches beyond it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from kohort.figures import Figure, Number, beside, counted, duration, figure
from kohort.pipeline.format.arrow_reader import NoGroupError
from kohort.tables.snapshots import Snapshot, Snapshots, about
from kohort.tables.thresholds import RULES, Limit, Rules, State, worst
from kohort.tables.walking import Opens, answered

_STATUSES: dict[str | None, int | None] = {
    "OK": 0,
    "WARN": 1,
    "UNKNOWN": None,
    "NOTFOUND": None,
    None: None,
}
"""Of a group; anything else is worse than WARN."""
_WORSE = 2
NO_MEMBERS = "no_members"
"""The rule of `status` that has a grace: while a group is deployed it is empty."""
_WORDS = {
    "lag_unknown": "its lag is not known",
    "lag_allowed": "it has read everything",
    "beyond_end": "it has committed more than there is",
    "records_lost": "records were removed before it has read them",
    NO_MEMBERS: "records wait, and it has no members",
    "rewound": "its offset has gone back",
    "stopped": "records wait, and it commits nothing any more",
    "stalled": "it commits one offset again and again, and records wait behind it",
    "slowing": "it falls further and further behind",
    "single_commit": "records wait, and one commit does not tell whether it is at work",
    "caught_up": "it has caught up",
    "progress": "it reads on",
}
"""The rules of both sets of `status` in words."""
_STAYS = {"members", "pending_transaction", "not_a_consumer_group"}
"""Blockers of `deletable_groups` with which no group expires."""


@dataclass(frozen=True)
class Finding:
    """How one thing is by one rule. Without a group it is about the tables."""

    rule: str
    group: str | None
    state: State
    value: float | None
    """In the unit of the rule; None for unknown."""
    limit: Limit
    why: str
    cluster: str | None = None
    """Where several are checked: its name, or the directory where not even that can be read."""
    figure: Figure | None = None
    """The value with its bound and its reason, where those are not in `why` alone."""


@dataclass(frozen=True)
class Verdict:
    """All that was found, the worst first."""

    findings: tuple[Finding, ...]
    as_of: datetime | None
    """The moment that the tables tell of; of several clusters the earliest."""
    checked_at: datetime
    clusters: Mapping[str, datetime | None] = field(default_factory=dict)
    """Where several are checked, the moment of each."""

    @property
    def state(self) -> State:
        """The worst of all; without any finding nothing is known."""
        return (
            worst([finding.state for finding in self.findings]) if self.findings else State.UNKNOWN
        )


def judge(snapshot: Snapshot, rules: Rules, now: datetime, groups: Iterable[str] = ()) -> Verdict:
    """Apply the rules to tables, at a moment. With `groups` only to these.

    Raises TablesError: nothing is known of a group that is asked for.
    """
    wanted = list(dict.fromkeys(groups))
    if wanted:
        snapshot.tables.check_groups(wanted)
    found = [finding for rule in RULES for finding in _OF_RULES[rule](snapshot, rules, now, wanted)]
    judged = {(finding.rule, finding.group) for finding in found}
    for rule in ("lag_records", "lag_seconds", "status"):
        for group in wanted:
            limit = rules.limit_or_none(rule, group)
            if limit is not None and not {(rule, group), (rule, None)} & judged:
                found.append(_unknown(rule, group, limit, "the tables have no row of it"))
    return Verdict(_in_order(found), snapshot.as_of, now)


def judge_all(
    directories: Sequence[str | Path],
    opens: Opens,
    rules: Rules,
    now: datetime,
    groups: Sequence[str] = (),
) -> Verdict:
    """Apply the rules to the tables of several clusters, at a moment, or of one. A directory that
    cannot be read is a finding of the rule `tables`, and unknown.

    Raises KohortError: none of them can be read, or nothing is known of a group anywhere.
    """

    def ask(found: Snapshots) -> list[tuple[str | None, Verdict]]:
        found.check_groups(groups)
        return [
            (member.cluster, _judged(member, rules, now, groups, alone=len(directories) == 1))
            for member in found.members
        ]

    judged, lost = answered(directories, ask, opens)
    if len(directories) == 1:
        return judged[0][1]
    findings = [
        replace(finding, cluster=cluster)
        for cluster, verdict in judged
        for finding in verdict.findings
    ]
    clusters = {cluster or "": verdict.as_of for cluster, verdict in judged}
    for absent in lost:
        # Of two directories of one cluster the second is no other cluster.
        named = absent.directory if absent.cluster in {None, *clusters} else absent.cluster
        unread = Finding("tables", None, State.UNKNOWN, None, Limit(), absent.why, named)
        findings.append(unread)
    times = [at for at in clusters.values() if at is not None]
    return Verdict(_in_order(findings), min(times, default=None), now, clusters)


def _judged(
    member: Snapshot, rules: Rules, now: datetime, groups: Sequence[str], *, alone: bool
) -> Verdict:
    """One of several clusters, by those of the groups that it has."""
    with about(member):
        if alone or not groups:
            return judge(member, rules, now, groups)
        known = [group for group in groups if _has(member, group)]
        return judge(member, rules, now, known) if known else Verdict((), member.as_of, now)


def _has(member: Snapshot, group: str) -> bool:
    try:
        member.tables.check_groups([group])
    except NoGroupError:
        return False
    return True


def _in_order(found: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(
        sorted(
            found,
            key=lambda finding: (
                -finding.state.severity,
                finding.rule,
                finding.group or "",
                finding.cluster or "",
            ),
        )
    )


def _age(snapshot: Snapshot, rules: Rules, now: datetime, _groups: list[str]) -> Iterator[Finding]:
    limit = rules.limit_or_none("age")
    if limit is None:
        return
    if snapshot.as_of is None:
        yield _unknown("age", None, limit, "no run has computed tables yet")
        return
    age = (now - snapshot.as_of).total_seconds()
    text = f"lag, status and the like are those of {_text(snapshot.as_of)}, {duration(age)} ago"
    yield Finding("age", None, limit.state(age), age, limit, text)


def _lag_records(
    snapshot: Snapshot, rules: Rules, _now: datetime, groups: list[str]
) -> Iterator[Finding]:
    for row, limit in _lag_rows("lag_records", snapshot, rules, groups):
        if row is None:
            yield _missing("lag_records", "lag", limit)
        else:
            yield _of_lag("lag_records", row, limit, _amount)


def _lag_seconds(
    snapshot: Snapshot, rules: Rules, _now: datetime, groups: list[str]
) -> Iterator[Finding]:
    for row, limit in _lag_rows("lag_seconds", snapshot, rules, groups):
        if row is None:
            yield _missing("lag_seconds", "lag", limit)
        else:
            yield _of_lag("lag_seconds", row, limit, duration)


def _of_lag(rule: str, row: dict[str, Any], limit: Limit, number: Number) -> Finding:
    """What a figure of `lag` is by a rule: where its bound reaches beyond a threshold, unknown."""
    found = figure("lag", rule, row)
    text = found.text(number, " behind")
    if row["partitions_unknown"] and row["partitions"] != 1:
        text += f"; {row['partitions_unknown']} of {row['partitions']} partitions are not known"
    if found.value is None:
        text = f"its lag is {text}"
        return Finding(rule, row["group_id"], State.UNKNOWN, None, limit, text, figure=found)
    state = limit.state(found.value)
    if found.high is None or limit.state(found.high) is not state:
        state = _at_least(state)
    return Finding(rule, row["group_id"], state, found.value, limit, text, figure=found)


def _amount(records: float) -> str:
    return counted(records, "record")


def _lag_rows(
    rule: str, snapshot: Snapshot, rules: Rules, groups: list[str]
) -> Iterator[tuple[dict[str, Any] | None, Limit]]:
    """The newest rows of groups that the rule is applied to; None for a table that is not there."""
    if not _is_applied(rule, rules):
        return
    if "lag" not in snapshot.names:
        yield None, Limit()
        return
    of_groups = pc.field("level") == "group"
    values = ["lag_records", "lag_seconds"]
    columns = ["group_id", "at", "partitions", *values, *beside("lag", values)]
    moments = [pc.max(batch.column(0)).as_py() for batch in snapshot.scan("lag", columns=["at"])]
    newest = max((moment for moment in moments if moment is not None), default=None)
    now = of_groups & (pc.field("at") == newest)
    for row in snapshot.read("lag", columns=columns, group=groups or None, where=now).to_pylist():
        limit = rules.limit_or_none(rule, row["group_id"])
        if limit is not None:
            yield row, limit


def _status(
    snapshot: Snapshot, rules: Rules, _now: datetime, groups: list[str]
) -> Iterator[Finding]:
    if not _is_applied("status", rules):
        return
    if "status" not in snapshot.names:
        yield _missing("status", "status", Limit())
        return
    ours = pc.field("rules") == rules.judge
    columns = ["group_id", "level", "status", "rule", "lag_records"]
    rows = snapshot.read("status", columns=columns, group=groups or None, where=ours).to_pylist()
    unknown = Counter(
        row["group_id"]
        for row in rows
        if row["level"] == "partition" and _STATUSES.get(row["status"], 0) is None
    )
    deserted = [
        row["group_id"] for row in rows if row["level"] == "group" and row["rule"] == NO_MEMBERS
    ]
    empty_s = _empty_for(snapshot, deserted)
    for row in rows:
        group = row["group_id"]
        limit = rules.limit_or_none("status", group)
        if row["level"] != "group" or limit is None:
            continue
        value = _STATUSES.get(row["status"], _WORSE)
        text = f"{_WORDS.get(row['rule'], row['rule'])} ({row['status']}, {row['rule']})"
        left_for = empty_s.get(group) if row["rule"] == NO_MEMBERS else None
        if left_for is not None and left_for <= rules.grace_s:
            text += f", for {duration(left_for)} only, of {duration(rules.grace_s)} that it has"
            value = 0
        if value is None:
            yield _unknown("status", group, limit, text)
            continue
        state = limit.state(value)
        if unknown[group]:
            text += f", {unknown[group]} partitions are not known"
            state = _at_least(state)
        yield Finding("status", group, state, value, limit, text)


def _empty_for(snapshot: Snapshot, groups: list[str]) -> dict[str, float]:
    """Group -> for how many seconds it has had no members at the moment of the tables, where the
    record that emptied it has a time.
    """
    if not groups or snapshot.as_of is None or "group_state" not in snapshot.names:
        return {}
    columns = ["group_id", "members", "timestamp"]
    found = {}
    for row in snapshot.read("group_state", columns=columns, group=groups).to_pylist():
        since = row["timestamp"]
        if since is not None and not row["members"] and since <= snapshot.as_of:
            found[row["group_id"]] = (snapshot.as_of - since).total_seconds()
    return found


def _rebalances(
    snapshot: Snapshot, rules: Rules, _now: datetime, groups: list[str]
) -> Iterator[Finding]:
    if not _is_applied("rebalances", rules):
        return
    if not {"rebalances", "group_state"} <= {*snapshot.names} or snapshot.as_of is None:
        yield _missing("rebalances", "rebalances", Limit())
        return
    since = snapshot.as_of - timedelta(seconds=rules.window_s)
    times = ["started_at", "started_before", "ended_at", "started_after"]
    counts: Counter[str] = Counter()
    for batch in snapshot.scan("rebalances", columns=["group_id", *times], group=groups or None):
        at = pc.coalesce(*(batch.column(name) for name in times))
        recent = pc.and_(pc.greater(at, since), pc.less_equal(at, snapshot.as_of))
        counts.update(batch.filter(recent).column("group_id").to_pylist())
    columns = ["group_id", "state", "complete_from", "partition"]
    known = snapshot.read("group_state", columns=columns, group=groups or None).to_pylist()
    whole = snapshot.whole_partitions
    for row in known:
        group, count = row["group_id"], counts[row["group_id"]]
        limit = rules.limit_or_none("rebalances", group)
        if limit is None or (row["state"] == "Dead" and not count):
            continue
        text = f"{counted(count, 'rebalance')} in {duration(rules.window_s)}"
        state = limit.state(count)
        is_complete = row["complete_from"] is not None and row["complete_from"] <= since
        if not (is_complete or row["partition"] in whole):
            text = f"at least {text}: the log does not tell all of that time"
            state = _at_least(state)
        yield Finding("rebalances", group, state, count, limit, text)


def _expiring(
    snapshot: Snapshot, rules: Rules, now: datetime, groups: list[str]
) -> Iterator[Finding]:
    if not _is_applied("expiring", rules):
        return
    if "deletable_groups" not in snapshot.names:
        yield _missing("expiring", "deletable_groups", Limit())
        return
    columns = ["group_id", "type", "members", "expires_at", "blockers"]
    for row in snapshot.read("deletable_groups", columns=columns, group=groups or None).to_pylist():
        group = row["group_id"]
        limit = rules.limit_or_none("expiring", group)
        if limit is None:
            continue
        if row["expires_at"] is not None:
            left = (row["expires_at"] - now).total_seconds()
            text = f"the broker forgets it on {_text(row['expires_at'])}, if nobody comes back"
            yield Finding("expiring", group, limit.state(left, below=True), left, limit, text)
        elif _STAYS & {*(row["blockers"] or ())}:
            yield Finding("expiring", group, State.OK, None, limit, "it does not expire as it is")
        else:
            text = "when it expires is not known: give `pipeline run` the cluster's --retention"
            yield _unknown("expiring", group, limit, text)


def _is_applied(rule: str, rules: Rules) -> bool:
    return rule in rules.limits or any(group.limits.get(rule) for group in rules.groups)


def _at_least(state: State) -> State:
    """What is known of a value that may be worse."""
    return State.UNKNOWN if state is State.OK else state


def _unknown(rule: str, group: str | None, limit: Limit, why: str) -> Finding:
    return Finding(rule, group, State.UNKNOWN, None, limit, why)


def _missing(rule: str, table: str, limit: Limit) -> Finding:
    text = f"there is no table {table} yet: the next `kohort pipeline run` computes it"
    return _unknown(rule, None, limit, text)


def _text(at: datetime) -> str:
    return at.isoformat(" ", "seconds").removesuffix("+00:00") + " UTC"


_OF_RULES = {
    "lag_records": _lag_records,
    "lag_seconds": _lag_seconds,
    "status": _status,
    "rebalances": _rebalances,
    "expiring": _expiring,
    "age": _age,
}
