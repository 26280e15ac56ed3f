# SPDX-License-Identifier: Apache-2.0
"""Incremental fetch sessions (KIP-227)."""

from itertools import count

import pytest

from kohort.errors import ApiError, ErrorCode
from kohort.server.requests import fetch_sessions
from kohort.server.requests.fetch_sessions import PARTITION_BYTES, FetchSessions
from kohort.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

NO_ID = bytes(16)


def request(session_id=0, epoch=0, topics=(), forgotten=()):
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic=name,
                partitions=[FetchPartition(partition=one, fetch_offset=offset) for one in parts],
            )
            for name, parts, offset in topics
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic=name, partitions=list(parts)) for name, parts in forgotten
        ],
    )


@pytest.fixture
def sessions():
    numbers = count(1)
    return FetchSessions(2, lambda: next(numbers).to_bytes(4).ljust(16, b"."))


def opened(sessions, topics=(("orders", [0, 1], 5),)):
    return sessions.session_of(request(topics=topics), uses_ids=False)


def wanted(session):
    return {
        name: {one.partition: one.fetch_offset for one in partitions}
        for (name, _), partitions in session.wanted()
    }


def refused(sessions, given, *, uses_ids=False):
    with pytest.raises(ApiError) as caught:
        sessions.session_of(given, uses_ids=uses_ids)
    return caught.value.code


def test_a_session_remembers_and_is_updated(sessions):
    session = opened(sessions)
    again = sessions.session_of(
        request(
            session.session_id,
            1,
            topics=[("orders", [1], 9), ("more", [0], 3)],
            forgotten=[("orders", [0])],
        ),
        uses_ids=False,
    )

    assert again is session
    assert wanted(session) == {"orders": {1: 9}, "more": {0: 3}}
    assert session.epoch == 2


def test_a_request_that_stands_alone_has_none(sessions):
    assert sessions.session_of(request(epoch=-1, topics=[("a", [0], 0)]), uses_ids=False) is None
    assert not len(sessions)


def test_wrong_sessions_are_refused(sessions):
    session = opened(sessions)

    unknown, wrong = request(12345, 1), request(session.session_id, 9)
    assert refused(sessions, unknown) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert refused(sessions, wrong) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    by_id = request(session.session_id, 1)
    assert refused(sessions, by_id, uses_ids=True) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_ends_when_it_is_closed_or_empty(sessions):
    first, second = opened(sessions), opened(sessions)
    sessions.session_of(request(first.session_id, -1), uses_ids=False)
    nothing_left = request(second.session_id, 1, forgotten=[("orders", [0, 1])])

    assert sessions.session_of(nothing_left, uses_ids=False) is None
    assert not len(sessions)


def test_a_session_of_topics_without_partitions_is_empty(sessions):
    """As Apache Kafka does: it is closed by the second request, and found no earlier."""
    session = sessions.session_of(request(topics=[("orders", [], 0)]), uses_ids=False)

    assert session is not None
    assert sessions.session_of(request(session.session_id, 1), uses_ids=False) is None
    assert not len(sessions)


def test_the_least_used_session_makes_room(sessions):
    first, second = opened(sessions), opened(sessions)
    sessions.session_of(request(first.session_id, 1), uses_ids=False)
    opened(sessions)

    again = request(second.session_id, 1)
    assert refused(sessions, again) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.session_of(request(first.session_id, 2), uses_ids=False) is first


def test_without_slots_there_are_no_sessions():
    assert opened(FetchSessions(0, lambda: b"x" * 16)) is None


def data(partition, *, high_watermark=10, records=b"", error=0, start=0):
    return PartitionData(
        partition_index=partition,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=start,
        aborted_transactions=None,
        records=records,
    )


def told(session, *partitions, everything=False):
    given = [FetchableTopicResponse(topic="orders", topic_id=NO_ID, partitions=list(partitions))]
    return [
        one.partition_index
        for topic in session.changes(given, everything=everything)
        for one in topic.partitions
    ]


def test_only_what_has_changed_is_told(sessions):
    session = opened(sessions)

    assert told(session, data(0), data(1), everything=True) == [0, 1]
    assert told(session, data(0), data(1)) == []
    assert told(session, data(0, high_watermark=11), data(1)) == [0]
    assert told(session, data(0, high_watermark=11), data(1, records=b"x")) == [1]
    assert told(session, data(0, high_watermark=11, start=4), data(1)) == [0]
    assert told(session, data(0, high_watermark=11, start=4), data(1, error=3)) == [1]
    assert told(session, data(0, high_watermark=11, start=4), data(1)) == [1]


def test_who_has_got_records_comes_last_next_time(sessions):
    session = opened(sessions, [("orders", [0, 1, 2], 0), ("more", [0], 0)])
    told(session, data(0, records=b"x"), data(1), data(2))

    assert [(name, [one.partition for one in parts]) for (name, _), parts in session.wanted()] == [
        ("more", [0]),
        ("orders", [1, 2, 0]),
    ]


def test_a_first_answer_tells_everything_even_if_nothing_is_there(sessions):
    session = opened(sessions)

    assert told(session, data(0, high_watermark=-1), everything=True) == [0]


def test_a_session_that_grows_without_end_is_told_to_begin_anew(sessions, monkeypatch):
    """Each request adds partitions that need not even exist; the next one is small again."""
    monkeypatch.setattr(fetch_sessions, "SESSION_BYTES_MAX", 5 * PARTITION_BYTES)
    session = opened(sessions, [("t", [0, 1], 0)])
    again = sessions.session_of(request(session.session_id, 1, [("t", [0, 2], 0)]), uses_ids=False)
    assert again is session
    code = refused(sessions, request(session.session_id, 2, [("t", [3, 4], 0)]))
    assert code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 0
    assert opened(sessions, [("t", range(9), 0)]) is None, "each fetch says everything then"
    assert opened(sessions, [("t" * 4 * PARTITION_BYTES, [0], 0)]) is None


def test_what_is_forgotten_makes_room_again(sessions, monkeypatch):
    monkeypatch.setattr(fetch_sessions, "SESSION_BYTES_MAX", 6 * PARTITION_BYTES)
    session = opened(sessions, [("t", [0, 1], 0)])
    for epoch in range(1, 50):
        topics = [(f"t-{epoch}", [0], 0)]
        forgotten = [(f"t-{epoch - 1}", [0, 0, 7])]
        asked = request(session.session_id, epoch, topics, forgotten)
        assert sessions.session_of(asked, uses_ids=False) is session
    assert wanted(session) == {"t": {0: 0, 1: 0}, "t-49": {0: 0}}


def test_the_oldest_sessions_go_where_all_are_too_large_together(monkeypatch):
    numbers = count(1)
    many = FetchSessions(100, lambda: next(numbers).to_bytes(4).ljust(16, b"."))
    monkeypatch.setattr(fetch_sessions, "BYTES_MAX", 10 * PARTITION_BYTES)
    first, second = (opened(many, [("t", [0, 1], 0)]) for _ in range(2))
    many.session_of(request(first.session_id, 1), uses_ids=False)
    third = opened(many, [("t", [0, 1, 2], 0)])
    assert [many.known(one.session_id) for one in (first, second, third)] == [first, None, third]
    many.session_of(request(first.session_id, -1), uses_ids=False)
    many.session_of(request(third.session_id, 1, (), [("t", [0, 1, 2])]), uses_ids=False)
    assert len(many) == 0
    for _ in range(3):
        opened(many, [("t", [0, 1], 0)])
    assert len(many) == 3
