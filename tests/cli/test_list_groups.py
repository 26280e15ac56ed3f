# SPDX-License-Identifier: Apache-2.0
"""`kohort groups list`: filters, orders, and what is looked up beside the listing."""

import time

import pytest
from tests.client.joining import ConsumerMember, commit, coordinator, join_classic
from tests.client.scripted import asynchronous
from tests.serve.talk import Talk

from kohort.client.admin import AdminClient, Outcomes
from kohort.errors import ApiError, ErrorCode
from kohort.testing.broker import Broker


@pytest.fixture(scope="module")
def server():
    """Idle is 3 behind, modern reads up to the end with a member; vintage, of Connect, has none."""

    @asynchronous
    async def populate():
        async with coordinator(broker.bootstrap, "idle") as connection:
            assert await commit(connection, "idle", {("orders", 0): 2}) == [0]
        async with coordinator(broker.bootstrap, "modern") as connection:
            member = ConsumerMember(connection, "modern", "member-1")
            await member.join("orders")
            more = {"member_id": "member-1", "epoch": member.epoch}
            assert await commit(connection, "modern", {("orders", 0): 5}, **more) == [0]
        async with coordinator(broker.bootstrap, "vintage") as connection:
            await join_classic(connection, "vintage", "orders", [0], protocol_type="connect")

    with Broker(in_memory=True) as broker:
        with Talk(broker.bootstrap) as client:
            client.create_topic("orders")
            client.produce("orders", *[b"x"] * 5)
        populate()
        yield ("--bootstrap-server", broker.bootstrap)


def names(ran):
    return [row[0] for row in ran.rows[1:]]


def test_members_and_lag_on_request(kohort, server):
    ran = kohort("groups", "list", "--members", "--lag", "--totals", *server)
    assert (ran.code, ran.err) == (0, "")
    assert ran.rows == [
        ["GROUP", "TYPE", "STATE", "PROTOCOL", "MEMBERS", "LAG"],
        ["idle", "classic", "Empty", "-", "0", "3"],
        ["modern", "consumer", "Stable", "consumer", "1", "0"],
        ["vintage", "classic", "Stable", "connect", "1", "-"],
        ["3", "groups:", "2", "Stable,", "1", "Empty;", "2", "members;", "3", "records", "behind"],
    ]
    found = kohort("groups", "list", "--lag", "--format", "json", *server).json["groups"]
    assert [(one["lag"], one["lag_unknown_partitions"]) for one in found] == [
        *((3, 0), (0, 0), (None, 0)),
    ]
    assert "members" not in found[0]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--match", "^.d"), ["idle"]),
        (("--match", "d"), ["idle", "modern"]),
        (("--protocol", "connect"), ["vintage"]),
        (("--protocol", "consumer"), ["idle", "modern"]),
        (("--protocol", "consumer", "--protocol", "connect"), ["idle", "modern", "vintage"]),
        (("--only-lagging",), ["idle"]),
        (("--sort", "lag"), ["idle", "modern", "vintage"]),
        (("--sort", "members"), ["modern", "vintage", "idle"]),
        (("--sort", "state"), ["idle", "modern", "vintage"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_groups_are_chosen_and_sorted(kohort, server, options, found):
    """K518-29."""
    assert names(kohort("groups", "list", *options, *server)) == found


def test_partitions_without_a_commit_are_in_no_lag_and_are_told(kohort):
    """A member reads three partitions, and has committed in one: that it is at the end of this one
    says nothing of the others.
    """

    @asynchronous
    async def populate():
        for group, places in (("some", [("orders", 0)]), ("fresh", [])):
            async with coordinator(broker.bootstrap, group) as connection:
                member = ConsumerMember(connection, group, "member-1")
                await member.join("orders")
                more = {"member_id": "member-1", "epoch": member.epoch}
                if places:
                    await commit(connection, group, dict.fromkeys(places, 0), **more)

    with Broker(in_memory=True) as broker:
        at = ("--bootstrap-server", broker.bootstrap)
        broker.create_topic("orders", partitions=3)
        broker.groups["idle"].commit("orders", 0)
        populate()
        ran = kohort("groups", "list", "--lag", "--totals", *at)
        assert (ran.code, ran.err) == (0, "")
        assert ran.rows[:-1] == [
            ["GROUP", "TYPE", "STATE", "PROTOCOL", "LAG", "UNCOMMITTED"],
            ["fresh", "consumer", "Stable", "consumer", "-", "3"],
            ["idle", "classic", "Empty", "-", "0", "0"],
            ["some", "consumer", "Stable", "consumer", "0", "2"],
        ]
        assert ran.out.endswith("; 0 records behind + 5 partitions without a commit\n")
        found = kohort("groups", "list", "--lag", "--format", "json", *at).json["groups"]
        assert [(one["lag"], one["lag_uncommitted_partitions"]) for one in found] == [
            *((None, 3), (0, 0), (0, 2)),
        ]
        lagging = kohort("groups", "list", "--only-lagging", *at)
        assert names(lagging) == ["fresh", "some"], "they may have something to read"


def test_nothing_is_looked_up_that_nobody_asked_for(kohort, server, monkeypatch):
    def refused(*_, **__):
        raise AssertionError("nobody asked for it")

    monkeypatch.setattr(AdminClient, "describe_groups", refused)
    monkeypatch.setattr(AdminClient, "list_group_offsets", refused)
    assert kohort("groups", "list", "--match", "idle", "--totals", *server).code == 0


def test_a_lag_that_is_not_all_known_says_so(kohort, server, monkeypatch):
    from kohort.client.admin import Outcomes
    from kohort.errors import ApiError, ErrorCode

    async def away(_self, partitions, **_):
        return Outcomes(dict.fromkeys(partitions, ApiError(ErrorCode.LEADER_NOT_AVAILABLE)))

    monkeypatch.setattr(AdminClient, "end_offsets", away)
    ran = kohort("groups", "list", "--lag", "--totals", *server)
    assert [row[-1] for row in ran.rows[1:4]] == ["unknown", "unknown", "-"]
    assert ran.out.endswith("at least 0 records behind, 2 groups not all known\n")


def test_an_expression_that_is_none(kohort):
    ran = kohort("groups", "list", "--match", "[", "--bootstrap-server", "127.0.0.1:1")
    assert (ran.code, ran.out) == (2, "")
    assert "'[' is no regular expression" in ran.err


def test_what_could_not_be_looked_up_is_in_the_document(kohort, server, monkeypatch):
    from kohort.client.admin import Outcomes
    from kohort.errors import ApiError, ErrorCode

    async def refused(_self, ids, **_):
        return Outcomes(dict.fromkeys(ids, ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)))

    monkeypatch.setattr(AdminClient, "list_group_offsets", refused)
    ran = kohort("groups", "list", "--only-lagging", "--match", "idle", "--format", "json", *server)
    assert ran.code == 1
    assert [(one["group_id"], one["lag"]) for one in ran.json["groups"]] == [("idle", None)]
    assert ran.json["errors"] == [
        {"group_id": "idle", "error": "GROUP_AUTHORIZATION_FAILED", "message": ""}
    ]


def test_the_lag_in_seconds_on_request(kohort):
    now_ms = time.time_ns() // 1_000_000

    @asynchronous
    async def populate():
        async with AdminClient(broker.bootstrap) as admin:
            for group, offset in (("late", 0), ("later", 1), ("done", 2)):
                (await admin.alter_group_offsets(group, {("orders", 0): offset})).all()

    with Broker(in_memory=True) as broker:
        at = ("--bootstrap-server", broker.bootstrap)
        broker.create_topic("orders")
        for hours in (5, 3):
            broker.produce("orders", "x", timestamp_ms=now_ms - hours * 3_600_000)
        populate()
        ran = kohort("groups", "list", "--lag-seconds", *at)
        assert (ran.code, ran.err) == (0, "")
        assert [(row[0], *row[4:7]) for row in ran.rows] == [
            ("GROUP", "LAG", "LAG-TIME"),
            ("done", "0", "0", "s"),
            ("late", "2", "5", "h"),
            ("later", "1", "3", "h"),
        ]
        found = kohort("groups", "list", "--lag-seconds", "--format", "json", *at).json["groups"]
        assert found[0]["lag_seconds"] == 0
        assert 5 * 3600 <= found[1]["lag_seconds"] < 5 * 3600 + 60
        assert found[1]["lag_seconds_bound"] == "exact"
        shown = kohort("groups", "describe", "late", "--lag-seconds", "--totals", *at)
        assert (shown.code, shown.err) == (0, "")
        assert ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "LAG-TIME", "MEMBER"] in shown.rows
        assert ["orders", "0", "0", "2", "2", "5", "h", "-"] in shown.rows
        assert "group late: 2 records behind, in time 5 h" in shown.out
        csv = kohort("groups", "describe", "late", "--lag-seconds", "--format", "csv", *at)
        assert "lag_seconds,lag_seconds_bound,lag_seconds_reason" in csv.out.splitlines()[0]
        oldest = kohort("groups", "list", "--sort", "lag-seconds", *at)
        assert oldest.rows[0][-1] == "LAG-TIME", "who sorts by it sees it"
        assert names(oldest)[0] == "late"
        plain = kohort("groups", "describe", "late", "--format", "json", *at).json["groups"]
        assert "lag_seconds" not in plain[0]["offsets"][0]


def test_a_topic_that_cannot_be_read_leaves_the_lag_in_seconds_unknown(kohort, server, monkeypatch):
    async def denied(_self, offsets, **_options):
        error = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "you may not read it")
        return Outcomes(dict.fromkeys(offsets, error))

    monkeypatch.setattr(AdminClient, "time_lags", denied)
    for command in (("list",), ("describe", "idle")):
        ran = kohort("groups", *command, "--lag-seconds", *server)
        assert ran.code == 1
        assert ran.complaints == [
            "kohort: orders:0: lag in seconds: you may not read it (TOPIC_AUTHORIZATION_FAILED)"
        ]
        assert "unknown" in ran.out


def test_groups_without_a_commit_for_so_long(kohort, monkeypatch):
    """A commit is as old as its record: the broker's clock goes on by two days between them."""

    @asynchronous
    async def commit(group):
        async with AdminClient(broker.bootstrap) as admin:
            (await admin.alter_group_offsets(group, {("orders", 0): 0})).all()

    with Broker(in_memory=True) as broker:
        at = ("--bootstrap-server", broker.bootstrap)
        broker.create_topic("orders")
        commit("idle")
        broker.clock.advance(2 * 86_400)
        commit("busy")
        now_ns = time.time_ns() + 2 * 86_400 * 10**9
        with monkeypatch.context() as patch:
            patch.setattr(time, "time_ns", lambda: now_ns)
            ran = kohort("groups", "list", "--idle", "1d", *at)
            assert (ran.code, ran.err, names(ran)) == (0, "", ["idle"])
            ran = kohort("groups", "list", "--idle", "3d", "--lag", *at)
            assert (ran.code, names(ran)) == (0, [])
        assert kohort("groups", "list", "--idle", "soon", *at).code == 2


def test_whether_a_group_is_idle_may_not_be_known(kohort, server, monkeypatch):
    async def denied(_self, ids, **_options):
        return Outcomes(dict.fromkeys(ids, ApiError(ErrorCode.REQUEST_TIMED_OUT, "too long")))

    monkeypatch.setattr(AdminClient, "commit_times", denied)
    ran = kohort("groups", "list", "--idle", "1d", *server)
    assert (ran.code, names(ran)) == (1, [])
    assert ran.complaints == ["kohort: whether 3 groups may be idle is not known: too long"]
    found = kohort("groups", "list", "--idle", "1d", "--format", "json", *server).json
    assert [one["group_id"] for one in found["errors"]] == ["idle", "modern", "vintage"]
