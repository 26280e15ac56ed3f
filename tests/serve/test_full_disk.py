# SPDX-License-Identifier: Apache-2.0
"""A disk that is full, or refuses: nothing acknowledged is lost, and the broker goes on by itself.

The limit of a file's size (RLIMIT_FSIZE) stands for a full disk: every write beyond it fails, for
root as well, and the limit can be moved while the broker runs. A file system of two megabytes is
the real thing, where one may be mounted.
"""

import resource
import signal
import time

import pytest
from tests.serve.small_disk import small_file_system
from tests.serve.talk import Talk, serving
from tests.waiting import SOON_S

from kohort.errors import ErrorCode
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

pytestmark = pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="limits of another process can be set on Linux only"
)

NO_ROOM = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def limit(broker, size: int) -> None:
    resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def settled(ask, expected=0):
    """Ask until the answer is the one expected; a shard that has failed looks once a second."""
    deadline = time.monotonic() + SOON_S
    while (code := ask()) != expected:
        assert code in NO_ROOM, code
        assert time.monotonic() < deadline
        time.sleep(0.1)


def fill(client: Talk, topic: str) -> list[bytes]:
    """Produce until there is no room; what was acknowledged."""
    kept = []
    for number in range(10_000):
        value = b"%d:" % number + bytes(20_000)
        answer = client.produce(topic, value)
        if answer.error_code:
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            return kept
        assert answer.base_offset == len(kept)
        kept.append(value)
    raise AssertionError("the disk did not fill up")


def values(client: Talk, topic: str) -> list[bytes]:
    from kohort.wire import batch

    found: list[bytes] = []
    while True:
        answer = client.ask(client.fetch_request(topic, len(found)), 12)
        data = answer.responses[0].partitions[0].records
        if not data:
            return found
        for _, header in batch.walk(data):
            assert header.base_offset == len(found)
            found += [one.value for one in batch.records(data, _)]


@pytest.mark.parametrize("sync", ["group", "none"])
def test_produce(tmp_path, sync):
    settings = ["--data-dir", str(tmp_path), "-X", f"log.sync={sync}"]
    with serving(*settings) as broker, broker.talk() as client:
        client.create_topic("t")
        client.create_topic("other")
        limit(broker, 200_000)
        kept = fill(client, "t")
        assert 5 < len(kept) < 10
        assert client.produce("other", b"small").error_code == 0  # only one file is full
        assert client.produce("t", b"small").error_code == 0
        kept.append(b"small")
        assert values(client, "t") == kept
        limit(broker, 10_000_000)
        assert client.produce("t", bytes(50_000)).base_offset == len(kept)
        kept.append(bytes(50_000))
        broker.process.kill()
        broker.process.wait(SOON_S)
    with serving(*settings) as broker, broker.talk() as client:
        assert values(client, "t") == kept
        assert client.produce("t", b"on").base_offset == len(kept)


@pytest.mark.parametrize("sync", ["group", "none"])
def test_groups(tmp_path, sync):
    settings = ["--data-dir", str(tmp_path), "-X", f"log.sync={sync}"]
    settings += ["-X", "offsets.topic.num.partitions=1"]
    with serving(*settings) as broker, broker.talk() as client:
        client.create_topic("t")
        join = ConsumerGroupHeartbeatRequest(
            group_id="live",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        epoch = client.ask(join).member_epoch
        assert epoch > 0
        limit(broker, 5_000)
        last = 0
        for offset in range(1, 1000):
            code = client.commit("g", "t", offset)
            if code:
                assert code == ErrorCode.NOT_COORDINATOR
                break
            last = offset
        assert 5 < last < 999
        for _ in range(3):  # while there is no room it stays refused, and says so at once
            assert client.commit("g", "t", 5000) in NO_ROOM
        assert client.committed("g") == {("t", 0): last}  # reading needs no room
        limit(broker, 10_000_000)
        settled(lambda: client.commit("g", "t", last + 1))
        assert client.committed("g") == {("t", 0): last + 1}
        beat = ConsumerGroupHeartbeatRequest(group_id="live", member_id="m", member_epoch=epoch)
        assert client.ask(beat).error_code == 0
        assert broker.errors.count("Traceback") == 0
        broker.process.kill()
        broker.process.wait(SOON_S)
    with serving(*settings) as broker, broker.talk() as client:
        assert client.committed("g") == {("t", 0): last + 1}
        assert client.ask(beat).error_code == 0


def test_topics(tmp_path):
    """The catalog cannot be written: the topic is refused, and can be made later."""
    with serving("--data-dir", str(tmp_path)) as broker, broker.talk() as client:
        client.create_topic("first")
        limit(broker, 10)
        wanted = CreateTopicsRequest(
            topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)],
            timeout_ms=1000,
        )
        assert client.ask(wanted).topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.ask(wanted).topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        limit(broker, 10_000_000)
        assert client.ask(wanted).topics[0].error_code == 0
        assert client.produce("t", b"x").error_code == 0
        assert broker.end() == 0
    with serving("--data-dir", str(tmp_path)) as broker, broker.talk() as client:
        assert values(client, "t") == [b"x"]


def test_no_room_at_the_start(tmp_path):
    def no_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    with (
        pytest.raises(AssertionError, match=str(tmp_path)) as raised,
        serving("--data-dir", str(tmp_path), prepare=no_room),
    ):
        pass
    assert "Traceback" not in str(raised.value)


def test_a_full_file_system(tmp_path):
    with small_file_system(tmp_path / "small") as small:
        settings = ["--data-dir", str(small), "-X", "offsets.topic.num.partitions=1"]
        with serving(*settings) as broker, broker.talk() as client:
            client.create_topic("t")
            assert client.commit("g", "t", 1) == 0
            ballast = small / "ballast"
            ballast.write_bytes(bytes(200_000))
            kept = fill(client, "t")
            for offset in range(2, 200):
                code = client.commit("g", "t", offset)
                if code:
                    break
            assert code == ErrorCode.NOT_COORDINATOR
            before = client.committed("g")
            assert values(client, "t") == kept
            ballast.unlink()
            settled(lambda: client.commit("g", "t", 1000))
            assert before[("t", 0)] in range(1, 200)
            assert client.committed("g") == {("t", 0): 1000}
            broker.process.send_signal(signal.SIGKILL)
            broker.process.wait(SOON_S)
        with serving(*settings) as broker, broker.talk() as client:
            assert client.committed("g") == {("t", 0): 1000}
