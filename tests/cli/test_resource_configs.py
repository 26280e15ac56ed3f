# SPDX-License-Identifier: Apache-2.0
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
    call = ("topics", "config", "--yes", "orders", "audit", "--set", f"{RETENTION}=60000")
    changed = kohort(*call, *server)
    assert rows(changed, RETENTION) == [
        ["orders", RETENTION, "60000", "topic"],
        ["audit", RETENTION, "60000", "topic"],
    ]
    call = ("topics", "config", "orders", "--unset", RETENTION, "--yes", "--format", "json")
    back = kohort(*call, *server)
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
    call = ("topics", "config", "orders", "--yes", *values[:2], "--format", "json")
    changed = kohort(*call, *server).json
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
    more = kohort("brokers", "config", "all", "--yes", "--set", "log.retention.ms=60000", *server)
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


LOSSES = {
    "topics config orders --set retention.ms=60000": [
        "topic orders: retention.ms 604800000 (7 d) -> 60000 (1 min)"
    ],
    "topics config audit --set retention.bytes=1 --set retention.ms=-1": [
        "topic audit: retention.bytes -1 -> 1"
    ],
    # As upstream's, the broker tells no synonym where only its log.retention.hours holds.
    "topics config long --unset retention.ms": [
        "topic long: retention.ms 1209600000 (14 d) -> (what holds without it)"
    ],
    "topics config orders audit none --set cleanup.policy=compact": [
        "topic orders: cleanup.policy delete -> compact",
        "topic audit: cleanup.policy delete -> compact",
    ],
    "brokers config 0 --set log.retention.bytes=1": ["broker 0: log.retention.bytes -1 -> 1"],
    "brokers config all --set log.cleanup.policy=compact": [
        "broker all: log.cleanup.policy delete -> compact"
    ],
}


def at_a_terminal(monkeypatch, answer, meanwhile=lambda: None):
    """A person who reads a question, and answers it so after something has happened."""
    asked = []

    def confirm(question, lines):
        asked.append((question, list(lines)))
        meanwhile()
        return answer

    monkeypatch.setattr("kohort.cli.cluster_commands.is_person", lambda: True)
    monkeypatch.setattr("kohort.cli.cluster_commands.confirm", confirm)
    return asked


def all_configs(kohort, server):
    calls = (("topics", "config", "orders", "audit", "long"), ("brokers", "config", "all", "0"))
    return [kohort(*call, "--format", "json", *server).json for call in calls]


@pytest.mark.parametrize("call", LOSSES)
def test_a_change_that_can_delete_records_is_asked_about(kohort, server, monkeypatch, call):
    """A person sees what is there and what would be; a script needs --yes."""
    with_long = ("topics", "create", "long", "--config", "retention.ms=1209600000")
    assert kohort(*with_long, *server).code == 0
    before = all_configs(kohort, server)

    script = kohort(*call.split(), *server)

    assert (script.code, script.out) == (2, "")
    assert "Make these changes, which can delete records, at " in script.err
    assert "expected --yes, or --dry-run" in script.err

    asked = at_a_terminal(monkeypatch, answer=False)
    assert kohort(*call.split(), *server).code == 1
    assert [lines for _, lines in asked] == [LOSSES[call]]
    assert kohort(*call.split(), "--dry-run", *server).code == ("none" in call)
    assert all_configs(kohort, server) == before

    assert kohort(*call.split(), "--yes", *server).code == ("none" in call)
    assert len(asked) == 1
    assert all_configs(kohort, server) != before


def test_what_all_brokers_fall_back_to_is_named(kohort, server, monkeypatch):
    set_for_all = ("--set", "log.retention.bytes=9999", "--yes")
    assert kohort("brokers", "config", "all", *set_for_all, *server).code == 0
    asked = at_a_terminal(monkeypatch, answer=False)
    taken_back = kohort("brokers", "config", "all", "--unset", "log.retention.bytes", *server)
    assert (taken_back.code, asked) == (0, []), "without the limit all is kept"

    set_for_all = ("--set", "log.retention.ms=-1")
    assert kohort("brokers", "config", "all", *set_for_all, *server).code == 0
    assert kohort("brokers", "config", "all", "--unset", "log.retention.ms", *server).code == 1
    ((_, (line,)),) = asked
    assert line == "broker all: log.retention.ms -1 -> 604800000 (7 d)"


def test_a_value_that_was_set_meanwhile_is_left_alone(kohort, server, monkeypatch):
    """The others of the call are changed."""

    def meanwhile():
        other = ("topics", "config", "orders", "--set", f"{RETENTION}=300000", "--yes")
        assert kohort(*other, *server).code == 0

    at_a_terminal(monkeypatch, answer=True, meanwhile=meanwhile)
    ran = kohort("topics", "config", "orders", "audit", "--set", f"{RETENTION}=60000", *server)
    assert ran.code == 1
    (complaint,) = ran.complaints
    assert "topic orders: its retention.ms was 604800000 (7 d) when it was shown" in complaint
    assert "is 300000 (5 min) now: it is left alone" in complaint
    assert rows(ran, RETENTION) == [["audit", RETENTION, "60000", "topic"]]
    shown = kohort("topics", "config", "orders", *server)
    assert rows(shown, RETENTION) == [["orders", RETENTION, "300000", "topic"]]
