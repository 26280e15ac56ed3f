"""The words that callers choose from are those that are sent."""

from typing import get_args

from kohort.client.admin.broker_views import ElectionType
from kohort.client.admin.elections import ELECTION_TYPES


def test_words_have_upstreams_numbers():
    assert dict.fromkeys(get_args(ElectionType)) == dict.fromkeys(ELECTION_TYPES)
    assert ELECTION_TYPES == {"preferred": 0, "unclean": 1}
