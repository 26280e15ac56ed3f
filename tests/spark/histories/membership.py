# SPDX-License-Identifier: Apache-2.0
"""State of groups, members, assignments and rebalances, held against the truth.

A check takes the truth and the tables' rows of its groups, and tells what is wrong, a sentence
each. Silence means that all is right.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

from tests.spark.histories.truth import Life, Truth, Window

Rows = list[dict[str, Any]]
Gold = Mapping[str, Rows]
Place = tuple[str, int]  # topic, partition

CLOCK_MS = 20
SESSION_MS = 4000  # what members of classic groups ask for
TOLD_MS = 2000  # what the coordinator has written reaches a member with its next heartbeat
PROVEN = {"join", "migration", "subscription change"}
"""Causes that the log always tells: a row may not say `unknown` instead."""


def ms(at: datetime) -> float:
    return at.timestamp() * 1000


def holds_at(row: dict[str, Any], at_ms: float) -> bool:
    return ms(row["valid_from"]) <= at_ms and (
        row["valid_to"] is None or ms(row["valid_to"]) > at_ms
    )


def group_state(truth: Truth, gold: Gold) -> Iterator[str]:
    shown = {row["group_id"]: row for row in gold["group_state"]}
    if len(shown) != len(gold["group_state"]):
        yield "a group has several rows"
    there = {name: row for name, row in shown.items() if row["state"] != "Dead"}
    described, listed = truth.end["described"], truth.end["groups"]
    if there.keys() != described.keys():
        yield f"{sorted(there)} are there, expected {sorted(described)}"
    for group in there.keys() & described.keys():
        row, told = there[group], described[group]
        members = told["members"].values()
        wanted = {
            "group_type": told["type"],
            "state": told["state"],
            "protocol_type": listed[group]["protocol_type"],
            "members": len(members),
            "classic_members": sum(one["type"] == "classic" for one in members),
            "assignment_epoch": told["assignment_epoch"],
        }
        if told["type"] == "consumer":
            wanted["epoch"] = told["group_epoch"]
        if told["type"] == "classic":
            wanted["protocol"] = told["assignor"] or None
        seen = {name: row[name] for name in wanted}
        if seen != wanted:
            yield f"{group}: {seen}, expected {wanted}"
        if row["protocol"] not in {None, told["assignor"]}:
            yield f"{group}: protocol {row['protocol']}, expected {told['assignor']}"
        leads = told["type"] == "classic" and bool(members)
        if row["leader"] not in (told["members"] if leads else {None}):
            yield f"{group}: leader {row['leader']}"


def members(truth: Truth, gold: Gold) -> Iterator[str]:
    of_group: dict[str, Rows] = defaultdict(list)
    for row in gold["members"]:
        of_group[row["group_id"]].append(row)
    for seen in truth.stable():
        now = [row for row in of_group[seen["group"]] if holds_at(row, seen["answered"])]
        found = {row["member_id"]: _as_described(row) for row in now}
        wanted = {
            member_id: _expected(seen["described"], member)
            for member_id, member in seen["described"]["members"].items()
        }
        if found != wanted or len(found) != len(now):
            yield f"{seen['group']} at {seen['answered']}: {now}, expected {wanted}"
        if seen["described"]["type"] == "classic" and now:
            leaders = sum(bool(row["is_leader"]) for row in now)
            if leaders != 1:
                yield f"{seen['group']} at {seen['answered']}: {leaders} leaders"
    if unsure(truth):
        return
    for life in truth.lives:
        if life.start["instance_id"] is None:
            yield from _life(life, of_group[life.group])


def unsure(truth: Truth) -> bool:
    """Whether members come and go by themselves in this history, so that their times are open."""
    return any(step["do"] in {"Crash", "Stall"} for step in truth.steps)


def _as_described(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "client_id": row["client_id"],
        "client_host": row["client_host"],
        "instance_id": row["group_instance_id"],
        "protocol": row["protocol"],
        "type": row["group_type"],
        "subscribed_topics": sorted(row["subscribed_topics"] or ()),
        "subscribed_regex": row["subscribed_topic_regex"],
    }


def _expected(described: dict[str, Any], member: dict[str, Any]) -> dict[str, Any]:
    names = ("client_id", "client_host", "instance_id", "subscribed_topics", "subscribed_regex")
    told = {name: member[name] for name in names}
    return told | {"protocol": member["type"], "type": described["type"]}


def _life(life: Life, rows: Rows) -> Iterator[str]:
    """The client's time in the group, of which its rows are the parts."""
    mine = sorted(
        (row for row in rows if row["member_id"] in life.member_ids),
        key=lambda row: row["from_offset"],
    )
    if not mine:
        yield f"{life.client} of {life.group} ({life.member_ids}) has no row"
        return
    if not life.joined.holds(ms(mine[0]["valid_from"]), CLOCK_MS):
        yield f"{life.client} of {life.group} from {ms(mine[0]['valid_from'])}, not {life.joined}"
    session_ms = None if life.start["kind"] == "consumer" else SESSION_MS
    for row in mine:
        if row["session_timeout_ms"] != session_ms:
            yield f"{life.client} of {life.group}: session timeout {row['session_timeout_ms']}"
        timeout_ms = row["rebalance_timeout_ms"]
        if life.start["kind"] != "aiokafka" and timeout_ms != life.start["rebalance_timeout_ms"]:
            yield f"{life.client} of {life.group}: rebalance timeout {timeout_ms}"
    for row, after in pairwise(mine):
        if row["valid_to"] != after["valid_from"] or row["to_offset"] > after["from_offset"]:
            yield f"{life.client} of {life.group} has a gap: {row}, {after}"
    end = mine[-1]["valid_to"]
    if (end is None) != (life.left is None) or (
        life.left is not None and not life.left.holds(ms(end), CLOCK_MS)
    ):
        yield f"{life.client} of {life.group} until {end and ms(end)}, expected {life.left}"


def owners(described: dict[str, Any] | None) -> dict[Place, str]:
    """Partition -> member id."""
    return {
        (topic, index): member_id
        for member_id, member in (described or {"members": {}})["members"].items()
        for topic, partitions in member["assignment"].items()
        for index in partitions
    }


def assignments(truth: Truth, gold: Gold) -> Iterator[str]:
    of_group: dict[str, Rows] = defaultdict(list)
    for row in gold["assignments"]:
        of_group[row["group_id"]].append(row)
        if row["topic"] is None:
            yield f"a topic has no name: {row}"
        elif truth.end["topic_ids"].get(row["topic"], row["topic_id"]) != row["topic_id"]:
            yield f"another topic has this id: {row}"
    for seen in truth.stable():
        now = [row for row in of_group[seen["group"]] if holds_at(row, seen["answered"])]
        found = {(row["topic"], row["topic_partition"]): row["member_id"] for row in now}
        wanted = owners(seen["described"])
        if found != wanted or len(found) != len(now):
            yield f"{seen['group']} at {seen['answered']}: {now}, expected {wanted}"
        for row in now:
            epoch = seen["described"]["members"].get(row["member_id"], {}).get("member_epoch")
            if epoch is not None and not row["epoch"] <= epoch <= row["last_epoch"]:
                yield f"epochs {row['epoch']} to {row['last_epoch']}, {epoch} then: {row}"
    yield from _linked(gold)
    if not unsure(truth):
        yield from _as_told(truth, gold["assignments"])


def _linked(gold: Gold) -> Iterator[str]:
    """What was gained and lost names a rebalance of that group, at that epoch or for it."""
    rows = {(row["group_id"], row["offset"]): row for row in gold["rebalances"]}
    for row in gold["assignments"]:
        for name in ("gained_by", "lost_by"):
            if row[name] is not None and (row["group_id"], row[name]) not in rows:
                yield f"{name} no rebalance: {row}"
        gained = rows.get((row["group_id"], row["gained_by"]))
        if gained is not None and not gained["epoch"] <= row["epoch"] + 1:
            yield f"gained at {row['epoch']} by the rebalance to {gained['epoch']}: {row}"
        if row["to_offset"] is not None and row["to_offset"] <= row["from_offset"]:
            yield f"ends before it begins: {row}"


def _as_told(truth: Truth, rows: Rows) -> Iterator[str]:
    """Members got partitions after the log had it, and gave them up before."""
    ids: dict[str, list[str]] = defaultdict(list)
    for life in truth.lives:
        ids[life.client] += life.member_ids
    eager = {life.client for life in truth.lives if life.start["kind"] != "consumer"}
    by_place: dict[tuple[str, str, int], Rows] = defaultdict(list)
    for row in rows:
        by_place[row["member_id"], row["topic"], row["topic_partition"]].append(row)
    for told in truth.told:
        for what in ("got", "lost"):
            if what == "lost" and told["member"] in eager:
                continue  # with eager assignors they give up what they will have again
            for topic, index in told.get(what, ()):
                mine = [
                    row
                    for member_id in ids[told["member"]]
                    for row in by_place[member_id, topic, index]
                ]
                if not any(_is_near(row, what, told["at"]) for row in mine):
                    yield f"{told['member']} {what} {topic}-{index} at {told['at']}: {mine}"


def _is_near(row: dict[str, Any], what: str, at_ms: float) -> bool:
    if what == "lost":
        return row["valid_to"] is not None and (
            at_ms - CLOCK_MS <= ms(row["valid_to"]) <= at_ms + TOLD_MS
        )
    # A classic member gets again what it had: its row has begun before.
    return ms(row["valid_from"]) <= at_ms + CLOCK_MS and (
        row["valid_to"] is None or ms(row["valid_to"]) >= at_ms - CLOCK_MS
    )


def rebalances(truth: Truth, gold: Gold) -> Iterator[str]:
    left = {(row["group_id"], row["offset"]): row for row in gold["rebalances"]}
    if len(left) != len(gold["rebalances"]):
        yield "a rebalance has several rows"
    for window in truth.windows:
        rows = [
            row
            for key, row in sorted(left.items())
            if key[0] == window.group and window.between.holds(ms(began(row)), CLOCK_MS)
        ]
        for row in rows:
            del left[row["group_id"], row["offset"]]
        if unsure(truth) and not window.changes:
            continue
        yield from _window(truth, window, rows)
    for row in left.values():
        yield f"nothing happened then: {row}"


def rebalances_told(truth: Truth, gold: Gold) -> Iterator[str]:
    """Who knows how long sessions are can tell a leave, wherever the member was alive just before;
    and calls no end of a session one.
    """
    yield from rebalances(truth, {**gold, "rebalances": gold["rebalances_told"]})
    if truth.name == "consumer-rolling":
        named = {one for row in gold["rebalances_told"] for one in row["triggers"]}
        if named != {"join", "leave"}:
            yield f"{named}, expected only joins and leaves"


def began(row: dict[str, Any]) -> datetime:
    """A time in the rebalance: of its begin for a consumer group, of its end for a classic one."""
    return row["started_at"] or row["ended_at"] or row["started_before"]


def _window(truth: Truth, window: Window, rows: Rows) -> Iterator[str]:
    about = f"{window.group} {window.between} {window.changes}"
    least, most = _how_many(truth, window)
    if not least <= len(rows) <= most:
        yield f"{about}: {len(rows)} rebalances, expected {least} to {most}: {rows}"
        return
    causes = {change.cause for change in window.changes}
    converts = _converts(window)
    for row in rows:
        triggers, possible = set(row["triggers"]), set(row["possible"] or ())
        if row["trigger"] not in triggers:
            yield f"{about}: trigger {row['trigger']} is not among {triggers}"
        allowed = causes | {"unknown", "cooperative follow-up"}
        allowed |= {"join"} if "migration" in causes else set()
        allowed |= {"migration"} if converts else set()
        # By this the leader of a classic group brings it about, and our coordinator writes it down.
        allowed |= {"rejoin"} if "metadata change" in causes else set()
        if not triggers <= allowed:
            yield f"{about}: {triggers} by {row['evidence']}"
        if ("unknown" not in triggers) and possible:
            yield f"{about}: {possible} are possible, and nothing is unknown"
        yield from _times(truth, window, row)
    named = set().union(*(set(row["triggers"]) for row in rows))
    possible = set().union(*(set(row["possible"] or ()) for row in rows))
    for change in window.changes:
        if change.cause in named:
            continue
        if change.cause in PROVEN or "unknown" not in named:
            yield f"{about}: {change} is not named: {named}"
        elif change.cause != "metadata change" and change.cause not in possible:
            yield f"{about}: {change} is not among the possible {possible}"
    if converts and "migration" not in named:
        yield f"{about}: the group has changed its protocol, and the causes are {named}"
    yield from _who(window, rows)
    if rows and window.after is not None:
        yield from _result(window.after, rows[-1])
    if len(rows) == 1:
        yield from _moves(window, rows[0])
    yield from _unowned(truth, window, rows)


def _result(after: dict[str, Any], row: dict[str, Any]) -> Iterator[str]:
    """What the last rebalance led to is what was described then."""
    about = f"{row['group_id']} epoch {row['epoch']} {row['triggers']}"
    if row["members"] != len(after["members"]):
        yield f"{about}: {row['members']} members, expected {len(after['members'])}"
    if row["group_type"] != after["type"]:
        yield f"{about}: {row['group_type']}, expected {after['type']}"
    if after["group_epoch"] is not None and row["epoch"] != after["group_epoch"]:
        yield f"{about}: expected epoch {after['group_epoch']}"
    if after["members"] and row["outcome"] != "completed":
        yield f"{about}: {row['outcome']}, and the group was stable"
    if after["members"] and not row["started_before"] <= row["assigned_at"] <= row["ended_at"]:
        yield f"{about}: {row['started_before']}, {row['assigned_at']}, {row['ended_at']}"
    if not row["evidence"]:
        yield f"{about}: no evidence"


def _how_many(truth: Truth, window: Window) -> tuple[int, int]:
    """A consumer group has an epoch for each cause; a classic one settles several at once."""
    count = len(window.changes)
    if not count:
        return 0, 0
    kinds = {life.start["kind"] for life in truth.lives if life.group == window.group}
    if "cooperative" in kinds:
        return 1, 2 * count
    if kinds == {"consumer"} or count == 1:
        return count, count
    return 1, count


def _converts(window: Window) -> bool:
    before, after = window.before, window.after
    return before is not None and after is not None and before["type"] != after["type"]


def _times(truth: Truth, window: Window, row: dict[str, Any]) -> Iterator[str]:
    """The begin lies behind the first cause and before the first sign of it, and so on."""
    about = f"{window.group} epoch {row['epoch']} {row['triggers']}"
    first = min(change.done.first_ms for change in window.changes)
    if row["ended_at"] is not None and ms(row["ended_at"]) > window.end_ms + CLOCK_MS:
        yield f"{about}: ended at {ms(row['ended_at'])}, was settled by {window.end_ms}"
    if (row["outcome"] == "completed") != (row["ended_at"] is not None):
        yield f"{about}: {row['outcome']}, ended at {row['ended_at']}"
    if row["started_at"] is not None:
        if ms(row["started_at"]) < first - CLOCK_MS:
            yield f"{about}: started at {ms(row['started_at'])}, caused at {first}"
        if row["ended_at"] is not None:
            seconds = (row["ended_at"] - row["started_at"]).total_seconds()
            if abs(row["seconds"] - seconds) > 1e-6:
                yield f"{about}: {row['seconds']} s, expected {seconds}"
        return
    if row["started_before"] is not None and ms(row["started_before"]) < first - CLOCK_MS:
        yield f"{about}: started before {ms(row['started_before'])}, caused at {first}"
    # Who comes or goes gives up what it has before the coordinator hears of it.
    others = {life.client for life in truth.lives if life.group == window.group}
    others -= {client for change in window.changes for client in change.clients}
    signs = [
        told["at"]
        for told in truth.told
        if told["member"] in others and "lost" in told and window.between.holds(told["at"])
    ]
    if signs and row["started_after"] and len(window.changes) == 1:
        if ms(row["started_after"]) > min(signs) + CLOCK_MS:
            yield f"{about}: after {ms(row['started_after'])}, members noticed at {min(signs)}"
        least = (ms(row["ended_at"]) - min(signs) - CLOCK_MS) / 1000
        if row["seconds_at_most"] is not None and row["seconds_at_most"] < least:
            yield f"{about}: at most {row['seconds_at_most']} s, members saw {least}"
    if row["seconds_at_least"] is not None:
        most = (ms(row["ended_at"]) - first + CLOCK_MS) / 1000
        if row["seconds_at_least"] > most:
            yield f"{about}: at least {row['seconds_at_least']} s, caused {most} s before the end"


LISTS = {
    "join": "joined",
    "migration": "joined",
    "leave": "gone",
    "session timeout": "gone",
    "rebalance timeout": "gone",
    "subscription change": "changed",
}


def _who(window: Window, rows: Rows) -> Iterator[str]:
    wanted: dict[str, Counter[str]] = {name: Counter() for name in ("joined", "gone", "changed")}
    for change in window.changes:
        if change.cause in LISTS:
            wanted[LISTS[change.cause]].update(change.clients)
    for name, clients in wanted.items():
        seen = Counter(one["client_id"] for row in rows for one in row[name] or ())
        if seen != clients:
            yield f"{window.group} {window.changes}: {name} {seen}, expected {clients}"


def _moves(window: Window, row: dict[str, Any]) -> Iterator[str]:
    if window.after is None or _converts(window):
        return
    before, after = owners(window.before), owners(window.after)
    about = f"{window.group} epoch {row['epoch']} {row['triggers']}"
    moved = {place for place, owner in after.items() if before.get(place) != owner}
    seen = {(one["topic"], one["topic_partition"]): one for one in row["moves"] or ()}
    if seen.keys() != moved:
        yield f"{about}: moves {sorted(seen)}, expected {sorted(moved)}"
    for place in seen.keys() & moved:
        if seen[place]["to_member_id"] != after[place]:
            yield f"{about}: {seen[place]}, expected to {after[place]}"
        if place in before and seen[place]["from_member_id"] != before[place]:
            yield f"{about}: {seen[place]}, expected from {before[place]}"
    went = {place for place in moved if place in before}
    if before and row["partitions_moved"] != len(went):
        yield f"{about}: {row['partitions_moved']} moved, expected {len(went)}"
    if before and window.after["members"]:
        involved = {after[place] for place in moved}
        involved |= {owner for place, owner in before.items() if after.get(place) != owner}
        if row["members_involved"] != len(involved):
            yield f"{about}: {row['members_involved']} members involved, expected {len(involved)}"


def _unowned(truth: Truth, window: Window, rows: Rows) -> Iterator[str]:
    """The coordinator sees a partition given up later than the member gave it up, and given away
    before the next one has it.
    """
    if unsure(truth):
        return
    members = {life.client for life in truth.lives if life.group == window.group}
    told = [one for one in truth.told if one["member"] in members]
    for row in rows:
        for one in row["unowned"] or ():
            place = [one["topic"], one["topic_partition"]]
            lost = [
                each["at"]
                for each in told
                if place in each.get("lost", ()) and each["at"] <= window.end_ms
            ]
            lost += [
                change.done.first_ms
                for change in window.changes
                if change.cause == "session timeout"
            ]
            got = [
                each["at"]
                for each in told
                if place in each.get("got", ()) and lost and each["at"] > max(lost)
            ]
            if (one["seconds"] is None) != (not got):
                yield f"{window.group} {window.changes}: {one}, given at {got}"
            elif got and not 0 <= one["seconds"] <= (min(got) - max(lost) + CLOCK_MS) / 1000:
                yield f"{window.group} {window.changes}: {one}, from {max(lost)} to {min(got)}"
