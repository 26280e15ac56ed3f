# SPDX-License-Identifier: Apache-2.0
"""AdminClient: groups, their members, and how far they lag behind.

`python examples/admin.py HOST:PORT` asks your cluster; without an address, a broker in memory.
"""

import asyncio
import sys

import kohort


async def report(bootstrap: str) -> None:
    async with kohort.AdminClient(bootstrap, timeout=10) as admin:
        listings = await admin.list_groups()
        print(f"{len(listings)} groups")
        for node, error in listings.errors.items():
            print(f"node {node} did not answer: {error}")

        described = await admin.describe_groups(group.group_id for group in listings)
        for group in described.succeeded.values():
            print(f"{group.group_id}: {group.state}, {len(group.members)} members")
            for member in group.members:
                print(f"  {member.client_id} owns {member.assignment}")

        # One OffsetFetch per coordinator, however many groups there are (KIP-709).
        offsets = await admin.list_group_offsets(dict.fromkeys(described.succeeded))
        partitions = {one for committed in offsets.succeeded.values() for one in committed}
        ends = (await admin.end_offsets(sorted(partitions))).succeeded
        for group_id, committed in offsets.succeeded.items():
            for partition, at in committed.items():
                if isinstance(at, kohort.ApiError):
                    print(f"{group_id} {partition}: {at}")
                elif at is not None and partition in ends:
                    print(f"{group_id} {partition}: lag {ends[partition].offset - at.offset}")


async def try_it() -> None:
    """Ask a broker inside this program, with a topic, and with a refusal as well."""
    async with kohort.Broker() as broker:
        host, port = broker.addresses[0]
        async with kohort.AdminClient(f"{host}:{port}") as admin:
            created = await admin.create_topics([kohort.NewTopic("orders", partitions=3)])
            orders = created["orders"]
            print(f"created {orders.name} with {orders.partitions} partitions")
            try:
                (await admin.delete_groups(["nobody"])).all()
            except kohort.ApiError as error:
                print(f"as expected: {error}")
        await report(f"{host}:{port}")


if __name__ == "__main__":
    asyncio.run(report(sys.argv[1]) if len(sys.argv) > 1 else try_it())
