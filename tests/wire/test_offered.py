# SPDX-License-Identifier: Apache-2.0
"""`api.versions.max`: an older broker, and what is no API or no version of one."""

from pathlib import Path

import pytest
from tests.golden import versions

from kohort.config.settings import ConfigError
from kohort.wire.apis import APIS
from kohort.wire.offered import offered_versions

OFFSET_FETCH, PRODUCE = 9, 0


def test_without_limits_all_is_offered():
    assert offered_versions(()) == {key: api.versions for key, api in APIS.items()}


def test_a_limit_caps_one_api_and_takes_away_what_is_too_old():
    offered = offered_versions(("OffsetFetch:7", "Produce:2"))
    assert offered[OFFSET_FETCH] == (1, 7)
    assert PRODUCE not in offered
    assert len(offered) == len(APIS) - 1


def test_minus_one_takes_any_api_away():
    assert offered_versions(("ConsumerGroupHeartbeat:-1",)).keys() == APIS.keys() - {68}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("OffsetFetc:7", "no API is called OffsetFetc; did you mean OffsetFetch?"),
        ("Zzz:7", "no API is called Zzz$"),
        ("OffsetFetch:11", "'OffsetFetch:11', expected a version of OffsetFetch from 0 to 10"),
        ("OffsetFetch:-2", "'OffsetFetch:-2', expected a version"),
        ("OffsetFetch", "'OffsetFetch', expected a version of OffsetFetch from 0 to 10"),
        ("OffsetFetch:x", "'OffsetFetch:x', expected a version"),
    ],
)
def test_what_is_no_limit_is_refused(entry, words):
    with pytest.raises(ConfigError, match=words):
        offered_versions((entry,))


NOT_OFFERED = [  # of what a plain listener of Apache Kafka 4.3.1 offers: docs/skipped.md has why
    "DescribeQuorum",
    "UnregisterBroker",
    "AddRaftVoter",
    "RemoveRaftVoter",
    "StreamsGroupHeartbeat",
    "StreamsGroupDescribe",
]


def test_a_plain_listener_offers_what_that_of_kafka_offers():
    """Clients guess from it which Kafka this is. What is not offered is one of few, and told."""
    upstream = {api["name"]: api["key"] for api in versions()["apis"]}
    missing = [name for name in upstream if name not in {api.name for api in APIS.values()}]
    assert [name for name in missing if "Share" not in name] == NOT_OFFERED
    skipped = (Path(__file__).parents[2] / "docs" / "skipped.md").read_text(encoding="utf-8")
    for name in ("ShareGroupHeartbeat", *NOT_OFFERED):
        assert f"{name} ({upstream[name]})" in skipped
