# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, one function for each kind. Each happens now and then until the world is calm.

A fault touches one of many: one path, one node, one bit. It has a stream of chance of its own.
"""

import errno
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from random import Random

from kohort.errors import Broken, KohortError, WireError
from kohort.server.partitions.logs import CATALOG_FILE
from kohort.sim.actors.admin import NAMES
from kohort.sim.disk import MachineCrash
from kohort.sim.draw import SESSIONS_MS
from kohort.sim.process import DATA, addresses_of
from kohort.sim.world import World
from kohort.storage.checkpoints import CLEAN_SHUTDOWN
from kohort.storage.segments import SegmentLog
from kohort.wire import batch as batches

OPERATIONS = ("open", "read", "write", "truncate", "sync", "rename", "unlink", "sync_directory")
CHANGING = tuple(f"/data/{name}-" for name in NAMES)
NEWER_KEY = 77  # a kind of record that no version has yet
ERRORS = (errno.EIO, errno.EACCES, errno.ENOSPC)

Fault = Callable[[World, Random], Awaitable[None]]


async def crash(world: World, _random: Random) -> None:
    """Kill -9, between two things."""
    world.crash()


async def power(world: World, _random: Random) -> None:
    """The machine is gone."""
    world.lose_power()


async def torn_write(world: World, random: Random) -> None:
    """The process or the machine stops in the middle of something on the disk."""
    world.disk.crash_at = world.disk.steps + random.randint(1, 40)


async def stop(world: World, random: Random) -> None:
    """In order, as for an update."""
    await world.stop()
    await world.pause(random.uniform(100, 8000))
    world.start_if_down()


async def stall(world: World, random: Random) -> None:
    """The process stands still: a frozen machine, a debugger, a long collection of garbage."""
    world.stand_still(random.choice([200, 1500, 9000, 40_000]) + random.randrange(1000))


async def clock_jump(world: World, random: Random) -> None:
    """Somebody sets the clock of the broker's machine."""
    world.skew += random.choice([-3600, -20, -1, 1, 20, 3600]) * random.random()
    world.stage.clock_set_at = world.loop.now


async def other_settings(world: World, random: Random) -> None:
    """A stop, and a start with other settings."""
    await world.stop()
    session = random.choice(SESSIONS_MS)
    world.config = replace(
        world.config,
        group_consumer_session_timeout_ms=session,
        group_consumer_assignment_interval_ms=random.choice([0, 1000]),
        log_cleaner_delete_retention_ms=random.choice([0, 20_000, 86_400_000]),
        log_flush_offset_checkpoint_interval_ms=random.choice([2000, 60_000]),
        offsets_topic_num_partitions=random.randint(1, 6),  # the directory knows better
    )
    world.start_if_down()


async def slow_disk(world: World, random: Random) -> None:
    """Syncs take up to ten seconds for a while."""
    process = world.process
    if process is not None:
        process.pauses.slow = random.choice([0.1, 0.9])
        process.pauses.slow_us = random.choice([200_000, 2_000_000, 10_000_000])
        await world.pause(random.uniform(1000, 20_000))
        process.pauses.slow = 0.0


async def failing_sync(world: World, random: Random) -> None:
    """One file cannot be synced: EIO, once or for a while."""
    path = _some_segment(world, random)
    await _refuse(world, random, "sync", path, errno.EIO)


async def refusing_path(world: World, random: Random) -> None:
    """One path refuses one kind of operation for a while. Names, the catalog and checkpoints come
    first: of all paths and operations they are a small part, and refusals of them matter most.
    """
    disk = world.disk
    operation = random.choice(OPERATIONS)
    chance = random.random()
    if chance < 0.2:
        operation, paths = "sync_directory", [DATA]
    elif chance < 0.3:
        operation, paths = "sync_directory", list(disk.directories)
    elif chance < 0.45:
        paths = [f"{DATA}/{CATALOG_FILE}"]
    elif chance < 0.6:
        paths = [path for path in disk.files if path.endswith("-checkpoint")] or [DATA]
    else:
        paths = [*disk.files, *disk.directories]
    await _refuse(world, random, operation, random.choice(paths), random.choice(ERRORS))


async def full_disk(world: World, random: Random) -> None:
    """There is hardly any room for a while."""
    world.disk.room_bytes = random.choice([0, 50, 3000])
    await world.pause(random.uniform(500, 20_000))
    world.disk.room_bytes = None


async def immovable_folder(world: World, random: Random) -> None:
    """A folder cannot be renamed, as a mount point cannot."""
    disk = world.disk
    folders = [path for path in disk.directories if path.count("/") == 2]
    changing = [path for path in folders if path.startswith(CHANGING)]  # those that may be deleted
    if changing and random.random() < 0.8:
        folders = changing
    if folders:
        path = random.choice(folders)
        disk.immovable[path] = errno.EBUSY
        await world.pause(random.uniform(10_000, 90_000))
        world.disk.immovable.pop(path, None)


async def bit_flip(world: World, random: Random) -> None:
    """A bit of a log flips while no broker runs, after it was closed in order."""
    await world.stop()
    if world.process is None and "/data/.kafka_cleanshutdown" in world.disk.files:
        path = _some_segment(world, random)
        if path:
            content = world.disk.files[path].now
            if content:
                world.flip(path, random.randrange(len(content)), random.randrange(8))
    world.start_if_down()


async def roll(world: World, random: Random) -> None:
    """A segment is closed earlier than its size asks for, so that there is something to clean."""
    process = world.process

    def close_one() -> None:
        cluster = process.broker.cluster if process is not None else None
        if cluster is not None and cluster.table.open:
            log = random.choice(list(cluster.table.open.values())).log
            assert isinstance(log, SegmentLog)
            try:
                log.roll()
            except Broken as error:  # the operator sees it; the broker does with the next write
                world.operator_log.error(str(error))
            except KohortError:
                pass  # a disk that refuses: the log has not changed

    if process is not None and world.running:
        process.loop.call_soon(close_one)


async def slow_network(world: World, random: Random) -> None:
    """Some pieces take very long."""
    conditions = world.network.conditions
    conditions.slow, conditions.slow_us = random.choice([(0.02, 9_000_000), (0.3, 300_000)])
    await world.pause(random.uniform(1000, 30_000))
    conditions.slow = 0.0


async def cut_up(world: World, random: Random) -> None:
    """Pieces arrive in two parts."""
    world.network.conditions.cut_up = random.choice([0.05, 0.9])
    await world.pause(random.uniform(1000, 30_000))
    world.network.conditions.cut_up = 0.0


async def broken_connections(world: World, random: Random) -> None:
    """Connections end in the middle of a frame."""
    world.network.conditions.broken = random.choice([0.01, 0.2])
    await world.pause(random.uniform(500, 10_000))
    world.network.conditions.broken = 0.0


async def partition(world: World, random: Random) -> None:
    """One node cannot be reached for a while."""
    addresses = addresses_of(random.randrange(world.draw.nodes))
    for address in addresses:
        world.network.cut_off(address)
    await world.pause(random.choice([300, 3000, 20_000, 70_000]) * random.random())
    for address in addresses:
        world.network.reach_again(address)


async def foreign_files(world: World, random: Random) -> None:
    """Somebody leaves files in the directory while the broker is stopped."""
    await world.stop()
    if world.process is None and "/data" in world.disk.directories:
        with suppress(
            OSError, MachineCrash
        ):  # the disk refuses that, too, or a write of it is torn
            _leave_something(world, random)
    world.start_if_down()


def _leave_something(world: World, random: Random) -> None:
    disk = world.disk
    number = random.randrange(1000)
    kind = random.randrange(5)
    if kind == 0:
        _leave(world, f"/data/notes-{number}.txt", b"do not delete")
    elif kind == 1:
        disk.make_directory(f"/data/lost+found-{number}")
    elif kind == 2:
        disk.make_directory(f"/data/backup of home {number}")
        _leave(world, f"/data/backup of home {number}/0.log", b"\x00" * 70)
    elif kind == 3:
        _newer_record(world, random)
    else:
        folders = [path for path in disk.directories if path.count("/") == 2]
        if folders:
            _leave(world, f"{random.choice(folders)}/core.{number}", b"\x7fELF")


def _newer_record(world: World, random: Random) -> None:
    """A broker of another version has run, written a record of a kind that nobody here knows, and
    crashed: its start has taken away the mark of ours that all was closed in order.
    """
    logs = [path for path in world.disk.files if "/__consumer_offsets-" in path]
    newest = {path.rpartition("/")[0]: path for path in sorted(logs) if path.endswith(".log")}
    if not newest:
        return
    path = random.choice(list(newest.values()))
    data = bytes(world.disk.files[path].now)
    try:
        headers = [header for _, header in batches.walk(data)]
    except WireError:
        return  # a torn end: the other version would have cut it
    if not headers:
        return
    key = NEWER_KEY.to_bytes(2) + b"\x00\x01x"
    last = headers[-1]
    batch = batches.build(
        [(key, b"\x00\x00")],
        last.max_timestamp,
        base_offset=last.last_offset + 1,
        leader_epoch=last.partition_leader_epoch,
    )
    mark = f"/data/{CLEAN_SHUTDOWN}"
    if mark in world.disk.files:
        world.disk.unlink(mark)
        world.disk.sync_directory("/data")
    file = world.disk.open(path)
    file.write(len(data), batch)
    file.sync()


FAULTS: dict[str, Fault] = {
    "crash": crash,
    "power": power,
    "torn write": torn_write,
    "stop": stop,
    "stall": stall,
    "clock jump": clock_jump,
    "other settings": other_settings,
    "foreign files": foreign_files,
    "slow disk": slow_disk,
    "failing sync": failing_sync,
    "refusing path": refusing_path,
    "full disk": full_disk,
    "immovable folder": immovable_folder,
    "bit flip": bit_flip,
    "roll": roll,
    "slow network": slow_network,
    "cut up": cut_up,
    "broken connections": broken_connections,
    "partition": partition,
}


async def keep_happening(world: World, name: str, pause_s: float) -> None:
    """A kind of fault, again and again until the world is calm."""
    random = world.draw.stream(f"fault {name}")
    while True:
        await world.pause(random.expovariate(1 / pause_s) * 1000)
        if world.stage.calm:
            return
        world.happens(name)
        await FAULTS[name](world, random)


async def _refuse(world: World, random: Random, operation: str, path: str, number: int) -> None:
    if path:
        world.disk.faults[operation, path] = number
        await world.pause(random.choice([50, 3000, 30_000]) * random.random())
        world.disk.faults.pop((operation, path), None)  # crashes lie between: another disk object


def _some_segment(world: World, random: Random) -> str:
    paths = [path for path in world.disk.files if path.endswith(".log")]
    return random.choice(paths) if paths else ""


def _leave(world: World, path: str, content: bytes) -> None:
    file = world.disk.open(path)
    file.write(0, content)
    file.sync()
    world.disk.sync_directory(path.rpartition("/")[0])
