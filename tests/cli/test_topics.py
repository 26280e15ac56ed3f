"""`kohort topics` against a broker of ours."""

from kohort.terms import uuid_bytes
from kohort.testing.broker import Broker


def test_a_day_with_topics(kohort):
    with Broker(in_memory=True) as broker:
        server = ("--bootstrap-server", broker.bootstrap)
        assert kohort("topics", "list", *server).rows == [["TOPIC", "PARTITIONS", "ID"]]

        made = kohort(
            *("topics", "create", "orders", "pay", "bad name", "--partitions", "2"),
            *("--replication-factor", "1", "--config", "retention.ms=60000", *server),
        )
        assert made.code == 1
        assert made.rows[1:] == [
            ["orders", "created"],
            ["pay", "created"],
            ["bad", "name", "failed"],
        ]
        (complaint,) = made.complaints
        assert complaint.startswith("kohort: topic bad name: ")
        assert complaint.endswith("(INVALID_TOPIC_EXCEPTION)")

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

        deleted = kohort("topics", "delete", "orders", "nope", "--format", "json", *server)
        assert deleted.code == 1
        first, second = deleted.json["topics"]
        assert first == {"topic": "orders", "result": "deleted"}
        assert (second["result"], second["error"]) == ("failed", "UNKNOWN_TOPIC_OR_PARTITION")
        for verb in ("delete", "describe"):
            missing = kohort("topics", verb, "nope", *server)
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
