# SPDX-License-Identifier: Apache-2.0
"""Random lives of a broker on a disk that fails: what was acknowledged is there, or is refused.

One seed is one history: requests, slow syncs, single paths that refuse, stops, crashes at any step,
losses of power that keep pages and names in any order, and bits that flip while nobody runs. The
checker asks as a client would.
"""

import errno
from random import Random

from tests.server.desk import START, Desk

from kohort.errors import Broken, KohortError
from kohort.sim.disk import MachineCrash, SimulatedFiles
from kohort.wire import batch as batches
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

NAMES = ("apples", "pears", "plums")
GROUPS = [f"group-{number}" for number in range(12)]
HOME = "home"  # the topic that groups commit to
OPERATIONS = ("open", "read", "write", "truncate", "sync", "rename", "unlink", "sync_directory")
ERRORS = (errno.EIO, errno.EACCES, errno.ENOSPC)


class Topic:
    """What a client knows of one topic: by index what it has sent, and what was acknowledged."""

    def __init__(self, name, partitions):
        self.name = name
        self.sent = [set() for _ in range(partitions)]
        self.kept = [{} for _ in range(partitions)]


class History:
    def __init__(self, seed, *, flips=True):
        self.random = Random(seed)
        self.flips = flips
        self.disk = SimulatedFiles()
        self.now = START
        self.lives = 0
        self.number = 0
        self.topics = {}  # by id: those that are acknowledged and not deleted
        self.known = {}  # by id: all that anybody has heard of
        self.deleted = set()  # ids, acknowledged
        self.doubtful = set()  # ids of topics that somebody has asked to delete
        self.commits = {group: [] for group in GROUPS}  # each sent: number
        self.committed = dict.fromkeys(GROUPS, -1)  # the last that was acknowledged
        self.damaged = set()  # folders in which a bit was flipped
        self.waiting = []  # requests without an answer, and what to do with it
        self.syncing = []
        self.said = []
        self.desk = None
        self.open()
        self.create(HOME)
        self.desk.settle()
        self.take_answers()

    def run(self, steps):
        actions = {
            self.produce: 30,
            self.commit: 20,
            self.settle: 20,
            self.begin_sync: 8,
            self.create_any: 4,
            self.delete_any: 4,
            self.housekeep: 5,
            self.roll: 3,
            self.refuse: 3,
            self.relent: 4,
            self.stop: 4,
            self.crash: 2,
            self.lose_power: 3,
            self.crash_soon: 2,
        }
        chosen = self.random.choices(list(actions), list(actions.values()), k=steps)
        for action in chosen:
            try:
                action()
                self.take_answers()
            except MachineCrash:
                self.random.choice([self.crash, self.lose_power])()
        self.check()
        return self

    def open(self):
        """The next life. A disk that refuses is mended when nothing starts with it."""
        self.waiting.clear()
        self.syncing.clear()
        for _ in range(4):
            self.lives += 1
            try:
                self.desk = Desk(
                    files=self.disk,
                    seed=self.random.getrandbits(32),
                    now=self.now,
                    offsets_topic_num_partitions="3",
                )
            except MachineCrash:
                self.disk = self.disk.after_power_loss(random=self.random, page_bytes=64)
            except (KohortError, OSError) as error:
                self.said.append(f"not started: {error}")
                if not self.disk.faults:
                    raise AssertionError(
                        "the broker does not start, and nothing refuses"
                    ) from error
                self.disk.faults.clear()
                self.disk.locked.clear()
            else:
                self.look_at_topics()
                return
        raise AssertionError("the broker does not start")

    def look_at_topics(self):
        """Topics that were asked for and not acknowledged may be there."""
        found = self.desk.cluster.catalog.by_id
        lost = [self.topics[one].name for one in self.topics if one not in found]
        assert not [one for one in self.topics if one not in found and one not in self.doubtful], (
            lost
        )
        assert not self.deleted & set(found)
        for topic_id in list(self.topics):
            if topic_id not in found:
                del self.topics[topic_id]
                self.deleted.add(topic_id)
        for topic_id, topic in found.items():
            if not topic.is_internal and topic_id not in self.topics:
                self.topics[topic_id] = Topic(topic.name, topic.partitions)

    def send(self, request, version, then):
        if self.desk.clients[0].connection.finished or self.desk.clients[0].connection.closed:
            self.desk.clients[0] = self.desk.connect(0)
        self.waiting.append((self.desk.send(request, version), then))

    def take_answers(self):
        left = []
        for asked, then in self.waiting:
            if asked.answer is None:
                left.append((asked, then))
            else:
                then(asked.answer)
        self.waiting = left

    def named(self, name):
        for topic_id, topic in self.topics.items():
            if topic.name == name:
                return topic_id, topic
        return None, None

    def produce(self):
        # Requests name topics: one that may be deleted any moment may be another one then.
        sure = [one for one in self.topics if one not in self.doubtful]
        if not sure:
            return
        topic = self.topics[self.random.choice(sure)]
        index = self.random.randrange(len(topic.sent))
        self.number += 1
        value = b"%d." % self.number * self.random.choice([1, 5, 60])
        topic.sent[index].add(value)

        def then(answer):
            place = answer.responses[0].partition_responses[0]
            if not place.error_code:
                assert place.base_offset not in topic.kept[index], "an offset is given out twice"
                topic.kept[index][place.base_offset] = value

        if self.desk.clients[0].connection.finished or self.desk.clients[0].connection.closed:
            self.desk.clients[0] = self.desk.connect(0)
        self.waiting.append((self.desk.send_batch(topic.name, index, value=value), then))

    def commit(self):
        group = self.random.choice(GROUPS)
        self.number += 1
        number = self.number
        self.commits[group].append(number)
        place = OffsetCommitRequestPartition(partition_index=0, committed_offset=number)
        topic = OffsetCommitRequestTopic(name=HOME, partitions=[place])

        def then(answer):
            if not answer.topics[0].partitions[0].error_code:
                self.committed[group] = max(self.committed[group], number)

        self.send(OffsetCommitRequest(group_id=group, topics=[topic]), 8, then)

    def create(self, name):
        wanted = CreatableTopic(
            name=name,
            num_partitions=self.random.randint(1, 2),
            replication_factor=1,
            assignments=[],
            configs=[],
        )

        def then(answer):
            made = answer.topics[0]
            if not made.error_code:
                self.topics[made.topic_id] = Topic(name, made.num_partitions)

        self.send(CreateTopicsRequest(topics=[wanted], timeout_ms=60_000), 7, then)

    def create_any(self):
        self.create(self.random.choice(NAMES))

    def delete_any(self):
        topic_id, topic = self.named(self.random.choice(NAMES))
        if topic is None:
            return
        self.doubtful.add(topic_id)

        def then(answer):
            if not answer.responses[0].error_code:
                self.topics.pop(topic_id, None)
                self.deleted.add(topic_id)

        wanted = DeleteTopicState(name=None, topic_id=topic_id)
        self.send(DeleteTopicsRequest(topics=[wanted], timeout_ms=60_000), 6, then)

    def settle(self):
        while self.syncing:
            self.end_sync()
        self.desk.settle(sync=self.random.random() < 0.7)

    def begin_sync(self):
        """A sync that takes its time: more is written meanwhile."""
        self.desk.settle(sync=False)
        self.syncing += self.desk.cluster.begin_sync()

    def end_sync(self):
        one = self.syncing.pop()
        try:
            outcome = one.log.sync()
        except Broken as error:
            outcome = error
        self.desk.cluster.end_sync(one, outcome)

    def housekeep(self):
        while self.syncing:
            self.end_sync()
        self.now += self.random.choice([5_000, 70_000])
        self.desk.wait(self.now - self.desk.now)
        self.desk.housekeep()

    def roll(self):
        while self.syncing:
            self.end_sync()
        partitions = list(self.desk.cluster.table.open.values())
        if partitions:
            log = self.random.choice(partitions).log
            try:
                log.roll()
            except KohortError as error:
                self.said.append(str(error))

    def refuse(self):
        """One path of many, for a while."""
        paths = [*self.disk.files, *self.disk.directories]
        operation = self.random.choice(OPERATIONS)
        if self.random.random() < 0.3:
            paths = [path for path in self.disk.directories if path.count("/") == 2] or paths
            operation = "rename"
        self.disk.faults[operation, self.random.choice(paths)] = self.random.choice(ERRORS)

    def relent(self):
        self.disk.faults.clear()

    def crash_soon(self):
        self.disk.crash_at = self.disk.steps + self.random.randint(1, 40)

    def stop(self):
        while self.syncing:
            self.end_sync()
        self.desk.cluster.close()
        whole = ".kafka_cleanshutdown" in self.disk.names("/data")
        self.disk = self.disk.after_crash()
        if whole and self.flips and self.random.random() < 0.5:
            self.flip()
        self.open()

    def flip(self):
        """A bit of a log that was synced and closed."""
        logs = [path for path, one in self.disk.files.items() if path.endswith(".log") and one.now]
        if not logs:
            return
        path = self.random.choice(logs)
        size = len(self.disk.files[path].now)
        self.disk.flip(path, self.random.randrange(size), self.random.randrange(8))
        self.damaged.add(path.split("/")[2])

    def crash(self):
        self.disk = self.disk.after_crash()
        self.open()

    def lose_power(self):
        size = self.random.choice([16, 64, 512, 4096])
        self.disk = self.disk.after_power_loss(random=self.random, page_bytes=size)
        self.open()

    def check(self):
        """Mend the disk, let everything come to rest, and ask."""
        self.disk.crash_at = None
        self.disk.faults.clear()
        while self.syncing:
            self.end_sync()
        self.desk.settle()
        self.take_answers()
        self.disk = self.disk.after_crash()
        self.open()
        for _ in range(3):
            self.desk.housekeep()
        for topic in self.topics.values():
            for index in range(len(topic.sent)):
                self.check_records(topic, index)
        for group in GROUPS:
            self.check_group(group)

    def check_records(self, topic, index):
        name = f"{topic.name}-{index}"
        found = {}
        offset = 0
        while True:
            place = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1000)
            wanted = FetchTopic(topic=topic.name, partitions=[place])
            request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[wanted])
            answer = self.desk.ask(request, 12).responses[0].partitions[0]
            if answer.error_code:
                assert name in self.damaged, (name, answer.error_code, self.desk.told.errors)
                break
            if not answer.records:
                missing = {at: one for at, one in topic.kept[index].items() if at not in found}
                assert not missing, (name, missing, found)
                break
            for _, header in batches.walk(answer.records):
                offset = header.last_offset + 1
            for at, header in batches.walk(answer.records):
                for record in batches.records(answer.records[at : at + header.length]):
                    found[record.offset] = record.value
        for at, value in found.items():
            assert value in topic.sent[index] or not topic.sent[index], (name, at, value)
            assert topic.kept[index].get(at, value) == value, (name, at, value)

    def check_group(self, group):
        wanted = OffsetFetchRequestGroup(group_id=group, topics=None)
        (answer,) = self.desk.ask(OffsetFetchRequest(groups=[wanted]), 8).groups
        shard = self.desk.cluster.placement.shard_of(group)
        if answer.error_code:
            told = self.desk.told.errors
            assert f"__consumer_offsets-{shard}" in self.damaged, (group, answer.error_code, told)
            return
        found = answer.topics[0].partitions[0].committed_offset if answer.topics else -1
        assert found >= self.committed[group], (group, found, self.committed[group])
        assert found == -1 or found in self.commits[group], (group, found)
