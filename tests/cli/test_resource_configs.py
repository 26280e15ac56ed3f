"""`kohort topics config` and `kohort brokers config` against a broker of ours."""

import pytest

from kohort.testing.broker import Broker

RETENTION = "retention.ms"
LARGEST = "message.max.bytes"


@pytest.fixture
def server():
    with Broker(in_memory=True) as broker:
        broker.create_topic("orders")
        broker.create_topic("audit")
        yield ("--bootstrap-server", broker.bootstrap)


def rows(result, setting):
    return [row for row in result.rows if setting in row]


def test_settings_of_topics_are_shown_set_and_taken_back(kohort, server):
    shown = kohort("topics", "config", "orders", *server)
    assert (shown.code, shown.err) == (0, "")
    assert rows(shown, RETENTION) == [["orders", RETENTION, "604800000", "broker"]]
    changed = kohort("topics", "config", "orders", "audit", "--set", f"{RETENTION}=60000", *server)
    assert rows(changed, RETENTION) == [
        ["orders", RETENTION, "60000", "topic"],
        ["audit", RETENTION, "60000", "topic"],
    ]
    back = kohort("topics", "config", "orders", "--unset", RETENTION, "--format", "json", *server)
    (topic,) = back.json["topics"]
    assert topic["topic"] == "orders"
    assert topic["configs"][RETENTION] == {"value": "604800000", "own": False}


def test_a_dry_run_says_what_would_be_and_changes_nothing(kohort, server):
    values = ("--set", f"{RETENTION}=60000", "--dry-run")
    tried = kohort("topics", "config", "orders", "missing", *values, *server)
    assert tried.code == 1
    assert tried.rows[1:] == [["orders", "would", "be", "changed"]]
    assert "missing" in tried.err
    wrong = kohort("topics", "config", "orders", "--set", f"{RETENTION}=soon", "--dry-run", *server)
    assert (wrong.code, wrong.out) == (1, "")
    assert RETENTION in wrong.err
    document = kohort("topics", "config", "orders", *values, "--format", "json", *server).json
    assert document["dry_run"] is True
    (topic,) = document["topics"]
    assert topic["configs"][RETENTION] == {"value": "604800000", "own": False}
    changed = kohort("topics", "config", "orders", *values[:2], "--format", "json", *server).json
    assert "dry_run" not in changed
    assert changed["topics"][0]["configs"][RETENTION]["value"] == "60000"


def test_settings_of_brokers_say_where_they_come_from(kohort, server):
    shown = kohort("brokers", "config", "0", *server)
    assert rows(shown, LARGEST) == [["0", LARGEST, "1048588", "default"]]
    for_all = kohort("brokers", "config", "all", "--set", f"{LARGEST}=2000000", *server)
    assert (for_all.code, for_all.err) == (0, "")
    assert for_all.rows[1:] == [["all", LARGEST, "2000000", "all", "brokers"]]
    own = kohort("brokers", "config", "0", "--set", f"{LARGEST}=3000000", *server)
    assert rows(own, LARGEST) == [["0", LARGEST, "3000000", "broker"]]
    more = kohort("brokers", "config", "all", "--set", "log.retention.ms=60000", *server)
    assert more.code == 0, "a name that is not set for all yet"
    back = kohort("brokers", "config", "0", "--unset", LARGEST, *server)
    assert rows(back, LARGEST) == [["0", LARGEST, "2000000", "all", "brokers"]]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("topics", "config", "orders", "--dry-run"), "topics config: --dry-run changes nothing"),
        (("topics", "config", "t", "--set", "a=1", "--set", "a=2"), "a is in --set twice"),
        (("brokers", "config", "first"), "'first' is no broker, expected its id, or all"),
    ],
)
def test_a_wrong_call_is_said_before_anybody_is_asked(kohort, words, text):
    wrong = kohort(*words, "--bootstrap-server", "127.0.0.1:1")
    assert (wrong.code, wrong.out) == (2, "")
    (line,) = wrong.complaints
    assert text in line


@pytest.mark.parametrize("resource", [("topics", "orders"), ("brokers", "all")])
def test_a_name_that_is_no_setting_is_a_wrong_call(kohort, server, resource):
    noun, given = resource
    wrong = kohort(noun, "config", given, "--set", "log.retention.mss=1", *server)
    assert (wrong.code, wrong.out) == (2, "")
    (line,) = wrong.complaints
    assert f"log.retention.mss is not a setting of {noun}" in line


def test_a_broker_that_is_not_there_is_named(kohort, server):
    shown = kohort("brokers", "config", "0", "7", *server)
    assert shown.code == 1
    assert rows(shown, LARGEST)
    assert "broker 7 is not in the cluster, expected one of 0" in shown.err
