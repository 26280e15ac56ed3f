# SPDX-License-Identifier: Apache-2.0
"""Gold tables of a day that never was: groups with lag, rebalances of every cause, a hostile name.

Used to look at the report, without a pipeline that computes them.
"""

import math
import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from kohort.history import rows as causes
from kohort.pipeline.schemas import LAG_HISTORY, membership, progress

BEGIN = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
END = BEGIN + timedelta(hours=12)
HOSTILE = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)>"
NAMES = (
    "checkout",
    HOSTILE,
    "billing-eu-west-1-production-invoices-and-reminders-consumer",
    "mail",
    "search-index",
)
TABLES = (
    membership.GROUP_STATE,
    membership.MEMBERS,
    membership.ASSIGNMENTS,
    membership.REBALANCES,
    progress.LAG,
    LAG_HISTORY,
    progress.STATUS,
    progress.DELETABLE_GROUPS,
)


def empty():
    """Every table the report asks for, without rows."""
    return {table.name: table.arrow.empty_table() for table in TABLES}


def day(*, groups=12, rebalances=20, members=4, partitions=6, seed=1):
    """The tables of a day; the more groups, the more rows."""
    chance = random.Random(seed)
    names = [*NAMES, *(f"group-{number}" for number in range(len(NAMES), groups))][:groups]
    rows = {table.name: [] for table in TABLES}
    for number, name in enumerate(names):
        _progress(rows, name, number, chance)
        _membership(rows, name, number, chance, rebalances, members, partitions)
    return {
        table.name: pa.Table.from_pylist(rows[table.name], schema=table.arrow) for table in TABLES
    }


def _progress(rows, name, number, chance):
    behind = 0
    for step in range(200):
        behind = max(0, behind + chance.randint(-500, 530) * (number + 1)) if step % 60 else 0
        seconds = behind / (20 * (number + 1))
        known = number != 4
        rows["lag"].append(
            {
                "partition": number % 4,
                "group_id": name,
                "level": "group",
                "at": BEGIN + (END - BEGIN) * step / 199,
                "lag_records": behind if known else None,
                "lag_seconds": seconds if known else None,
                "lag_seconds_error": seconds / 10 + 4 if known and step % 50 < 40 else None,
                "reason": None if known else "no_end_offset",
            }
        )
    rows["lag"].append({**rows["lag"][-1], "level": "partition", "topic": "orders"})
    status = "OK" if behind < 3000 else ("WARN", "STALL", "STOP")[number % 3]
    for rules in ("burrow", "kohort"):
        rows["status"].append(
            {
                "partition": number % 4,
                "group_id": name,
                "rules": rules,
                "level": "group",
                "at": END,
                "status": {"OK": "OK", "WARN": "WARN"}.get(status, "ERR"),
                "rule": "lag_allowed" if status == "OK" else "stalled",
                "last_commit_at": END - timedelta(seconds=number),
                "lag_seconds": seconds if known else None,
                "lag_records": behind if known else None,
            }
        )
    idle = number > 6
    rows["deletable_groups"].append(
        {
            "partition": number % 4,
            "group_id": name if number != 1 else HOSTILE,
            "type": "classic",
            "state": "Empty" if idle else "Stable",
            "deletable": idle and number % 2 == 0,
            "reason": f"idle for {number} days, and nobody is in it"
            if idle and number % 2 == 0
            else "a transaction is open",
            "members": 0 if idle else 3,
            "last_commit_at": END - timedelta(days=number),
            "days_idle": float(number),
            "expires_at": END + timedelta(days=7 - number),
        }
    )


def _membership(rows, name, number, chance, rebalances, members, partitions):
    count = max(1, rebalances - number)
    times = sorted(BEGIN + (END - BEGIN) * chance.random() for _ in range(count))
    owners = []
    place = {"partition": number % 4, "group_id": name, "complete_from": BEGIN}
    for epoch, at in enumerate(times):
        took = timedelta(seconds=math.exp(chance.uniform(-2, 6)))
        trigger = causes.TRIGGERS[(epoch + number) % len(causes.TRIGGERS)]
        classic = number % 3 == 2
        who = {"member_id": f"m-{epoch}", "client_id": f"worker-{epoch % members}"}
        rows["rebalances"].append(
            {
                **place,
                "epoch": epoch + 1,
                "offset": 100 * epoch,
                "started_at": None if classic else at,
                "started_before": at,
                "assigned_at": at,
                "ended_at": at + took,
                "seconds": None if classic else took.total_seconds(),
                "seconds_at_least": 0.0 if classic else took.total_seconds(),
                "seconds_at_most": took.total_seconds(),
                "outcome": "completed",
                "trigger": trigger,
                "possible": ["leave"] if trigger == causes.UNKNOWN else [],
                "evidence": "silent for 45.1 s, its session takes 45 s",
                "gone" if "timeout" in trigger else "joined": [who],
                "partitions_moved": chance.randint(0, partitions),
                "unowned": [{"topic": "orders", "topic_partition": 0, "seconds": epoch * 0.7}],
                "likely": [
                    {"member_id": f"m-{epoch - 1}", "likely": "went silent"},
                    {"member_id": "another", "likely": "left at work"},
                ]
                if "timeout" in trigger
                else [],
                "moves": [
                    {
                        "topic": "orders",
                        "topic_partition": 0,
                        "from_member_id": f"m-{epoch - 1}",
                        "to_member_id": f"m-{epoch}",
                    }
                ],
                "unread": [
                    {
                        "topic": "orders",
                        "topic_partition": 0,
                        "seconds": took.total_seconds(),
                        "since": at,
                        "until": at + took,
                    }
                ],
                "unread_seconds": took.total_seconds(),
                "longest_unread_seconds": took.total_seconds(),
            }
        )
        owners.append((at + took, f"m-{epoch}"))
        rows["members"].append(
            {
                **place,
                "member_id": f"m-{epoch}",
                "client_id": f"worker-{epoch % members}",
                "client_host": f"/10.0.{number}.{epoch % members}",
                "valid_from": at,
                "valid_to": times[epoch + members] if epoch + members < count else None,
            }
        )
    for partition in range(partitions):
        mine = owners[partition % members :: 2]
        for index, (since, member) in enumerate(mine):
            till = mine[index + 1][0] - timedelta(seconds=60) if index + 1 < len(mine) else None
            rows["assignments"].append(
                {
                    **place,
                    "topic": "orders" if partition < 4 else None,
                    "topic_id": "iYG3PZ_oS3aF60JMUzAt0Q",
                    "topic_partition": partition,
                    "member_id": member,
                    "valid_from": since,
                    "valid_to": max(till, since) if till else None,
                    "epoch": index,
                    "last_epoch": index + 1,
                }
            )
    rows["group_state"].append(
        {**place, "state": "Stable" if number < 7 else "Empty", "members": 3}
    )
