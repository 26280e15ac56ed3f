# SPDX-License-Identifier: Apache-2.0
"""A client may write with any producer id. Whichever it takes, no id is given out twice."""

import pytest
from tests.server.desk import Desk

from kohort.server.partitions.logs import CATALOG_COPY, CATALOG_FILE
from kohort.sim.disk import SimulatedFiles
from kohort.wire.messages.init_producer_id import InitProducerIdRequest

HIGHEST = (1 << 63) - 1
STRANGE = [HIGHEST, (1 << 62) - 1, 1 << 62, (1 << 61) - 1, (1 << 55) - 1, 1 << 55, (1 << 40) - 1]
STRANGE += [1 << 40, 1_000_000]


def given(desk):
    """An id that a producer is given, and has written with."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
    found = desk.ask(request, 4).producer_id
    answer = desk.produce(producer_id=found, producer_epoch=0, base_sequence=0)
    assert answer.error_code == 0
    return found


def write(desk, producer_id):
    answer = desk.produce(producer_id=producer_id, producer_epoch=0, base_sequence=0)
    assert answer.error_code == 0


def killed(files, *, lost=False, seed):
    after = files.after_crash()
    if lost:
        for name in (CATALOG_FILE, CATALOG_COPY):
            after.unlink(f"/data/{name}")
    return after, Desk(files=after, seed=seed)


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize(
    "lives", [[False, False], [True, True], [False, True, True], [True, False, True, True]]
)
def test_no_producer_id_is_given_twice(strange, lives):
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create(partitions=1)
    had = [given(desk) for _ in range(3)]
    write(desk, strange)
    for seed, lost in enumerate(lives):
        files, desk = killed(files, lost=lost, seed=seed)
        had += [given(desk) for _ in range(3)]
    assert len(set(had)) == len(had), had
    assert strange not in had
    assert all(0 <= one < HIGHEST for one in had)
    offsets = 3 * (len(lives) + 1) + 1
    assert desk.cluster.partition("orders", 0).log.end == offsets, "records were thrown away"


def test_an_id_that_somebody_took_beforehand_is_given_to_nobody():
    desk = Desk()
    desk.create()
    first = given(desk)
    write(desk, first + 2)
    had = [given(desk) for _ in range(3)]
    assert first + 2 not in had
    assert desk.cluster.partition("orders", 0).log.end == 5


@pytest.mark.parametrize("strange", STRANGE)
def test_a_strange_id_does_not_hide_those_beside_it_in_another_log(strange):
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create(partitions=1)
    desk.create("strange")
    write(desk, 4_711)
    answer = desk.produce("strange", producer_id=strange, producer_epoch=0, base_sequence=0)
    assert answer.error_code == 0
    files, desk = killed(files, lost=True, seed=5)
    assert given(desk) > 4_711
