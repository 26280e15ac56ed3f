# SPDX-License-Identifier: Apache-2.0
"""Which leader epoch began where, held to the plain list of the records' epochs."""

from hypothesis import given
from hypothesis import strategies as st

from kohort.storage.epochs import UNKNOWN_EPOCH, LeaderEpochs

LEADERS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3)), min_size=1, max_size=6)
"""For each leader: by how much its epoch is higher, and how many records it writes."""


def led(leaders):
    """The epochs of a log, and for each of its records the epoch."""
    epochs, of_records, epoch = LeaderEpochs([]), [], -1
    for step, records in leaders:
        epoch += step
        epochs.begin(epoch, len(of_records))
        of_records += [epoch] * records
    return epochs, of_records


@given(LEADERS)
def test_each_record_has_the_epoch_that_it_was_written_in(leaders):
    epochs, of_records = led(leaders)
    assert [epochs.at(offset) for offset in range(len(of_records))] == of_records
    assert epochs.at(len(of_records)) == epochs.latest


@given(LEADERS, st.integers(0, 20), st.data())
def test_an_epoch_ends_before_the_first_record_of_a_later_one(leaders, asked, data):
    """As LeaderEpochFileCache answers (KIP-101), also where the beginning is deleted."""
    epochs, of_records = led(leaders)
    end = len(of_records)
    start = data.draw(st.integers(0, end))
    found = epochs.end_of(asked, start, end)
    if asked > epochs.latest:
        assert found is None
        return
    left = list(enumerate(of_records))[start:]
    behind = next((offset for offset, epoch in left if epoch > asked), end)
    before = [epoch for _, epoch in left if epoch <= asked]
    known = asked if asked == epochs.latest or not before else before[-1]
    assert found == (known, behind)


def test_what_was_never_noted_is_unknown():
    epochs = LeaderEpochs([(3, 10)])
    assert (epochs.at(9), epochs.at(10)) == (UNKNOWN_EPOCH, 3)
    assert LeaderEpochs([]).latest == UNKNOWN_EPOCH
    assert LeaderEpochs([]).end_of(0, 0, 0) is None
