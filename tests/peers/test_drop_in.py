"""Kafka's own tools and ours, side by side on one real broker: every run of the corpus, once more.

What the corpus was recorded on is a moment of one broker; here both tools see the same one, and
whatever it answers today must look the same by both.
"""

import pytest
from tests.drop_in import recorded_cluster as cluster
from tests.drop_in.recorded_runs import KINDS, Run, cases, differences, kind_of, play, prepare, run
from tests.drop_in.test_configs import HEARTBEAT, SESSION
from tests.drop_in.test_recorded_runs import DIFFERENT, TARGET
from tests.peers.kafka import Kafka, run_tool, unavailable

from kohort.drop_in import configs
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


def side_by_side(client, case):
    """Where the two tools differ."""
    server = f"{client.address[0]}:{client.address[1]}"
    if kind_of(case.name) in ("delete-offsets", "reset"):
        cluster.commit_simple(client)
    done = run_tool(CLASSES[case.tool], *prepare(case, server))
    theirs = Run(done.returncode, done.stdout, done.stderr)
    if kind_of(case.name) in ("delete-offsets", "reset"):
        cluster.commit_simple(client)
    ours = play(case, server)
    if kind_of(case.name) in ("list", "kafka-groups"):  # groups of one bucket: in any order
        ours, theirs = _sorted(ours), _sorted(theirs)
    return list(differences(case, ours, server, theirs))


def _sorted(ran):
    return ran._replace(stdout="".join(sorted(ran.stdout.splitlines(keepends=True))))


def test_a_run_of_each_action_is_the_same_by_both_tools(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = [side_by_side(client, case) for case in cases() if case.name in QUICK]
    assert len(found) == len(QUICK)
    assert not any(found), "\n".join(line for lines in found for line in lines)


def test_a_duration_into_the_future_is_taken_by_both_tools(client, tmp_path, monkeypatch):
    """No run of it is in the corpus."""
    monkeypatch.chdir(tmp_path)
    (case,) = [case for case in cases() if case.name == "reset-duration"]
    argv = ["P-1D" if word.startswith("P") else word for word in case.argv]
    found = side_by_side(client, case._replace(argv=tuple(argv)))
    assert not found, "\n".join(found)


@pytest.mark.prove
@pytest.mark.parametrize("kind", KINDS)
def test_every_run_is_the_same_by_both_tools(client, tmp_path, monkeypatch, kind):
    """Both tools see the same broker at the same time."""
    monkeypatch.chdir(tmp_path)
    chosen = [
        case
        for case in cases()
        if kind_of(case.name) == kind and case.name not in OURS_DIFFERS | CHANGES
    ]
    assert chosen
    lines = [line for case in chosen for line in side_by_side(client, case)]
    assert not lines, "\n".join(lines)


def test_settings_of_groups_are_shown_and_changed_alike(client):
    """K848-189: what one of the tools has changed the other one sees."""
    server = f"{client.address[0]}:{client.address[1]}"
    for argv in CONFIGS:
        given = ["--bootstrap-server", server, *argv]
        done = run_tool(CLASSES["kafka-configs"], *given)
        ours = run(configs.main, [*given, JAVA_EXIT_CODES])
        frames = [line for line in done.stderr.splitlines() if not line.startswith("\t")]
        assert ours.stdout.splitlines() == done.stdout.splitlines()
        assert ours.stderr.splitlines() == [line for line in frames if line]
        assert ours.exit == done.returncode
