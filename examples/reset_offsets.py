# SPDX-License-Identifier: Apache-2.0
"""Let a group read again: plan where it goes on, look at the plan, apply it.

`python examples/reset_offsets.py HOST:PORT GROUP [TOPIC...]` plans for your cluster to begin at the
first record, and changes nothing without `--apply`. Without arguments it asks a broker in memory.
"""

import asyncio
import sys
from datetime import UTC, datetime, timedelta

import kohort


async def reset(
    admin: kohort.AdminClient,
    group_id: str,
    to: kohort.OffsetReset,
    topics: list[str] | None = None,
    *,
    apply: bool = False,
) -> None:
    plan = await admin.plan_offset_reset(group_id, to, topics)
    print(f"{group_id} is {plan.state}")
    for partition, planned in plan.partitions.items():
        if planned.new is None:
            print(f"  {partition} stays: {planned.error}")
            continue
        before = "nothing" if planned.current is None else planned.current.offset
        print(f"  {partition}: {before} -> {planned.new.offset}, {planned.lag_after} records ahead")
        if planned.adjustment is not None:
            print(f"    {planned.adjustment}")
    if plan.refusal is not None:
        print(f"not applied: {plan.refusal.message}")
    elif apply and plan.complete:
        (await admin.alter_group_offsets(plan.group_id, plan.offsets)).all()
        print("applied")


async def try_it() -> None:
    async with kohort.Broker() as broker:
        server = broker.bootstrap
        async with (
            kohort.AdminClient(server) as admin,
            kohort.Producer(bootstrap_servers=server) as producer,
        ):
            (await admin.create_topics([kohort.NewTopic("orders", partitions=2)])).all()
            for number in range(10):
                await producer.send_and_wait("orders", f"order {number}".encode(), partition=0)

            async with kohort.Consumer(
                "orders", bootstrap_servers=server, group_id="billing", auto_offset_reset="earliest"
            ) as consumer:
                for _ in range(10):
                    await consumer.getone()
                # Its consumers come first: a group with members refuses.
                await reset(admin, "billing", kohort.OffsetReset.earliest(), apply=True)

            await reset(admin, "billing", kohort.OffsetReset.shift_by(-3), apply=True)
            an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
            await reset(admin, "billing", kohort.OffsetReset.to_time(an_hour_ago), ["orders"])

            # What else was there: a group that is looked at as soon as its coordinator answers.
            async for group_id, outcome in admin.describe_groups(["billing", "nobody"]):
                print(group_id, outcome if isinstance(outcome, kohort.ApiError) else outcome.state)


async def ask(server: str, group_id: str, *topics: str) -> None:
    apply = "--apply" in topics
    named = [topic for topic in topics if topic != "--apply"]
    async with kohort.AdminClient(server) as admin:
        to = kohort.OffsetReset.earliest()
        await reset(admin, group_id, to, named or None, apply=apply)


if __name__ == "__main__":
    asyncio.run(ask(*sys.argv[1:]) if len(sys.argv) > 2 else try_it())
