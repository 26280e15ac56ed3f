# SPDX-License-Identifier: Apache-2.0
"""Try an installed Kohort that has nothing around it: `python -I tools/try_wheel.py CODEC`.

It must use the codec, be small, be imported quickly, and carry a record through a group. Prints one
line about that.
"""

import asyncio
import subprocess
import sys
import time
from importlib.metadata import distributions
from pathlib import Path

DISTRIBUTIONS_MAX = 10
MEGABYTES_MAX = 40
IMPORT_MS_MAX = 150


def check(what: str, found: float, most: float) -> None:
    if found > most:
        sys.exit(f"{what}: {found:g}, expected at most {most}")


def installed() -> tuple[int, float]:
    """How many distributions Kohort needs, and how many megabytes they and it take."""
    count, size = 0, 0
    for one in distributions():
        if one.name not in ("pip", "setuptools"):
            count += one.name != "kohort"
            places = [Path(str(one.locate_file(path))) for path in one.files or ()]
            size += sum(path.stat().st_size for path in places if path.is_file())
    return count, size / 1e6


def import_ms() -> float:
    """How much longer an interpreter takes that imports kohort, the best of five."""

    def took(program: str) -> float:
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-c", program], check=True)
        return (time.perf_counter() - begun) * 1000

    return min(took("import kohort") for _ in range(5)) - min(took("pass") for _ in range(5))


async def carry_a_record(bootstrap: str, topic: str) -> None:
    import kohort

    async with kohort.Producer(bootstrap_servers=bootstrap) as producer:
        await (await producer.send(topic, b"value", key=b"key"))
    async with kohort.Consumer(
        topic, bootstrap_servers=bootstrap, group_id="trial", auto_offset_reset="earliest"
    ) as consumer:
        async for record in consumer:
            assert (record.key, record.value) == (b"key", b"value"), record
            break
    async with kohort.AdminClient(bootstrap_servers=bootstrap) as admin:
        assert "trial" in {group.group_id for group in (await admin.list_groups()).groups}


def main() -> None:
    from kohort.testing import Broker

    codec = sys.argv[1]
    script = Path(sys.executable).with_name("kohort")
    said = subprocess.run([script, "--version"], capture_output=True, text=True, check=True).stdout
    if f"codec: {codec}" not in said:
        sys.exit(f"kohort --version says {said.strip()!r}, expected the codec {codec}")
    with Broker() as broker:
        broker.create_topic("t")
        asyncio.run(carry_a_record(broker.bootstrap, "t"))
    count, megabytes = installed()
    check("distributions", count, DISTRIBUTIONS_MAX)
    check("megabytes", megabytes, MEGABYTES_MAX)
    milliseconds = import_ms()
    check("milliseconds of `import kohort`", milliseconds, IMPORT_MS_MAX)
    version = ".".join(map(str, sys.version_info[:3]))
    print(
        f"Python {version}, {count} distributions needed, {megabytes:.0f} MB, "
        f"`import kohort` {milliseconds:.0f} ms, a record went through a group"
    )


if __name__ == "__main__":
    main()
