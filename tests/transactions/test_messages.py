# SPDX-License-Identifier: Apache-2.0
"""What goes between the machine and those who write markers."""

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Producer
from kohort.transactions.messages import Enrol, MarkersWritten, Ticket


def test_a_refusal_is_an_answer_where_somebody_waits_for_one():
    error = ApiError(ErrorCode.NOT_COORDINATOR, "elsewhere")

    answer = Enrol("t", Producer(1, 0), ()).refused(error)

    assert (answer.code, answer.message) == (ErrorCode.NOT_COORDINATOR, "elsewhere")
    assert MarkersWritten("t", Ticket(), (), ()).refused(error) is None


def test_a_ticket_is_only_equal_to_itself():
    one, other = Ticket(), Ticket()

    assert one == one  # noqa: PLR0124
    assert one != other
