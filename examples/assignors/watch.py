# SPDX-License-Identifier: Apache-2.0
"""An assignor at work: members of weight 1, 2 and 3 join a group one after the other.

`python examples/assignors/watch.py` shows it with a broker in memory, and ends. With
`HOST:PORT TOPIC GROUP WEIGHT` it is one member, of a broker that has client-side assignors, until
Ctrl-C: start some, and look at them with `kohort groups describe GROUP`.
"""

import asyncio
import sys

from by_weight import ByWeight

from kohort import AdminClient, Consumer

PARTITIONS = 12


async def member(bootstrap: str, topic: str, group: str, weight: float) -> None:
    async with Consumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id=f"weight-{weight:g}",
        assignors=[ByWeight(weight)],
    ) as consumer:
        async for record in consumer:
            print(record.partition, record.offset)


async def try_it() -> None:
    from kohort.testing import Broker

    with Broker() as broker:
        broker.create_topic("orders", PARTITIONS)
        members = []
        for weight in (1, 2, 3):
            name = f"weight-{weight}"
            members.append(
                asyncio.create_task(member(broker.bootstrap, "orders", "billing", weight))
            )
            shares = await settled(broker.bootstrap, "billing", len(members))
            print(f"{name} has joined: {', '.join(f'{who} has {n}' for who, n in shares.items())}")
        for one in members:
            one.cancel()
        await asyncio.gather(*members, return_exceptions=True)


async def settled(bootstrap: str, group_id: str, count: int) -> dict[str, int]:
    """How many partitions each of so many members has, once nothing moves any more."""
    async with AdminClient(bootstrap) as admin:
        while True:
            group = (await admin.describe_groups([group_id])).succeeded.get(group_id)
            if group is not None and group.state == "Stable" and len(group.members) == count:
                sizes = {
                    one.client_id: sum(len(some) for some in one.assignment.values())
                    for one in group.members
                    if one.assignment is not None
                }
                if sum(sizes.values()) == PARTITIONS:
                    return dict(sorted(sizes.items()))
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    try:
        if len(sys.argv) > 1:
            bootstrap, topic, group, weight = sys.argv[1:5]
            asyncio.run(member(bootstrap, topic, group, float(weight)))
        else:
            asyncio.run(try_it())
    except KeyboardInterrupt:
        print("stopped")
