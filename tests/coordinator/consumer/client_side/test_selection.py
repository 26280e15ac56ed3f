# SPDX-License-Identifier: Apache-2.0
"""Which assignor a group uses."""

from dataclasses import replace

import pytest

from kohort.coordinator.consumer.client_side import selection
from kohort.coordinator.consumer.client_side.offers import ClientAssignor
from kohort.coordinator.consumer.member import Member
from kohort.errors import ApiError, ErrorCode
from kohort.records.consumer_protocol import ConsumerProtocolSubscription, encode
from kohort.records.schemas import ClassicMemberMetadata, ClassicProtocol


def member(name, *offers):
    """`x`, or `x:1-3` with the versions that it reads."""
    assignors = []
    for one in offers:
        assignor, _, span = one.partition(":")
        low, _, high = (span or "0-0").rpartition("-")
        assignors.append(ClientAssignor(assignor, int(low), int(high), 0, int(low), b"m"))
    return Member(name, client_assignors=tuple(assignors))


def classic(name, **user_data):
    protocols = [
        ClassicProtocol(
            name=one,
            metadata=data
            if isinstance(data, bytes)
            else encode(
                ConsumerProtocolSubscription(
                    topics=[], owned_partitions=[], user_data=data and data.encode()
                )
            ),
        )
        for one, data in user_data.items()
    ]
    metadata = ClassicMemberMetadata(session_timeout_ms=1, supported_protocols=protocols)
    return Member(name, classic=metadata)


CASES = {
    "one member": ([member("a", "x", "y")], "x"),
    "all like x": ([member("a", "x"), member("b", "x", "y")], "x"),
    "most votes": ([member("a", "x", "y"), member("b", "y", "x"), member("c", "y", "x")], "y"),
    "a tie goes by name": ([member("a", "y", "x"), member("b", "x", "y")], "x"),
    "who likes none of the common ones most": (
        [member("a", "z", "y", "x"), member("b", "x", "y"), member("c", "y", "x")],
        "y",
    ),
    "nothing is common": ([member("a", "x"), member("b", "y")], None),
    "one offers nothing": ([member("a", "x"), member("b")], None),
    "no version is common": ([member("a", "x:1-1"), member("b", "x:2-3")], None),
    "another one has a common version": (
        [member("a", "x:1-1", "y"), member("b", "x:2-3", "y")],
        "y",
    ),
    "a classic member with data": ([member("a", "x:-1-2"), classic("b", x="ab")], "x"),
    "a classic member without": ([member("a", "x:3-5"), classic("b", x=None)], "x"),
    "who does not read classic data": ([member("a", "x:0-2"), classic("b", x="ab")], None),
    "a classic member of another assignor": ([member("a", "x"), classic("b", y=None)], None),
    "a classic member whose bytes lie": ([member("a", "x"), classic("b", x=b"\0")], None),
}


@pytest.mark.parametrize("case", CASES)
def test_the_choice(case):
    """K848-042, K848-045, K848-047, K848-119."""
    members, chosen = CASES[case]
    choice = selection.select_assignor(members, "uniform")
    if chosen is None:
        assert (choice.name, choice.version) == ("uniform", None)
        assert choice.why
    else:
        assert choice.name == chosen
        assert choice.version is not None


@pytest.mark.parametrize(
    ("ranges", "version"),
    [(("1-3", "2-5"), 3), (("1-3", "2-2", "0-9"), 2), (("4-4",), 4), (("1-1", "2-3"), None)],
)
def test_the_version_is_the_highest_that_all_read(ranges, version):
    """K848-070."""
    members = [member(f"m{number}", f"x:{one}") for number, one in enumerate(ranges)]
    assert selection.select_assignor(members, "uniform").version == version


def test_a_group_without_members_has_nothing_in_common():
    assert selection.select_assignor([], "uniform") == ("uniform", None, selection.NOT_COMMON)


def test_who_reads_no_version_of_the_others_is_refused():
    """K848-070."""
    others = [member("a", "x:1-3"), member("b", "x:2-5")]
    with pytest.raises(ApiError, match="versions 4 to 9, the others read 2 to 3") as refused:
        selection.check_range(others, member("c", "x:4-9"))
    assert refused.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR
    selection.check_range(others, member("c", "x:3-9"))


def test_who_does_not_read_classic_data_is_refused_while_there_is_some():
    """K848-121."""
    with pytest.raises(ApiError, match="versions 0 to 2, the others read -1 to -1"):
        selection.check_range([classic("b", x="ab"), member("a", "x:-1-2")], member("c", "x:0-2"))
    selection.check_range([classic("b", x=None), member("a", "x:-1-2")], member("c", "x:0-2"))


def test_another_assignor_is_no_reason_to_refuse():
    """K848-042."""
    selection.check_range([member("a", "x:1-1")], member("b", "y:7-7"))
    selection.check_range([member("a", "x:1-1"), member("c")], member("b", "x:7-7"))


def test_what_a_member_offers():
    """K848-119."""
    one = member("a", "x:1-2", "y")
    assert list(selection.offered_by(one)) == ["x", "y"]
    both = replace(classic("b", s="ab", r=None, z=b"?"), client_assignors=one.client_assignors)
    offered = selection.offered_by(both)
    assert list(offered) == ["s", "r"]
    assert (offered["s"].version, offered["s"].metadata) == (-1, b"ab")
