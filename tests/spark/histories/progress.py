# SPDX-License-Identifier: Apache-2.0
"""Commits, offsets, rates, lag, status and what may be deleted, held against the truth.

A check takes the truth and the tables' rows of its groups, and tells what is wrong, a sentence
each. Silence means that all is right.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from tests.spark.histories.replay import AS_OF
from tests.spark.histories.truth import Between, Truth

Rows = list[dict[str, Any]]
Gold = Mapping[str, Rows]
Key = tuple[str, str, int]

CLOCK_MS = 20  # a record's time is that of its request's arrival, or of the write
EXACT = 0.02  # seconds
MARKER_MS = 3000  # a marker is written after the end of its transaction was acknowledged
TOPIC_GONE_MS = 10_000  # and offsets of a deleted topic after the deletion was


class Event(NamedTuple):
    """What shall be in the log about one committed offset."""

    offset: int | None  # None: it was removed
    written: Between
    state: str
    effective: Between | None


def events(truth: Truth) -> dict[Key, list[Event]]:
    """What shall be in `commits`, in order, per group, topic and partition."""
    found: dict[Key, list[Event]] = defaultdict(list)
    group_of: dict[str, str] = {}
    in_open: dict[str, list[Key]] = {}  # member -> what its open transaction is about
    for step in truth.steps:
        done = Between(step["before"], step["after"])
        group = step.get("group") or group_of.get(step.get("member", ""), "")
        match step["do"]:
            case "Start":
                group_of[step["member"]] = group
            case "Commit" | "AdminCommit":
                for index, offset in step["offsets"].items():
                    key = group, step["topic"], int(index)
                    found[key].append(Event(offset, done, "committed", done))
            case "Transaction":
                state = {"commit": "committed", "abort": "aborted", "open": "pending"}[step["end"]]
                took = Between(done.first_ms, done.last_ms + MARKER_MS)
                for index, offset in step["offsets"].items():
                    key = group, step["topic"], int(index)
                    effective = took if state == "committed" else None
                    found[key].append(Event(offset, done, state, effective))
                    if state == "pending":
                        in_open.setdefault(step["member"], []).append(key)
            case "Finish":
                for key in in_open.pop(step["member"]):
                    _finish(found[key], step, done)
            case "DeleteOffsets":
                for index in step["partitions"]:
                    found[group, step["topic"], index].append(Event(None, done, "removed", done))
            case "DeleteGroup":
                _remove(found, done, lambda key, group=group: key[0] == group)
            case "DropTopic":
                gone = Between(done.first_ms, done.last_ms + TOPIC_GONE_MS)
                _remove(found, gone, lambda key, topic=step["topic"]: key[1] == topic)
    return found


def _finish(history: list[Event], step: dict[str, Any], done: Between) -> None:
    """The pending event is decided: a later commit of the same partition has overtaken it."""
    at = max(index for index, event in enumerate(history) if event.state == "pending")
    took = Between(done.first_ms, done.last_ms + MARKER_MS)
    if step["end"] == "abort":
        history[at] = history[at]._replace(state="aborted")
    elif at < len(history) - 1:
        history[at] = history[at]._replace(state="superseded")
    else:
        history[at] = history[at]._replace(state="committed", effective=took)


def _remove(found: dict[Key, list[Event]], done: Between, concerns: Any) -> None:
    for key, history in found.items():
        if concerns(key) and current(history) is not None:
            history.append(Event(None, done, "removed", done))


def current(history: list[Event]) -> Event | None:
    """The event that counts now; None when nothing is committed."""
    counting = [one for one in history if one.state in {"committed", "removed"}]
    return counting[-1] if counting and counting[-1].state == "committed" else None


def ms(at: datetime) -> float:
    return at.timestamp() * 1000


def by_key(rows: Rows) -> dict[Key, Rows]:
    found: dict[Key, Rows] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["offset"]):
        found[row["group_id"], row["topic"], row["topic_partition"]].append(row)
    return found


def commits(truth: Truth, gold: Gold) -> Iterator[str]:
    expected, shown = events(truth), by_key(gold["commits"])
    for key in expected.keys() | shown.keys():
        wanted = [(one.offset, one.state) for one in expected.get(key, ())]
        rows = shown.get(key, [])
        if wanted != [(row["committed_offset"], row["state"]) for row in rows]:
            seen = [(row["committed_offset"], row["state"]) for row in rows]
            yield f"{key}: {seen}, expected {wanted}"
            continue
        for one, row in zip(expected[key], rows, strict=True):
            for name in ("timestamp", "commit_timestamp"):
                if row[name] is not None and not one.written.holds(ms(row[name]), CLOCK_MS):
                    yield f"{key} {one}: {name} {ms(row[name])}"
            known = truth.end["topic_ids"].get(key[1])
            if row["topic_id"] not in {None, known or row["topic_id"]}:
                yield f"{key} {one}: topic id {row['topic_id']}, expected {known}"
            if row["metadata"] not in {None, ""}:
                yield f"{key} {one}: metadata {row['metadata']}"
            if (row["effective_at"] is None) != (one.effective is None):
                yield f"{key} {one}: took effect at {row['effective_at']}"
            elif one.effective and not one.effective.holds(ms(row["effective_at"]), CLOCK_MS):
                yield f"{key} {one}: took effect at {ms(row['effective_at'])}"


def offsets(truth: Truth, gold: Gold) -> Iterator[str]:
    shown = by_key(gold["offsets"])
    for key, rows in shown.items():
        if len(rows) != 1:
            yield f"{key} has {len(rows)} rows"
    seen = {
        key: rows[-1]["committed_offset"]
        for key, rows in shown.items()
        if rows[-1]["committed_offset"] is not None
    }
    if seen != truth.offsets:
        yield f"{seen}, expected {truth.offsets}"
    expected = events(truth)
    pending = {
        key for key, history in expected.items() if any(one.state == "pending" for one in history)
    }
    if {key for key, rows in shown.items() if rows[-1]["pending"]} != pending:
        yield f"{pending} have open transactions"
    for key in seen.keys() & expected.keys():
        event, at = current(expected[key]), shown[key][-1]["committed_at"]
        if event is None or not event.effective.holds(ms(at), CLOCK_MS):
            yield f"{key}: committed at {ms(at)}, expected {event}"


def commit_rates(truth: Truth, gold: Gold) -> Iterator[str]:
    expected, shown = events(truth), by_key(gold["commit_rates"])
    for key, history in expected.items():
        counting = [one for one in history if one.state in {"committed", "removed"}]
        steps = [
            (before, one)
            for before, one in zip([None, *counting], counting, strict=False)
            if one.state == "committed"
        ]
        rows = shown.get(key, [])
        if len(rows) != len(steps):
            yield f"{key}: {len(rows)} rows, expected {len(steps)}"
            continue
        for (before, one), row in zip(steps, rows, strict=True):
            yield from _rate(key, before, one, row)


def _rate(key: Key, before: Event | None, one: Event, row: dict[str, Any]) -> Iterator[str]:
    if before is None or before.offset is None:
        if any(row[name] is not None for name in ("seconds", "records", "is_reset")):
            yield f"{key} {one}: {row}, expected nothing before it"
        return
    if not one.effective.holds(ms(row["effective_at"]), CLOCK_MS):
        yield f"{key} {one}: took effect at {ms(row['effective_at'])}"
    if row["committed_offset"] != one.offset:
        yield f"{key} {one}: committed {row['committed_offset']}"
    moved = one.offset - before.offset
    least = (one.effective.first_ms - before.effective.last_ms - CLOCK_MS) / 1000
    most = (one.effective.last_ms - before.effective.first_ms + CLOCK_MS) / 1000
    if row["records"] != moved or row["is_reset"] != (moved < 0):
        yield f"{key} {one}: moved by {row['records']}, reset {row['is_reset']}; expected {moved}"
    if not least <= row["seconds"] <= most:
        yield f"{key} {one}: {row['seconds']} s since the last, expected {least} to {most}"
    rate = row["records_per_second"]
    if moved >= 0 and row["seconds"] > 0 and abs(rate * row["seconds"] - moved) > 1e-6:
        yield f"{key} {one}: {rate} records per second, expected {moved} in {row['seconds']}"
    if moved < 0 and rate is not None:
        yield f"{key} {one}: {rate} records per second after a reset"


def lag(truth: Truth, gold: Gold) -> Iterator[str]:
    expected = events(truth)
    partitions = [row for row in gold["lag"] if row["level"] == "partition"]
    for row in partitions:
        if row["topic"] in truth.topics:
            yield from _lag_then(truth, expected, row)
    shown = {
        (row["group_id"], row["topic"], row["topic_partition"]): row
        for row in partitions
        if row["at"] == AS_OF
    }
    ends = {(topic, index): end for topic, index, end in truth.end["end_offsets"]}
    total: dict[str, int] = defaultdict(int)
    for (group, topic, index), committed in truth.offsets.items():
        row = shown.get((group, topic, index), {})
        end = ends[topic, index]
        total[group] += max(end - committed, 0)
        if (row.get("committed_offset"), row.get("end_offset")) != (committed, end):
            yield f"{group} {topic}-{index}: {row}, expected {committed} of {end}"
        elif (row["reason"] == "beyond_end") != (committed > end):
            yield f"{group} {topic}-{index}: {committed} of {end}: {row['reason']}"
    yield from _levels(gold["lag"])
    for group, behind in total.items():
        mine = [
            row["lag_records"]
            for row in gold["lag"]
            if row["level"] == "group" and row["group_id"] == group and row["at"] == AS_OF
        ]
        if mine != [behind]:
            yield f"{group}: lag of the group {mine}, expected {behind}"


def _lag_then(
    truth: Truth, expected: Mapping[Key, list[Event]], row: dict[str, Any]
) -> Iterator[str]:
    """What one row says, against what was committed and produced by then."""
    key = row["group_id"], row["topic"], row["topic_partition"]
    about = f"{key} at {ms(row['at'])}"
    committed, end = row["committed_offset"], row["end_offset"]
    possible = _committed_by(expected.get(key, []), ms(row["at"]))
    if committed not in possible:
        yield f"{about}: {committed} is committed, expected one of {possible}"
    times = truth.produced.get(key[1:], [])
    if end is None:
        if times and times[0] + CLOCK_MS < ms(row["at"]):
            yield f"{about}: no end, expected {len(times)}"
        return
    least = sum(at + CLOCK_MS < ms(row["at"]) for at in times)
    most = sum(at <= ms(row["at"]) for at in times)
    if not least <= end <= most:
        yield f"{about}: end {end}, expected {least} to {most}"
    if committed is None:
        return
    if row["lag_records"] != max(end - committed, 0):
        yield f"{about}: lag {row['lag_records']}, expected {end} - {committed}"
    waiting = ms(row["at"]) - times[committed] if committed < end else 0.0
    seconds, error = row["lag_seconds"], row["lag_seconds_error"]
    bound = (error or 0) + CLOCK_MS / 1000 if committed < end else 0.0
    if error is not None and error > EXACT and committed < end:
        yield f"{about}: {seconds} s +- {error}, the folder of the topic tells the time exactly"
    if seconds is None or error is None or abs(seconds - waiting / 1000) > bound:
        yield f"{about}: {seconds} s +- {error}, expected {waiting / 1000}"


def _levels(rows: Rows) -> Iterator[str]:
    """Topics and groups are the sums of their partitions, and as late as the latest of them."""
    parts: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for row in rows:
        if row["level"] == "partition":
            parts[row["group_id"], None, row["at"]].append(row)
            parts[row["group_id"], row["topic"], row["at"]].append(row)
    sums = [row for row in rows if row["level"] != "partition"]
    keys = [(row["group_id"], row["topic"], row["at"]) for row in sums]
    if len(set(keys)) != len(keys) or set(keys) != set(parts):
        yield f"{len(keys)} rows of topics and groups, expected {len(parts)}"
        return
    for key, row in zip(keys, sums, strict=True):
        known = [one for one in parts[key] if one["lag_records"] is not None]
        late = [one["lag_seconds"] for one in parts[key] if one["lag_seconds"] is not None]
        wanted = {
            "lag_records": sum(one["lag_records"] for one in known) if known else None,
            "lag_seconds": max(late, default=None),
            "partitions": len(parts[key]),
            "partitions_unknown": len(parts[key]) - len(known),
        }
        seen = {name: row[name] for name in wanted}
        if seen != wanted:
            yield f"{key}: {seen}, expected {wanted}"


def _committed_by(history: list[Event], at_ms: float) -> set[int | None]:
    """What may be committed at this moment: steps take their time, and so do markers."""
    possible: set[int | None] = {None}
    for event in history:
        if event.effective is None or event.effective.first_ms - CLOCK_MS > at_ms:
            continue
        if event.effective.last_ms + CLOCK_MS < at_ms:
            possible = set()
        possible.add(event.offset)
    return possible


VERDICTS = {
    "up": ("OK", "OK"),
    "behind": ("WARN", "WARN"),
    "stalled": ("STALL", "STALL"),
    "stopped": ("STOP", "STOP"),
    "reset": ("REWIND", "REWIND"),
}
"""What the groups of the script `steady` are, by the rules of Burrow and by ours."""


def status(truth: Truth, gold: Gold) -> Iterator[str]:
    rows = gold["status"]
    for group in {group for group, *_ in truth.offsets}:
        found = {
            row["rules"]: row["status"]
            for row in rows
            if row["group_id"] == group and row["level"] == "partition" and row["at"] == AS_OF
        }
        if set(found) != {"burrow", "kohort"}:
            yield f"{group}: judged by {sorted(found)}"
        wanted = VERDICTS.get(group.rpartition("-")[2]) if truth.name == "steady" else None
        if wanted is not None and (found.get("burrow"), found.get("kohort")) != wanted:
            yield f"{group}: {found}, expected {wanted}"


def deletable_groups(truth: Truth, gold: Gold) -> Iterator[str]:
    """As of the end of the history nobody has been idle for long enough."""
    return _deletable(truth, gold["deletable_groups"], days_later=False)


def deletable_later(truth: Truth, gold: Gold) -> Iterator[str]:
    """More than a week later everybody without members and transactions has."""
    return _deletable(truth, gold["deletable_later"], days_later=True)


def _deletable(truth: Truth, rows: Rows, *, days_later: bool) -> Iterator[str]:
    shown = {row["group_id"]: row for row in rows}
    listed = truth.end["described"]
    if shown.keys() != listed.keys():
        yield f"{sorted(shown)}, expected {sorted(listed)}"
    expected = events(truth)
    for group in shown.keys() & listed.keys():
        row, members = shown[group], listed[group]["members"]
        blockers = set(row["blockers"])
        if row["deletable"] != (not blockers):
            yield f"{group}: deletable {row['deletable']} with {blockers}"
        if ("members" in blockers) != bool(members) or row["members"] != len(members):
            yield f"{group}: {row['members']} members, {blockers}, expected {len(members)}"
        open_ = any(
            one.state == "pending"
            for key, history in expected.items()
            for one in history
            if key[0] == group
        )
        if ("pending_transaction" in blockers) != open_:
            yield f"{group}: {blockers}, transaction open: {open_}"
        if row["deletable"] != (days_later and not members and not open_):
            yield f"{group}: deletable {row['deletable']}: {row['reason']}"
        kept = {
            (one["topic"], one["topic_partition"]): one["committed_offset"]
            for one in row["offsets"] or ()
            if one["committed_offset"] is not None
        }
        wanted = {key[1:]: to for key, to in truth.offsets.items() if key[0] == group}
        if kept != wanted:
            yield f"{group}: offsets {kept}, expected {wanted}"
        last = [
            event.effective
            for key, history in expected.items()
            if key[0] == group and (event := current(history)) is not None
        ]
        newest = max(last, default=None, key=lambda one: one.first_ms)
        if (newest is None) != (row["last_commit_at"] is None) or (
            newest and not newest.holds(ms(row["last_commit_at"]), CLOCK_MS)
        ):
            yield f"{group}: last commit at {row['last_commit_at']}, expected {newest}"
        if days_later and row["days_idle"] is not None and row["days_idle"] < 7:
            yield f"{group}: idle for {row['days_idle']} days, expected more than seven"
