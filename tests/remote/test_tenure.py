# SPDX-License-Identifier: Apache-2.0
"""When an owner has to write, and when to ask for the next epoch."""

from kohort.remote.tenure import Duty, Expirations, Tenure
from kohort.terms import Millis

LIMITS = Expirations(producer_id_ms=300, transactional_id_ms=3000)


def test_a_third_of_each_expiration():
    tenure = Tenure(LIMITS, Millis(0))
    assert tenure.due(Millis(99)) is None
    assert tenure.wake_at() == 100
    assert tenure.due(Millis(100)) is Duty.KEEP_ALIVE
    tenure.wrote(Millis(100))
    assert tenure.due(Millis(199)) is None
    tenure.wrote(Millis(950))
    assert tenure.wake_at() == 1000
    assert tenure.due(Millis(1000)) is Duty.RENEW


def test_a_renewal_comes_first():
    tenure = Tenure(LIMITS, Millis(0))
    assert tenure.due(Millis(1000)) is Duty.RENEW
    tenure.renewed(Millis(1000))
    assert tenure.due(Millis(1000)) is Duty.KEEP_ALIVE
