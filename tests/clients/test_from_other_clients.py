# SPDX-License-Identifier: Apache-2.0
"""The page for those who come from other clients names calls that these clients have."""

import re
from pathlib import Path

import pytest

from kohort import AdminClient

PAGE = Path(__file__).parents[2] / "docs" / "from-other-clients.md"
CALL = re.compile(r"`(\w+)\(")
THEIRS = {
    "kafka-python": ("kafka.admin", "KafkaAdminClient"),
    "confluent-kafka": ("confluent_kafka.admin", "AdminClient"),
    "aiokafka": ("aiokafka.admin", "AIOKafkaAdminClient"),
}

pytestmark = pytest.mark.clients


def columns():
    """The calls in each column of the table of administration, by its head."""
    text = PAGE.read_text(encoding="utf-8").partition("## Administration of groups")[2]
    table = text[text.index("\n|") + 1 :].partition("\n\n")[0]
    lines = table.splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    heads = [head.strip("`") for head in cells[0]]
    return {
        head: {call for row in cells[2:] for call in CALL.findall(row[number])}
        for number, head in enumerate(heads)
    }


def test_every_call_of_ours_is_there():
    calls = columns()["kohort.AdminClient"]
    assert len(calls) >= 9
    assert {call for call in calls if not hasattr(AdminClient, call)} == set()


@pytest.mark.parametrize("client", THEIRS)
def test_every_call_of_theirs_is_there(client):
    module, name = THEIRS[client]
    theirs = getattr(pytest.importorskip(module), name)
    calls = columns()[client]
    assert calls
    assert {call for call in calls if not hasattr(theirs, call)} == set()
