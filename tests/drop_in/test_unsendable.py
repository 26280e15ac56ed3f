# SPDX-License-Identifier: Apache-2.0
"""Arguments that no request can have: a line says so, and no traceback of Python."""

import pytest
from tests.drop_in.recorded_runs import run

from kohort.drop_in import configs, consumer_groups, groups
from kohort.drop_in.options import NONE
from kohort.testing import Broker

NO_TEXT = "\udcff"  # what Python makes of an argument of the byte 255
LONG = "g" * 40_000
CONSUMER_GROUPS = {  # a call in which the option counts
    "bootstrap-server": "--list",
    "command-config": "--list",
    "timeout": "--list",
    "validate-regex": "",
    "group": "--describe",
    "topic": "--delete-offsets --group g",
    "state": "--list",
    "type": "--list",
    **dict.fromkeys(
        ("to-offset", "shift-by", "to-datetime", "by-duration", "from-file"),
        "--reset-offsets --group g --topic t --dry-run",
    ),
}
GROUPS = dict.fromkeys(("bootstrap-server", "command-config", "group-type", "protocol"), "--list")
CONFIGS = {
    "bootstrap-server": "--describe --group g",
    "command-config": "--describe --group g",
    "entity-type": "--describe --entity-name g",
    "entity-name": "--describe --all --entity-type groups",
    "group": "--describe --all",
    "add-config": "--alter --group g",
    "add-config-file": "--alter --group g",
    "delete-config": "--alter --group g",
    **dict.fromkeys(configs._OTHERS, "--describe"),
}
CALLS = {consumer_groups: CONSUMER_GROUPS, groups: GROUPS, configs: CONFIGS}
MORE = [  # other calls of options that several actions have
    (consumer_groups, "group", f"--delete --group {NO_TEXT}"),
    (consumer_groups, "group", f"--delete-offsets --group {NO_TEXT} --topic t"),
    (consumer_groups, "group", f"--reset-offsets --group {NO_TEXT} --all-topics --to-latest"),
    (consumer_groups, "topic", f"--delete-offsets --group g --topic {NO_TEXT}:0"),
    (consumer_groups, "topic", f"--reset-offsets --group g --topic {NO_TEXT} --to-latest"),
    (consumer_groups, "topic", f"--reset-offsets --group g --topic {NO_TEXT}:0 --to-latest"),
    (configs, "group", f"--alter --group {NO_TEXT} --delete-config a"),
    (configs, "add-config", f"--alter --group g --add-config {NO_TEXT}=1"),
    (configs, "add-config", f"--alter --group g --add-config a={NO_TEXT}"),
    (consumer_groups, "group", f"--describe --group {LONG}"),
    (consumer_groups, "group", f"--reset-offsets --group {LONG} --all-topics --to-latest"),
    (configs, "group", f"--alter --group {LONG} --delete-config a"),
]
EVERY = [
    *(
        (tool, name, f"--{name} {NO_TEXT} {rest}")
        for tool, calls in CALLS.items()
        for name, rest in calls.items()
    ),
    *MORE,
]
HARMLESS = "protocol"  # it is compared, and never sent


@pytest.fixture(scope="module")
def server():
    with Broker(in_memory=True) as broker:
        broker.create_topic("t")
        broker.groups["g"].commit("t", 0)
        yield broker.bootstrap


@pytest.mark.parametrize("tool", CALLS)
def test_every_option_with_a_value_has_a_call(tool):
    assert {each.name for each in tool.OPTIONS if each.value != NONE} == set(CALLS[tool])


@pytest.mark.parametrize(
    ("tool", "name", "call"),
    EVERY,
    ids=[f"{tool.TOOL.name}-{name}-{at}" for at, (tool, name, _) in enumerate(EVERY)],
)
def test_what_is_no_text_is_refused_in_a_line(server, tool, name, call):
    words = call.split()
    if name != "bootstrap-server":
        words += ["--bootstrap-server", server]
    ran = run(tool.main, words)  # what escapes as an exception fails here
    assert ran.exit == (0 if name == HARMLESS else 1)
    told = ran.stdout + ran.stderr
    assert told
    told.encode()
    assert "codec can't encode" not in told, "words of Python, not of the argument"
