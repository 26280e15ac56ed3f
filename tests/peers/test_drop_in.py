# SPDX-License-Identifier: Apache-2.0
"""Kafka's own tools and ours, side by side on one real broker: every run of the corpus once more,
and a matrix of what may be combined.

What the corpus was recorded on is a moment of one broker; here both tools see the same one, and
whatever it answers today must look the same by both.
"""

import itertools

import pytest
from tests.drop_in import recorded_cluster as cluster
from tests.drop_in.recorded_runs import (
    KINDS,
    Case,
    Run,
    cases,
    differences,
    kind_of,
    play,
    prepare,
    run,
)
from tests.drop_in.test_configs import HEARTBEAT, SESSION
from tests.drop_in.test_recorded_runs import DIFFERENT, TARGET
from tests.peers.java_tools import JavaTools, unavailable
from tests.peers.kafka import Kafka

from kohort.drop_in import configs, consumer_groups
from kohort.drop_in.running import JAVA_EXIT_CODES

pytestmark = [
    pytest.mark.java,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(unavailable() is not None, reason=str(unavailable())),
]

CLASSES = {
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
}
OURS_DIFFERS = {name for name, why in DIFFERENT.items() if why != TARGET}  # that was the broker
# The second tool would find nothing left to do.
CHANGES = {
    *("delete-empty-classic", "delete-empty-consumer", "delete-two-ok", "delete-mixed"),
    *("delete-with-execute", "delete-all-groups", "list-after-delete-all"),
}
QUICK = (  # one of each action, for `make test`
    *("list-state-and-type", "describe-classic-members-verbose", "describe-x-all"),
    *("describe-missing", "delete-two-missing", "delete-offsets-two-topics"),
    *("reset-current-dry", "reset-shift-no-commit", "args-two-actions", "kafka-groups-list"),
)
CONFIGS = [
    ["--entity-type", "groups", "--entity-name", "cli-none", "--describe"],
    ["--entity-type", "groups", "--entity-name", "cli-none", "--describe", "--all"],
    ["--group", "cli-simple", "--describe"],
    [
        *("--group", "cli-simple", "--alter"),
        *("--add-config", f"{SESSION}=50000,{HEARTBEAT}=[6000]"),
    ],
    ["--group", "cli-simple", "--describe"],
    ["--group", "cli-simple", "--alter", "--add-config", f"{SESSION}=1"],
    ["--group", "cli-simple", "--alter", "--add-config", "no.such=1"],
    ["--group", "cli-simple", "--alter", "--delete-config", "no.such"],
    ["--group", "cli-simple", "--alter", "--delete-config", f"{SESSION},{HEARTBEAT}"],
    ["--group", "cli-simple", "--alter"],
    ["--entity-type", "groups", "--alter", "--add-config", f"{SESSION}=50000"],
    ["--entity-type", "bogus", "--describe"],
]


@pytest.fixture(scope="module")
def client():
    with Kafka(cluster.SETTINGS, heap="512M") as broker, cluster.talk(broker.address) as talking:
        cluster.make_offsets_topic(talking)
        cluster.make_topics(talking)
        cluster.make_groups(talking)
        yield talking


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Where the tools run, and where their files are."""
    return tmp_path_factory.mktemp("tools")


@pytest.fixture(scope="module")
def java(directory):
    with JavaTools(directory) as tools:
        yield tools


@pytest.fixture(autouse=True)
def _there(directory, monkeypatch):
    monkeypatch.chdir(directory)


def server_of(client):
    return f"{client.address[0]}:{client.address[1]}"


def side_by_side(client, java, case):
    """Where the two tools differ."""
    server = server_of(client)
    if kind_of(case.name) in ("delete-offsets", "reset"):
        cluster.commit_simple(client)
    theirs = Run(*java.run(CLASSES[case.tool], *prepare(case, server)))
    if kind_of(case.name) in ("delete-offsets", "reset"):
        cluster.commit_simple(client)
    ours = play(case, server)
    if kind_of(case.name) in ("list", "kafka-groups"):  # groups of one bucket: in any order
        ours, theirs = _sorted(ours), _sorted(theirs)
    return list(differences(case, ours, server, theirs))


def _sorted(ran):
    return ran._replace(stdout="".join(sorted(ran.stdout.splitlines(keepends=True))))


def test_a_run_of_each_action_is_the_same_by_both_tools(client, java):
    found = [side_by_side(client, java, case) for case in cases() if case.name in QUICK]
    assert len(found) == len(QUICK)
    assert not any(found), "\n".join(line for lines in found for line in lines)


def test_a_duration_into_the_future_is_taken_by_both_tools(client, java):
    """No run of it is in the corpus."""
    (case,) = [case for case in cases() if case.name == "reset-duration"]
    argv = ["P-1D" if word.startswith("P") else word for word in case.argv]
    found = side_by_side(client, java, case._replace(argv=tuple(argv)))
    assert not found, "\n".join(found)


@pytest.mark.prove
@pytest.mark.parametrize("kind", KINDS)
def test_every_run_is_the_same_by_both_tools(client, java, kind):
    """Both tools see the same broker at the same time."""
    chosen = [
        case
        for case in cases()
        if kind_of(case.name) == kind and case.name not in OURS_DIFFERS | CHANGES
    ]
    assert chosen
    lines = [line for case in chosen for line in side_by_side(client, java, case)]
    assert not lines, "\n".join(lines)


def test_settings_of_groups_are_shown_and_changed_alike(client, java):
    """K848-189: what one of the tools has changed the other one sees."""
    for argv in CONFIGS:
        given = ["--bootstrap-server", server_of(client), *argv]
        done = java.run(CLASSES["kafka-configs"], *given)
        ours = run(configs.main, [*given, JAVA_EXIT_CODES])
        frames = [line for line in done.stderr.splitlines() if not line.startswith("\t")]
        assert ours.stdout.splitlines() == done.stdout.splitlines()
        assert ours.stderr.splitlines() == [line for line in frames if line]
        assert ours.exit == done.exit


SECOND = "cli-second"
WAYS = [
    *(["--to-earliest"], ["--to-latest"], ["--to-current"]),
    *(["--to-offset", "3"], ["--to-offset", "1000000"], ["--shift-by", "2"], ["--shift-by", "-9"]),
    *(["--to-datetime", "2023-11-14T22:13:20.003"], ["--to-datetime", "2100-01-01T00:00:00.000Z"]),
    *(["--by-duration", "PT1H"], ["--from-file", "plan.csv"]),
]
MODES = [
    *([], ["--dry-run"], ["--execute"]),
    *(["--export"], ["--export", "--dry-run"], ["--export", "--execute"]),
]
SCOPES = [
    ["--group", "cli-simple", "--all-topics"],
    ["--group", "cli-simple", "--topic", "cli-a"],
    ["--group", "cli-simple", "--topic", "cli-a:0,1", "--topic", "cli-b"],
    ["--group", "cli-simple", "--topic", "cli-b", "--topic", "cli-empty", "--topic", "cli-a"],
    ["--group", "cli-simple", "--topic", "cli-b:1,0", "--topic", "cli-a:2,0,1"],
    ["--group", "cli-simple", "--group", SECOND, "--topic", "cli-a:0"],
    ["--group", "cli-classic", "--all-topics"],
    ["--group", "cli-nobody", "--topic", "cli-empty"],
]
DESCRIBED = (["--group", "cli-simple"], ["--group", "cli-static"], ["--all-groups"])
VIEWS = ([], ["--offsets"], ["--members"], ["--state"])
VERBOSE = ([], ["--verbose"])
PATTERNS = ("", "orders-.*", "a{1001}", "(", "(?=x)", "[[:alpha:]]+", "\\d", "größe", "*")


def restore(client):
    cluster.commit_simple(client)
    cluster.commit(client, SECOND, {("cli-a", 0): (7, 0)})


def committed(client):
    groups = ("--group", "cli-simple", "--group", SECOND)
    return run(
        consumer_groups.main, ["--bootstrap-server", server_of(client), "--describe", *groups]
    )


def differing(client, java, calls):
    """How the tools differ in these calls, and in what is committed after each."""
    tool = "kafka-consumer-groups"
    for call in calls:
        case = Case(" ".join(call), tool, tuple(call), {}, None)
        given = ["--bootstrap-server", server_of(client), *call]
        restore(client)
        theirs = Run(*java.run(CLASSES[tool], *given))
        after = committed(client)
        restore(client)
        ours = run(consumer_groups.main, [*given, JAVA_EXIT_CODES])
        if call.count("--topic") > 1:  # partitions of one slot come in another order in each JVM
            ours, theirs = _sorted(ours), _sorted(theirs)
        yield from differences(case, ours, server_of(client), theirs)
        if committed(client) != after:
            yield f"{case.name}: commits something else"


@pytest.mark.prove
@pytest.mark.parametrize("scope", SCOPES, ids=" ".join)
def test_every_way_to_reset_is_the_same_by_both_tools(client, java, directory, scope):
    """K848-200: in every mode, and what is committed after it is the same."""
    (directory / "plan.csv").write_text("cli-a,0,2\ncli-a,1,1\ncli-b,0,3\n")
    calls = [
        ["--reset-offsets", *scope, *way, *mode] for way, mode in itertools.product(WAYS, MODES)
    ]
    found = list(differing(client, java, calls))
    assert not found, "\n".join(found)


@pytest.mark.prove
def test_every_view_and_what_deletes_is_the_same_by_both_tools(client, java):
    described = itertools.product(DESCRIBED, VIEWS, VERBOSE)
    calls = [["--describe", *which, *view, *how] for which, view, how in described]
    calls += [
        ["--delete", "--group", "cli-simple"],
        ["--delete", "--group", SECOND, "--group", "cli-missing"],
        ["--delete-offsets", "--group", "cli-simple", "--topic", "cli-a"],
        ["--delete-offsets", "--group", "cli-simple", "--topic", "cli-a:0", "--topic", "cli-b:0"],
        ["--delete-offsets", "--group", "cli-simple", "--topic", "cli-a:7"],
        ["--delete-offsets", "--group", "cli-missing", "--topic", "cli-a"],
        *(["--validate-regex", pattern] for pattern in PATTERNS),
    ]
    found = list(differing(client, java, calls))
    assert not found, "\n".join(found)


AT = ["--reset-offsets", "--group", "cli-simple", "--topic", "cli-a", "--dry-run", "--to-datetime"]
OF_SCRIPTS = [  # what scripts were seen to have, and no run of the corpus has
    *(["--describe", "--group="], ["--describe", "--group=", "--members"]),
    *(["--list", "--state="], ["--list", "--type=", "--state", "stable"]),
    ["--describe", "--timeout=", "--group", "cli-simple"],
    *([*AT, f"2023-11-14T22:13:20.{rest}"] for rest in ("000000", "0003+00:00", "123456", "1000")),
    *(["--list", "--command-config", name] for name in ("bad.properties", "long.properties")),
]
PROPERTIES = {
    "bad.properties": "request.timeout.ms=abc\n",
    "long.properties": "default.api.timeout.ms=1000\nrequest.timeout.ms=2000\n",
}


def test_what_scripts_have_is_read_alike_by_both_tools(client, java, directory):
    for name, text in PROPERTIES.items():
        (directory / name).write_text(text)
    found = list(differing(client, java, OF_SCRIPTS))
    assert not found, "\n".join(found)


def test_addresses_of_scripts_are_read_alike_by_both_tools(client, java):
    """As a listener is written, and one without an address."""
    tool = "kafka-consumer-groups"
    for address in (f"SASL_SSL://{server_of(client)}", "no.such.host.invalid:9092"):
        given = ["--bootstrap-server", address, "--list"]
        case = Case(address, tool, tuple(given), {}, None)
        theirs = Run(*java.run(CLASSES[tool], *given))
        ours = run(consumer_groups.main, [*given, JAVA_EXIT_CODES])
        assert not list(differences(case, _sorted(ours), server_of(client), _sorted(theirs)))


def test_a_negative_offset_of_a_file_is_a_wrong_call_to_both_tools(client, java, directory):
    """Ours says in a second line which one it is."""
    (directory / "negative.csv").write_text("cli-a,0,-3\n")
    reset = ["--reset-offsets", "--group", "cli-simple", "--from-file", "negative.csv", "--execute"]
    given = ["--bootstrap-server", server_of(client), *reset]
    theirs = Run(*java.run(CLASSES["kafka-consumer-groups"], *given))
    ours = run(consumer_groups.main, [*given, JAVA_EXIT_CODES])
    assert (ours.exit, ours.stdout.strip()) == (theirs.exit, theirs.stdout.strip()) == (1, "")
    assert ours.stderr.splitlines()[0] == theirs.stderr.splitlines()[0]
