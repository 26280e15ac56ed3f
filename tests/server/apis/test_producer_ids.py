# SPDX-License-Identifier: Apache-2.0
"""InitProducerId: a producer that may repeat itself."""

import pytest

from kohort.errors import ErrorCode
from kohort.wire.messages.init_producer_id import InitProducerIdRequest


def test_an_idempotent_producer(desk):
    desk.create()
    given = desk.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 4)
    other = desk.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 0)
    assert given.producer_id != other.producer_id

    def send(sequence):
        return desk.produce(producer_id=given.producer_id, producer_epoch=0, base_sequence=sequence)

    assert send(0).base_offset == 0
    assert send(1).base_offset == 1
    assert send(1).base_offset == 1
    gap = send(5)
    assert (gap.error_code, gap.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)


@pytest.mark.parametrize(
    ("producer_id", "epoch", "code"), [(-1, -1, 0), (-1, 0, 42), (7, -1, 42), (7, 3, 0)]
)
def test_an_id_without_an_epoch_is_no_producer(desk, producer_id, epoch, code):
    asked = InitProducerIdRequest(
        transactional_id=None,
        transaction_timeout_ms=1000,
        producer_id=producer_id,
        producer_epoch=epoch,
    )
    assert desk.ask(asked, 4).error_code == code
