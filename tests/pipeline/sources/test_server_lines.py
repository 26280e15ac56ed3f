# SPDX-License-Identifier: Apache-2.0
"""Lines of log files that matter: those of Kafka, old and new, and those that only look so."""

import pytest

from kohort.pipeline.sources.server_lines import FORMS, LONGEST_LINE, parse_removals

NEW = "org.apache.kafka.coordinator.group.GroupMetadataManager"
OLD = "kafka.coordinator.group.GroupCoordinator"
UUID = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"
SPEAKER = "[GroupCoordinator id=1 topic=__consumer_offsets partition=2] "


def written(*messages, logger=NEW, speaker=SPEAKER):
    return [
        f"[2026-11-24 06:55:06,214] INFO {speaker}{one} ({logger})\n".encode() for one in messages
    ]


def told(*messages, **more):
    found = [*parse_removals(written(*messages, **more))]
    return [(one.group_id, one.member_id, one.trigger, one.reason, one.number) for one in found]


LEFT = "[GroupId g] Member m left the consumer group."
LEAVE_GROUP = "has left group through explicit `LeaveGroup` request; client reason:"
REAL = {
    LEFT: ("leave", None),
    "[GroupId g] Static member m with instance id i left the consumer group.": ("leave", None),
    "[GroupId g] Member m fenced from the group because the member session expired.": (
        "session timeout",
        None,
    ),
    "[GroupId g] Member m fenced from the group because it failed to transition from epoch 2 within"
    " 5000ms.": ("rebalance timeout", None),
    "[GroupId g] Member m fenced from the group because the member failed to sync within "
    "timeout.": ("rebalance timeout", None),
    "[GroupId g] Member m fenced from the group because the classic member failed to join within "
    "the rebalance timeout.": ("rebalance timeout", None),
    f"[GroupId g] Dynamic member m {LEAVE_GROUP} not provided": ("leave", None),
    f"[GroupId g] Static member m with instance id i {LEAVE_GROUP} bye": ("leave", "bye"),
    f"[Group g] Member m {LEAVE_GROUP} the consumer is closed": ("leave", "the consumer is closed"),
    f"[Group g] Member m {LEAVE_GROUP} not provided": ("leave", None),
    "Member m in group g has failed, removing it from the group.": ("session timeout", None),
    "Group g removed dynamic members who haven't joined: [m]": ("rebalance timeout", None),
    "Group g removed members who haven't sent their sync requests: [m]": (
        "rebalance timeout",
        None,
    ),
}
OLDER = {
    "Member MemberMetadata(memberId=m, groupInstanceId=None, clientId=c, clientHost=/127.0.0.1, "
    "sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, supportedProtocols=List(range)) has left "
    "group g through explicit `LeaveGroup`; client reason: closed": ("leave", "closed"),
    "Member[group.instance.id None, member.id m] in group g has left, removing it from the group": (
        "leave",
        None,
    ),
    "Member m in group g has failed, removing it from the group": ("session timeout", None),
    "Group g removed dynamic members who haven't joined: Set(m)": ("rebalance timeout", None),
}


@pytest.mark.parametrize("text", REAL)
def test_each_line_of_kafka_4(text):
    assert told(text) == told(text, speaker="") == [("g", "m", *REAL[text], None)]


@pytest.mark.parametrize("text", OLDER)
def test_each_line_of_older_ones(text):
    more = {"logger": OLD, "speaker": "[GroupCoordinator 0]: "}
    assert told(text, **more) == [("g", "m", *OLDER[text], None)]


def test_no_form_is_never_seen():
    stays, of_syncs = (
        1,
        1,
    )  # a form that says nothing, and how Kafka 3 would list who has not synced
    twice = 1
    assert len(FORMS) == len(REAL) - twice + len(OLDER) + stays + of_syncs


@pytest.mark.parametrize(
    ("then", "number"),
    [
        ("[GroupId g] Bumped group epoch to 5 with metadata hash -7.", 5),
        (
            (
                "Preparing to rebalance group g in state PreparingRebalance with old generation 4 "
                "(reason: removing member m on heartbeat expiration)."
            ),
            5,
        ),
        ("Stabilized group g generation 5 with 2 members.", 5),
        ("Stabilized group g generation 5 (__consumer_offsets-3) with 2 members", 5),
        ("Group g with generation 5 is now empty.", 5),
        ("[GroupId other] Bumped group epoch to 5 with metadata hash 7.", None),
    ],
)
def test_the_number_is_what_the_file_names_next_for_the_group(then, number):
    last = "Stabilized group g generation 9 with 2 members."
    expected = 9 if number is None else number
    assert told("Stabilized group g generation 1 with 3 members.", LEFT, then, last) == [
        ("g", "m", "leave", None, expected)
    ]


def test_several_are_told_at_once():
    made = [f"a-{UUID}", f"b-{UUID}"]
    text = f"Group g removed dynamic members who haven't joined: [{', '.join(made)}]"
    assert [one[1] for one in told(text)] == made


@pytest.mark.parametrize("members", [f"x, y-{UUID}", f"x-1, y-{UUID}", f"x-{UUID}, y"])
def test_a_list_of_members_that_may_be_one_says_nothing(members):
    """A client may call itself `x, y`, and its member id begins with that."""
    assert told(f"Group g removed dynamic members who haven't joined: [{members}]") == []


def test_a_piece_of_a_line_that_is_too_long_is_none():
    """What is longer is read in pieces, and one of them may look like a line."""
    forged = written(LEFT)[0].rstrip(b"\n").rjust(LONGEST_LINE, b" ")
    assert [*parse_removals([written(LEFT)[0].rstrip(b"\n"), *written(LEFT)])][1:] == []
    assert [*parse_removals([forged.lstrip().ljust(LONGEST_LINE), b"tail\n"])] == []


def test_the_clock_is_read_as_it_is():
    (one,) = parse_removals(written(LEFT))
    assert one.clock_us == 1_795_503_306_214_000


def test_who_goes_for_a_while_is_not_gone():
    text = "[GroupId g] Static member m with instance id i temporarily left the consumer group."
    assert told(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "[GroupId g] Member x left the consumer group.] Member m left the consumer group.",
        "[GroupId g] Member x] Member m left the consumer group.",
        "Member m in group g in group h has failed, removing it from the group.",
        f"[Group g] Member x {LEAVE_GROUP} ] Member m {LEAVE_GROUP} x",
        "[GroupId g] Member m joins the consumer group using the consumer protocol.",
    ],
)
def test_what_can_be_read_in_several_ways_says_nothing(text):
    assert told(text) == []


def test_ids_with_brackets_and_spaces_are_read():
    assert told("[GroupId [a b] (c)] Member m n [o] left the consumer group.")[0][:2] == (
        "[a b] (c)",
        "m n [o]",
    )


def test_a_line_within_an_id_is_none():
    """A group called `x`, a line break, and a line about another group."""
    inner = written(LEFT)[0].decode()
    text = f"[GroupId x\n{inner}] Member y left the consumer group."
    assert [*parse_removals(b"".join(written(text)).splitlines(keepends=True))] == []


@pytest.mark.parametrize(
    "damaged",
    [
        written(LEFT)[0].replace(b"Member m", b"Member \xff\xfe"),
        written(LEFT)[0].replace(b"2026-11-24", b"2026-13-44"),
        written(LEFT)[0].replace(b"INFO ", b""),
        written(LEFT, logger="com.example.Mine")[0],
        written(LEFT)[0][:60],
    ],
)
def test_damaged_lines_and_those_of_others_do_no_harm(damaged):
    good = written("[GroupId h] Member n left the consumer group.")
    found = [*parse_removals([damaged, *written("nothing"), *good])]
    assert [one.group_id for one in found] == ["h"]


def test_of_many_groups_whose_number_never_comes_none_is_lost(monkeypatch):
    monkeypatch.setattr("kohort.pipeline.sources.server_lines.MOST_WAITING", 3)
    texts = [f"[GroupId {number}] Member m left the consumer group." for number in range(9)]
    assert sorted(one[0] for one in told(*texts)) == [str(number) for number in range(9)]
