"""Words that every floor knows."""

from kohort.terms import NO_TOPIC_ID


def test_nothing_is_its_own_topic_id():
    assert bytes(16) == NO_TOPIC_ID
