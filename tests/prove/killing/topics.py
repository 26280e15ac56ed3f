# SPDX-License-Identifier: Apache-2.0
"""Topics made, filled, deleted and made anew by stock clients."""

from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.prove.killing.actor import Actor
from tests.prove.killing.away import LEADER_MOVES
from tests.prove.killing.journal import Journal
from tests.serve.talk import Talk

from kohort.wire import batch
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

LIMIT_BYTES = 1 << 20


@dataclass
class Belief:
    """What is known of a name. Unless it is `sure`, a request was under way at a kill."""

    there: bool = False
    sure: bool = True
    life: int = 0  # how often it was made
    partitions: int = 0
    sent: set[bytes] = field(default_factory=set)
    kept: set[bytes] = field(default_factory=set)


class Topics(Actor):
    """A topic that was made is there with its records, one that was deleted stays away, and one
    that was made anew has nothing of its former life.
    """

    def __init__(self, seed: int, bootstrap: str, journal: Journal, number: int = 0) -> None:
        super().__init__(f"topics {number}", seed, journal)
        self.bootstrap = bootstrap
        self._admin = AdminClient(
            {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 200, "log_level": 0}
        )
        self.names = {f"gone-{number}-{one}": Belief() for one in range(3)}

    def act(self) -> None:
        self.look()
        name, belief = self.random.choice(list(self.names.items()))
        if not belief.there:
            self._create(name, belief)
            return
        match self.random.choice(["produce", "produce", "delete", "compare"]):
            case "produce":
                self._produce(name, belief)
            case "compare":
                self.compare(name, belief)
            case _:
                self._delete(name, belief)

    def look(self) -> None:
        listed = self._admin.list_topics(timeout=30).topics
        for name, belief in self.names.items():
            there = name in listed
            if belief.sure:
                assert there == belief.there, f"{name} is there: {there}, but {belief}"
            belief.there, belief.sure = there, True
            if there:
                assert len(listed[name].partitions) == belief.partitions, (name, belief)

    def compare(self, name: str, belief: Belief) -> None:
        with Talk(self.bootstrap) as client:
            found = read(client, name, belief.partitions)
        assert found <= belief.sent, f"{name} has what was never sent: {found - belief.sent}"
        assert belief.kept <= found, f"{name} has lost {belief.kept - found}"
        self.say(f"{name} holds {len(found)} records")

    def _create(self, name: str, belief: Belief) -> None:
        belief.life += 1
        belief.partitions = self.random.randint(1, 3)
        belief.sent, belief.kept, belief.sure = set(), set(), False
        self.say(f"create {name}, life {belief.life}")
        wanted = NewTopic(name, belief.partitions, 1)
        self._admin.create_topics([wanted], request_timeout=60)[name].result(90)
        belief.there = belief.sure = True
        self.done("topics made")

    def _delete(self, name: str, belief: Belief) -> None:
        belief.sure = False
        self.say(f"delete {name}, life {belief.life}")
        self._admin.delete_topics([name], request_timeout=60)[name].result(90)
        belief.there, belief.sure = False, True
        self.done("topics deleted")

    def _produce(self, name: str, belief: Belief) -> None:
        # A new one each time: a producer remembers the former topic of a name for a while.
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "acks": "all",
                "reconnect.backoff.max.ms": 200,
                "message.timeout.ms": 20_000,
                "log_level": 0,
            }
        )
        begin = len(belief.sent)
        refused: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: object) -> None:
            if error is None:
                belief.kept.add(message.value())  # type: ignore[attr-defined]
            else:
                refused.append(error)

        for number in range(begin, begin + self.random.randint(1, 20)):
            value = f"{name}/{belief.life}/{number}".encode()
            belief.sent.add(value)
            index = self.random.randrange(belief.partitions)
            producer.produce(name, value, partition=index, on_delivery=delivered)
        before = len(belief.kept)
        assert producer.flush(60) == 0
        self.say(f"{name} took {len(belief.kept) - before} of {len(belief.sent) - begin} records")
        if refused:
            raise KafkaException(refused[0])
        self.done("batches for topics that come and go")


def read(client: Talk, name: str, partitions: int) -> set[bytes]:
    """All values of a topic. Raises EOFError while it has no leader."""
    found = set()
    for index in range(partitions):
        offset = 0
        while True:
            place = FetchPartition(
                partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
            )
            wanted = FetchTopic(topic=name, partitions=[place])
            request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 25, topics=[wanted])
            answer = client.ask(request, 12).responses[0].partitions[0]
            if answer.error_code in LEADER_MOVES:
                raise EOFError(f"{name}-{index} answers with error {answer.error_code}")
            assert not answer.error_code, f"{name}-{index}: error {answer.error_code}"
            if not answer.records:
                break
            for at, header in batch.walk(answer.records):
                offset = header.last_offset + 1
                found |= {one.value for one in batch.records(answer.records, at)}
    return found
