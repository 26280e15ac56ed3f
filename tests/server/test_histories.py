# SPDX-License-Identifier: Apache-2.0
"""A few hundred histories, the same ones each time; `tests/prove` has the many."""

import pytest
from tests.server.histories import History

FOUND = {  # seeds that have found something once, with their length
    1040: 200,  # a segment that was made, and not used because its name could not be synced
    1486: 200,
    50227: 600,  # what was noted of a deleted topic was forgotten in memory only
    225941550754: 40,  # topics of a catalog whose name was not synced, in the life after a crash
    622768570412: 600,
    447006401883: 200,  # the same: a topic that had been deleted came back
    477701641470: 600,  # a segment came back whose removal was not synced, two lives later
    20385: 150,  # a page was lost that held no more than the offset of a batch
}


@pytest.mark.parametrize("first", range(0, 300, 30))
def test_what_was_acknowledged_is_there_or_refused(first):
    for seed in range(first, first + 30):
        try:
            History(seed).run(40)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_once(seed):
    History(seed).run(FOUND[seed])
