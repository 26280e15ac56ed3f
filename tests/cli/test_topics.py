# SPDX-License-Identifier: Apache-2.0
"""`kohort topics` against a broker of ours."""

import pytest

from kohort.client.admin import AdminClient
from kohort.errors import UnsupportedVersionError
from kohort.terms import uuid_bytes
from kohort.testing.broker import Broker


def test_a_day_with_topics(kohort):
    with Broker(in_memory=True) as broker:
        server = ("--bootstrap-server", broker.bootstrap)
        assert kohort("topics", "list", *server).rows == [["TOPIC", "PARTITIONS", "ID"]]

        made = kohort(
            *("topics", "create", "orders", "pay", "__consumer_offsets", "--partitions", "2"),
            *("--replication-factor", "1", "--config", "retention.ms=60000", *server),
        )
        assert made.code == 1
        assert made.rows[1:] == [
            ["orders", "created"],
            ["pay", "created"],
            ["__consumer_offsets", "failed"],
        ]
        (complaint,) = made.complaints
        assert complaint.startswith("kohort: topic __consumer_offsets: ")
        assert complaint.endswith("(TOPIC_ALREADY_EXISTS)")

        (orders, pay) = kohort("topics", "list", "--format", "json", *server).json["topics"]
        assert (orders["topic"], orders["partitions"], orders["internal"]) == ("orders", 2, False)
        assert uuid_bytes(pay["topic_id"])

        described = kohort("topics", "describe", "orders", "nope", *server)
        assert described.code == 1
        assert described.rows[1:] == [
            ["orders", "0", "0", "0", "0", "0", "-"],
            ["orders", "1", "0", "0", "0", "0", "-"],
        ]
        assert described.complaints == [
            "kohort: topic nope does not exist (UNKNOWN_TOPIC_OR_PARTITION)"
        ]
        shown = kohort("topics", "describe", "orders", "--format", "json", *server)
        assert shown.code == 0
        assert shown.json["topics"][0]["partitions"][1] == {
            "partition": 1,
            "leader": 0,
            "leader_epoch": 0,
            "replicas": [0],
            "in_sync": [0],
            "offline": [],
        }

        deleted = kohort("topics", "delete", "--yes", "orders", "nope", "--format", "json", *server)
        assert deleted.code == 1
        first, second = deleted.json["topics"]
        assert first == {"topic": "orders", "result": "deleted"}
        assert (second["result"], second["error"]) == ("failed", "UNKNOWN_TOPIC_OR_PARTITION")
        for verb in (("delete", "--yes"), ("describe",)):
            missing = kohort("topics", *verb, "nope", *server)
            assert missing.code == 1
            told = "kohort: topic nope does not exist (UNKNOWN_TOPIC_OR_PARTITION)"
            assert missing.complaints == [told]
        assert missing.out == "", "no table without a row"
        assert [row[0] for row in kohort("topics", "list", *server).rows] == ["TOPIC", "pay"]


def test_a_pattern_can_be_tried(kohort):
    """K848-114."""
    with Broker(in_memory=True) as broker:
        for topic in ("orders", "orders-eu", "payments"):
            broker.create_topic(topic)
        listed = ("topics", "list", "--bootstrap-server", broker.bootstrap, "--matching")
        found = kohort(*listed, "orders-?.*").rows[1:]
        assert [row[0] for row in found] == ["orders", "orders-eu"]
        assert kohort(*listed, "order").rows[1:] == []
        broker.groups["g"].commit("orders")  # which makes the topic of the groups' log
        assert [row[0] for row in kohort(*listed, "__.*").rows[1:]] == ["__consumer_offsets"]
        refused = kohort(*listed, "orders(?=-)")
        assert refused.code == 2
        assert (
            "'orders(?=-)' is not a regular expression of RE2: invalid or unsupported Perl syntax"
            in refused.complaints[-1]
        )


@pytest.fixture
def broker(monkeypatch):
    with Broker(in_memory=True) as broker:
        monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVER", broker.bootstrap)
        yield broker


@pytest.fixture
def asked(monkeypatch):
    """A person at a terminal, who reads, does something else, and says yes."""
    shown = []

    def during(work):
        def confirm(question, lines):
            shown.extend([*lines, question.partition(" at ")[0]])
            work()
            return True

        monkeypatch.setattr("kohort.cli.cluster_commands.is_person", lambda: True)
        monkeypatch.setattr("kohort.cli.cluster_commands.confirm", confirm)
        return shown

    return during


def test_topics_get_more_partitions(kohort, broker):
    broker.create_topic("orders", 2)
    alter = ("topics", "alter", "--yes", "orders", "--partitions")
    dry = kohort(*alter, "5", "--dry-run", "--format", "json")
    assert (dry.code, dry.json["dry_run"]) == (0, True)
    assert dry.json["topics"] == [{"topic": "orders", "result": "would be altered"}]
    assert kohort("topics", "list").rows[1][1] == "2"
    assert kohort(*alter, "5").rows == [["TOPIC", "RESULT"], ["orders", "altered"]]
    assert kohort("topics", "list").rows[1][1] == "5"


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_fewer_partitions_are_refused_for_this_topic_alone(kohort, broker, dry):
    broker.create_topic("orders", 2)
    broker.create_topic("small", 1)
    ran = kohort("topics", "alter", "--yes", "orders", "nope", "small", "--partitions", "2", *dry)
    assert ran.code == 1
    assert [row[-1] for row in ran.rows[1:]] == (
        ["fail", "fail", "altered"] if dry else ["failed", "failed", "altered"]
    )
    fewer, unknown = ran.complaints
    assert fewer.endswith("(INVALID_PARTITIONS)")
    assert unknown.startswith("kohort: topic nope")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in unknown
    assert kohort("topics", "list").rows[2][1] == ("1" if dry else "2")


def test_a_person_is_asked_before_topics_grow(kohort, broker, asked):
    broker.create_topic("orders", 2)
    shown = asked(lambda: None)
    assert kohort("topics", "alter", "orders", "--partitions", "3").code == 0
    assert shown == [
        "topic orders: 2 partitions now, keys may go to other partitions afterwards",
        "Give topic orders 3 partitions",
    ]
    assert kohort("topics", "alter", "orders", "--partitions", "3").code == 1
    assert len(shown) == 2, "nothing would be changed, so nobody is asked"


def _recreate(broker):
    broker.delete_topic("orders")
    broker.create_topic("orders", 7)
    broker.create_topic("late", 1)


def test_a_yes_deletes_the_topics_that_were_shown(kohort, broker, asked):
    """KIP-516: not another one that got the name of the first between the look and the answer, and
    not one that was not there at the look.
    """
    broker.create_topic("orders", 2)
    broker.create_topic("pay", 1)
    shown = asked(lambda: _recreate(broker))
    ran = kohort("topics", "delete", "orders", "pay", "late")
    assert shown[0] == "topic orders: 2 partitions, 0 offsets of records"
    assert ran.code == 1
    assert ran.rows[1:] == [["orders", "failed"], ["pay", "deleted"], ["late", "failed"]]
    assert ran.complaints[0] == (
        "kohort: topic orders was deleted since it was shown; another one of this name is left "
        "alone (UNKNOWN_TOPIC_ID)"
    )
    assert [row[:2] for row in kohort("topics", "list").rows[1:]] == [
        ["late", "1"],
        ["orders", "7"],
    ]


def test_a_broker_that_deletes_by_name_alone_is_looked_at_once_more(
    kohort, broker, asked, monkeypatch
):
    async def refuse(*_):
        raise UnsupportedVersionError("DeleteTopics 6")

    monkeypatch.setattr(AdminClient, "delete_topics_by_id", refuse)
    broker.create_topic("orders", 2)
    broker.create_topic("pay", 1)
    asked(lambda: _recreate(broker))
    ran = kohort("topics", "delete", "orders", "pay", "--format", "jsonl")
    assert ran.code == 1
    assert '"topic": "pay", "result": "deleted"' in ran.out
    assert [row[:2] for row in kohort("topics", "list").rows[1:]] == [
        ["late", "1"],
        ["orders", "7"],
    ]
