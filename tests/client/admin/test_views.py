# SPDX-License-Identifier: Apache-2.0
"""Outcomes: one failure hides nothing and cannot be overlooked."""

import pytest

from kohort.client.admin import AdminClient, Listings, Outcomes, TopicPartition
from kohort.errors import ApiError, ErrorCode

BAD = ApiError(ErrorCode.NON_EMPTY_GROUP, "has members")


def test_a_value_or_the_error_of_that_key():
    outcomes = Outcomes({"good": 1, "bad": BAD, "none": None})

    assert outcomes["good"] == 1
    assert outcomes["none"] is None
    with pytest.raises(ApiError, match="has members"):
        outcomes["bad"]
    with pytest.raises(KeyError):
        outcomes["other"]


def test_all_of_them_by_sort():
    """K709-23."""
    outcomes = Outcomes({"good": 1, "bad": BAD})

    assert list(outcomes) == ["good", "bad"]
    assert len(outcomes) == 2
    assert "bad" in outcomes
    assert "other" not in outcomes
    assert dict(outcomes.items()) == {"good": 1, "bad": BAD}
    assert outcomes.succeeded == {"good": 1}
    assert outcomes.failed == {"bad": BAD}
    with pytest.raises(ApiError, match="has members"):
        outcomes.all()
    assert Outcomes({"good": 1}).all() == {"good": 1}
    assert "has members" in repr(outcomes)


def test_what_is_missing_has_a_name_and_a_reason_also_inside_of_a_value():
    place, other = TopicPartition("t", 0), TopicPartition("t", 1)
    of_partition = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    outcomes = Outcomes({"bad": BAD, "half": {place: of_partition, other: None}, "none": None})
    assert outcomes.missing == {"bad": BAD, ("half", place): of_partition}
    assert not outcomes.complete
    assert Outcomes({"half": {other: None}, "none": None}).complete
    assert Outcomes({}).complete


def test_a_listing_names_brokers_coordinators_and_what_is_not_known():
    place = TopicPartition("__consumer_offsets", 3)
    assert Listings((), {}).complete
    listings = Listings((), {1: BAD, place: BAD}, BAD)
    assert listings.missing == {1: BAD, place: BAD, "__consumer_offsets": BAD}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bootstrap_servers": "a:b"}, "'a:b' is not an address"),
        ({"bootstrap_servers": " , "}, "no bootstrap server is given"),
        ({"bootstrap_servers": []}, "no bootstrap server is given"),
        ({"timeout": 0}, "timeout is 0, expected more than 0 seconds"),
    ],
)
def test_a_client_that_cannot_work_is_not_made(arguments, message):
    with pytest.raises(ValueError, match=message):
        AdminClient(**arguments)


def test_the_public_face():
    import kohort

    assert kohort.AdminClient is AdminClient
    assert kohort.ErrorCode is ErrorCode
    assert {"AdminClient", "ApiError", "Broker", "ErrorCode"} <= set(dir(kohort))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        kohort.Nothing  # noqa: B018


class Counted:
    """A value that counts how often somebody looks what it is."""

    looks = 0

    @property
    def __class__(self):
        Counted.looks += 1
        return type(self)


def test_to_ask_for_failures_once_per_key_does_not_look_at_all_outcomes_each_time():
    """What a loop does: with 10,000 groups it took most of `--describe --all-groups`."""
    outcomes = Outcomes({number: Counted() for number in range(100)} | {"bad": BAD})
    Counted.looks = 0
    assert [key for key in outcomes if key in outcomes.failed] == ["bad"]
    assert Counted.looks == 0


def test_nobody_changes_the_outcomes_by_what_they_gave():
    outcomes = Outcomes({"good": 1, "bad": BAD})
    outcomes.failed.clear()
    outcomes.succeeded.clear()
    assert (outcomes.succeeded, outcomes.failed) == ({"good": 1}, {"bad": BAD})
    fine = Outcomes({"good": 1})
    fine.all().clear()
    assert fine.succeeded == {"good": 1}
