# SPDX-License-Identifier: Apache-2.0
"""`kohort-configs` prints what kafka-configs of Apache Kafka 4.3.1 prints for the same broker.

tests/peers/test_drop_in.py runs both.
"""

import pytest
from tests.drop_in.recorded_runs import run

from kohort.drop_in import configs
from kohort.testing import Broker

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
OWN = (
    f"  {HEARTBEAT}=6000 sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{HEARTBEAT}=6000, "
    f"STATIC_BROKER_CONFIG:group.{HEARTBEAT}=100, DEFAULT_CONFIG:group.{HEARTBEAT}=5000}}\n"
    f"  {SESSION}=50000 sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{SESSION}=50000, "
    f"DEFAULT_CONFIG:group.{SESSION}=45000}}\n"
)


@pytest.fixture
def configure():
    with Broker(in_memory=True) as broker:

        def call(*argv, server=True):
            where = ("--bootstrap-server", broker.bootstrap) if server else ()
            return run(configs.main, [*where, *argv])

        yield call


def test_settings_are_set_shown_and_taken_back(configure):
    """K848-189."""
    group = ("--entity-type", "groups", "--entity-name", "g")
    missing = "The group 'g' doesn't exist and doesn't have dynamic config.\n"
    assert configure(*group, "--describe") == (0, missing, "")
    added = f"{SESSION}=50000,{HEARTBEAT}=[6000]"
    done = (0, "Completed updating config for group g.\n", "")
    assert configure(*group, "--alter", "--add-config", added) == done
    shown = configure(*group, "--describe")
    assert shown == (0, f"Dynamic configs for group g are:\n{OWN}", "")
    assert configure("--entity-type", "groups", "--describe") == shown
    assert configure("--group", "g", "--describe") == shown
    everything = configure("--group", "g", "--describe", "--all").stdout
    assert everything.startswith("All configs for group g are:\n")
    assert OWN.splitlines()[1] in everything
    assert "  consumer.assignment.interval.ms=" in everything
    both = ("--delete-config", f"{SESSION},{HEARTBEAT}")
    assert configure(*group, "--alter", *both) == done
    assert configure(*group, "--describe") == (0, missing, "")


def test_of_several_names_the_first_counts(configure):
    """As in the Java tool; a type that is given twice is refused."""
    names = ("--entity-name", "a", "--entity-name", "b")
    ran = configure("--describe", "--entity-type", "groups", *names)
    assert ran == (0, "The group 'a' doesn't exist and doesn't have dynamic config.\n", "")
    ran = configure("--describe", "--entity-type", "groups", "--entity-type", "groups", *names)
    assert ran == (1, "", "Duplicate entity type(s) specified: groups\n")


def test_settings_come_from_a_file(configure, tmp_path):
    file = tmp_path / "group.properties"
    file.write_text(f"# of billing\n{SESSION} = 60000\n")
    changed = configure("--group", "g", "--alter", "--add-config-file", str(file))
    assert changed == (0, "Completed updating config for group g.\n", "")
    assert f"  {SESSION}=60000 " in configure("--group", "g", "--describe").stdout
    absent = configure("--group", "g", "--alter", "--add-config-file", str(tmp_path / "no"))
    assert (absent.exit, absent.stdout) == (1, "")
    assert f"cannot read {tmp_path / 'no'}" in absent.stderr


def test_a_refusal_changes_nothing(configure):
    refused = configure("--group", "g", "--alter", "--add-config", f"{SESSION}=1")
    assert (refused.exit, refused.stdout) == (1, "")
    first, second, third = refused.stderr.splitlines()
    assert first.startswith("Error while executing config command with args '--bootstrap-server ")
    assert first.endswith(f"--group g --alter --add-config {SESSION}=1'")
    why = (
        "org.apache.kafka.common.errors.InvalidConfigurationException: consumer.session.timeout.ms "
        "must be greater than or equal to group.consumer.min.session.timeout.ms, which is 1000"
    )
    assert second == f"java.util.concurrent.ExecutionException: {why}"
    assert third == f"Caused by: {why}"
    assert "doesn't exist" in configure("--group", "g", "--describe").stdout


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["--alter", "--add-config", "a"], "requirement failed: Invalid entity config: all conf"),
        (["--alter"], "At least one of --add-config, --add-config-file, or --delete-config must"),
        (["--describe", "--entity-type", "groups"], "Duplicate entity type(s) specified: groups"),
        ([], "Command must include exactly one action: --describe, --alter\n"),
        (["--describe", "--alter"], "Command must include exactly one action: --describe, --al"),
        (["--describe", "--topic", "t"], "--topic is not served here, expected groups: use kafka-"),
        (["--describe", "--entity-type", "bogus"], "Invalid entity type bogus, the entity type "),
        (["--describe", "--entity-type", "topics"], "--entity-type topics is not served here, e"),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_asked(argv, text):
    ran = run(configs.main, ["--bootstrap-server", "127.0.0.1:1", "--group", "g", *argv])
    assert (ran.exit, ran.stdout) == (1, "")
    assert ran.stderr.startswith(text)


def test_what_lacks_a_server_or_a_group_is_refused():
    ran = run(configs.main, ["--group", "g", "--describe"])
    assert ran == (
        1,
        "",
        "Either --bootstrap-server or --bootstrap-controller must be specified.\n",
    )
    ran = run(
        configs.main,
        ["--bootstrap-server", "127.0.0.1:1", "--entity-type", "groups", "--alter"],
    )
    assert ran == (1, "", "An entity name must be specified with --alter of groups\n")
