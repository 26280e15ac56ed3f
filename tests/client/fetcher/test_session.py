# SPDX-License-Identifier: Apache-2.0
"""What is said in a fetch session, and that both sides know the same at any time (KIP-227)."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.client.fetcher.batches import T0, T1, T2

from kohort.client.fetcher.session import LAST_EPOCH, FetchRequestData, PartitionFetch, Session
from kohort.terms import TopicId, TopicPartition
from kohort.wire.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

U0 = TopicPartition("u", 0)
ID, OTHER_ID = TopicId(b"i" * 16), TopicId(b"o" * 16)


def wanted(offset: int, topic_id: TopicId = ID) -> PartitionFetch:
    return PartitionFetch(offset, current_epoch=3, last_epoch=2, max_bytes=100, topic_id=topic_id)


def asked(part: FetchRequestData) -> dict[TopicPartition, int]:
    """The place of each partition that is named."""
    return {
        TopicPartition(topic.topic, one.partition): one.fetch_offset
        for topic in part.topics
        for one in topic.partitions
    }


def forgotten(part: FetchRequestData) -> list[TopicPartition]:
    return [
        TopicPartition(topic.topic, index) for topic in part.forgotten for index in topic.partitions
    ]


def test_the_first_request_says_everything() -> None:
    part = Session().ask({T0: wanted(5), U0: wanted(6, OTHER_ID), T1: wanted(7)})
    place: dict[str, Any] = {
        "current_leader_epoch": 3,
        "last_fetched_epoch": -1,  # for replicas: a consumer asks OffsetForLeaderEpoch
        "partition_max_bytes": 100,
    }
    assert part == FetchRequestData(
        session_id=0,
        session_epoch=0,
        topics=[
            FetchTopic(
                topic="t",
                topic_id=ID,
                partitions=[
                    FetchPartition(partition=0, fetch_offset=5, **place),
                    FetchPartition(partition=1, fetch_offset=7, **place),
                ],
            ),
            FetchTopic(
                topic="u",
                topic_id=OTHER_ID,
                partitions=[FetchPartition(partition=0, fetch_offset=6, **place)],
            ),
        ],
        forgotten=[],
    )


def test_what_follows_says_what_is_new() -> None:
    session = Session()
    session.ask({T0: wanted(5), T1: wanted(7)})
    session.answered(9)
    assert session.ask({T0: wanted(5), T1: wanted(7)}) == FetchRequestData(9, 1, [], [])
    session.answered(9)
    part = session.ask({T0: wanted(6), T1: wanted(7), U0: wanted(0, OTHER_ID)})
    assert part[:2] == (9, 2)
    assert asked(part) == {T0: 6, U0: 0}
    session.answered(9)
    part = session.ask({T0: wanted(6)})
    assert part[:2] == (9, 3)
    assert (asked(part), forgotten(part)) == ({}, [T1, U0])
    assert part.forgotten[1] == ForgottenTopic(topic="u", topic_id=OTHER_ID, partitions=[0])


def test_another_epoch_of_the_leader_is_news() -> None:
    session = Session()
    session.ask({T0: wanted(5)})
    session.answered(9)
    assert asked(session.ask({T0: wanted(5)._replace(current_epoch=4)})) == {T0: 5}


def test_who_comes_back_is_named_again() -> None:
    session = Session()
    for places, named in ((5, {T0: 5}), (None, {}), (5, {T0: 5})):
        part = session.ask({} if places is None else {T0: wanted(places)})
        assert asked(part) == named
        session.answered(9)


def test_a_broker_without_sessions_is_told_everything_each_time() -> None:
    session = Session()
    for _ in range(2):
        assert session.ask({T0: wanted(5)})[:2] == (0, 0)
        session.answered(0)
    assert asked(session.ask({T0: wanted(5)})) == {T0: 5}


def test_a_session_that_broke_begins_anew() -> None:
    session = Session()
    session.ask({T0: wanted(5), T1: wanted(7)})
    session.answered(9)
    session.broke()
    part = session.ask({T0: wanted(5)})
    assert part[:2] == (0, 0)
    assert (asked(part), forgotten(part)) == ({T0: 5}, [])
    session.answered(10)
    assert session.ask({T0: wanted(5)})[:2] == (10, 1)


def test_a_broker_may_end_a_session_in_its_answer() -> None:
    """It does so where it keeps as many sessions as it may, and puts ours out."""
    session = Session()
    session.ask({T0: wanted(5)})
    session.answered(9)
    session.ask({T0: wanted(5)})
    session.answered(0)
    part = session.ask({T0: wanted(5)})
    assert (part[:2], asked(part)) == ((0, 0), {T0: 5})


def test_a_topic_that_was_made_anew_needs_a_new_session() -> None:
    session = Session()
    session.ask({T0: wanted(5), U0: wanted(6)})
    session.answered(9)
    part = session.ask({T0: wanted(0, OTHER_ID), U0: wanted(6)})
    assert part[:2] == (0, 0)
    assert asked(part) == {T0: 0, U0: 6}
    assert part.topics[0].topic_id == OTHER_ID


def test_partitions_of_a_topic_may_know_different_ids() -> None:
    part = Session().ask({T0: wanted(5), T1: wanted(0, OTHER_ID), T2: wanted(6)})
    named = [(one.topic_id, [it.partition for it in one.partitions]) for one in part.topics]
    assert named == [(ID, [0, 2]), (OTHER_ID, [1])]


def test_epochs_begin_again_at_one() -> None:
    session = Session()
    session.ask({T0: wanted(5)})
    session.answered(9)
    session._epoch = LAST_EPOCH
    assert session.ask({})[:2] == (9, LAST_EPOCH)
    session.answered(9)
    assert session.ask({})[:2] == (9, 1)


ids = st.sampled_from([ID, ID, ID, OTHER_ID])  # partitions of a topic may be looked up by and by
places = st.dictionaries(st.sampled_from([T0, T1, T2]), st.builds(wanted, st.integers(0, 3), ids))


Known = dict[tuple[bytes, int], int]
"""The places of a broker by topic id and partition."""


class TwoSides(RuleBasedStateMachine):
    """A broker that takes a session literally, and puts it out whenever it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.session = Session()
        self.sessions: dict[int, Known] = {}
        self.epochs: dict[int, int] = {}
        self.last_id = 0
        self.wanted: dict[TopicPartition, PartitionFetch] = {}
        self.served: Known | None = None

    @rule(places=places, keeps=st.booleans())
    def fetch(self, places: dict[TopicPartition, PartitionFetch], keeps: bool) -> None:  # noqa: FBT001
        part = self.session.ask(places)
        self.wanted, self.served = places, None
        told = {
            (topic.topic_id, one.partition): one.fetch_offset
            for topic in part.topics
            for one in topic.partitions
        }
        if part.session_epoch == 0:
            assert (part.session_id, part.forgotten) == (0, [])
            self.served = told
            if keeps:
                self.last_id += 1
                self.sessions[self.last_id], self.epochs[self.last_id] = told, 1
            self.session.answered(self.last_id if keeps else 0)
            return
        known = self.sessions.get(part.session_id)
        if known is None:
            self.session.broke()  # FETCH_SESSION_ID_NOT_FOUND
            return
        assert part.session_epoch == self.epochs[part.session_id]
        self.epochs[part.session_id] += 1
        for topic in part.forgotten:
            for index in topic.partitions:
                del known[topic.topic_id, index]
        known.update(told)
        self.served = known
        self.session.answered(part.session_id)

    @rule()
    def put_out(self) -> None:
        self.sessions.clear()

    @rule(places=places)
    def lose(self, places: dict[TopicPartition, PartitionFetch]) -> None:
        """The connection breaks: nobody knows whether the broker has seen the request."""
        self.session.ask(places)
        self.session.broke()

    @invariant()
    def the_broker_serves_what_is_wanted(self) -> None:
        if self.served is not None:
            expected = {
                (one.topic_id, partition.partition): one.offset
                for partition, one in self.wanted.items()
            }
            assert self.served == expected


TestTwoSides = TwoSides.TestCase
TestTwoSides.settings = settings(max_examples=50, stateful_step_count=20)
