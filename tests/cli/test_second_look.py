# SPDX-License-Identifier: Apache-2.0
"""What changes between a question and its yes is left alone, whatever the command."""

import pytest
from tests.serve.talk import Talk

from kohort.client.admin import AdminClient, Outcomes
from kohort.errors import ApiError, ErrorCode
from kohort.testing.broker import Broker


@pytest.fixture
def broker():
    """Group g is at 4 in each of two topics with ten records."""
    with Broker(in_memory=True) as broker:
        for topic in ("orders", "other"):
            broker.create_topic(topic)
            with Talk(broker.bootstrap) as client:
                client.produce(topic, *[b"x"] * 10)
            broker.groups["g"].commit(topic, 4)
        yield broker


@pytest.fixture
def meanwhile(monkeypatch):
    """Has something happen while a person reads the question, and then says yes."""

    def happens(what):
        def confirm(_question, _before):
            what()
            return True

        monkeypatch.setattr("kohort.cli.cluster_commands.is_person", lambda: True)
        monkeypatch.setattr("kohort.cli.cluster_commands.confirm", confirm)

    return happens


COMMANDS = {
    "reset": ("offsets", "reset", "g", "--to-earliest"),
    "clone": ("offsets", "clone", "source", "g"),
    "import": ("offsets", "import", "{file}"),
    "delete": ("offsets", "delete", "g", "--topic", "orders", "--topic", "other"),
    "delete groups": ("groups", "delete", "g"),
}


@pytest.fixture(params=COMMANDS)
def command(request, broker, tmp_path):
    for topic in ("orders", "other"):
        broker.groups["source"].commit(topic, 0)
    file = tmp_path / "offsets.csv"
    file.write_text("g,orders,0,0\ng,other,0,0\n")
    words = [word.format(file=file) for word in COMMANDS[request.param]]
    return [*words, "--bootstrap-server", broker.bootstrap]


def test_an_offset_that_was_committed_meanwhile_stays(kohort, broker, meanwhile, command):
    meanwhile(lambda: broker.groups["g"].commit("orders", 7))

    ran = kohort(*command)

    assert ran.code == 1
    (complaint,) = ran.complaints
    assert "orders:0: its committed offset was 4 when it was shown and is 7 now" in complaint
    assert broker.groups["g"].committed()[("orders", 0)] == 7
    if command[0] == "offsets":
        assert broker.groups["g"].committed().get(("other", 0)) in (None, 0)
    else:
        assert broker.groups["g"].committed()[("other", 0)] == 4


def test_a_first_commit_elsewhere_keeps_a_group(kohort, broker, meanwhile):
    broker.create_topic("third")
    meanwhile(lambda: broker.groups["g"].commit("third", 0))

    ran = kohort("groups", "delete", "g", "--bootstrap-server", broker.bootstrap)

    assert (ran.code, len(broker.groups["g"].committed())) == (1, 3)
    assert "was nothing when it was shown and is 0 now" in ran.complaints[0]


@pytest.mark.parametrize("name", ["reset", "clone", "import"])
def test_offsets_of_a_topic_that_was_made_again_are_left_alone(
    kohort, broker, meanwhile, tmp_path, name
):
    """Its log is another one: what the plan says of it is about records that are gone."""
    for topic in ("orders", "other"):
        broker.groups["source"].commit(topic, 0)
    file = tmp_path / "offsets.csv"
    file.write_text("g,orders,0,0\ng,other,0,0\n")

    def again():
        broker.delete_topic("orders")
        broker.create_topic("orders")
        broker.groups["g"].commit("orders", 4)

    meanwhile(again)
    words = [word.format(file=file) for word in COMMANDS[name]]

    ran = kohort(*words, "--bootstrap-server", broker.bootstrap)

    assert ran.code == 1
    assert "topic orders was deleted since it was shown" in ran.complaints[0]
    assert broker.groups["g"].committed() == {("orders", 0): 4, ("other", 0): 0}


@pytest.mark.parametrize("name", COMMANDS)
def test_without_a_question_there_is_no_second_look(kohort, broker, tmp_path, name):
    broker.groups["source"].commit("orders", 0)
    file = tmp_path / "offsets.csv"
    file.write_text("g,orders,0,0\n")
    words = [word.format(file=file) for word in COMMANDS[name]]

    assert kohort(*words, "--yes", "--bootstrap-server", broker.bootstrap).code == 0


@pytest.mark.parametrize("again", [True, False])
def test_a_topic_that_was_made_again_gets_no_partitions(kohort, broker, meanwhile, again):
    def gone():
        broker.delete_topic("orders")
        if again:
            broker.create_topic("orders")

    meanwhile(gone)

    ran = kohort(
        *("topics", "alter", "orders", "other", "--partitions", "3"),
        *("--bootstrap-server", broker.bootstrap),
    )

    assert ran.code == 1
    (complaint,) = ran.complaints
    assert "topic orders was deleted since it was shown" in complaint
    assert ran.rows[1:] == [["orders", "failed"], ["other", "altered"]]
    rows = kohort("topics", "list", "--bootstrap-server", broker.bootstrap).rows[1:]
    assert {name: count for name, count, *_ in rows} == {
        "other": "3",
        **({"orders": "1"} if again else {}),
    }


@pytest.mark.parametrize("command", [COMMANDS["reset"], ("topics", "alter", "orders")])
def test_a_topic_that_cannot_be_looked_at_again_is_not_said_to_be_gone(
    kohort, broker, meanwhile, monkeypatch, command
):
    """It is left alone: nobody knows whether it is the one that was shown."""
    describe = AdminClient.describe_topics

    async def refused(self, names, **options):
        found = await describe(self, names, **options)
        error = ApiError(ErrorCode.REQUEST_TIMED_OUT, "the broker is slow")
        return Outcomes({**dict(found.items()), "orders": error})

    meanwhile(lambda: monkeypatch.setattr(AdminClient, "describe_topics", refused))
    more = ("--partitions", "3") if command[0] == "topics" else ()

    ran = kohort(*command, *more, "--bootstrap-server", broker.bootstrap)

    assert ran.code == 1
    (complaint,) = ran.complaints
    assert "the broker is slow" in complaint
    assert broker.groups["g"].committed()[("orders", 0)] == 4
