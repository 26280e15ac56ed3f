# SPDX-License-Identifier: Apache-2.0
"""The checker of groups that change their protocol, in histories that no broker has made."""

from collections import Counter

import pytest
from tests.sim.test_checkers import SECOND, alarms

from kohort.coordinator.migration import downgrade, upgrade
from kohort.sim.checkers.migration import MigrationChecker
from kohort.sim.facts import (
    MemberCommitLost,
    MemberCommitSent,
    MemberCommitted,
    MemberForgotten,
    MemberLooked,
)
from kohort.sim.run import simulate

FIVE, SEVEN = MemberCommitSent("g", 0, 5), MemberCommitSent("g", 0, 7)
KEPT = MemberCommitted("g", 0, 7, 2 * SECOND)


@pytest.mark.parametrize(
    ("facts", "wrong"),
    [
        ([FIVE, SEVEN, KEPT, MemberLooked("g", 0, 7, 3 * SECOND)], False),
        ([FIVE, SEVEN, KEPT, MemberLooked("g", 0, 5, 3 * SECOND)], True),
        ([FIVE, SEVEN, KEPT, MemberLooked("g", 0, -1, 3 * SECOND)], True),
        # Asked before it was told that the commit is kept.
        ([FIVE, SEVEN, KEPT, MemberLooked("g", 0, 5, SECOND)], False),
        # Another partition, another group.
        ([FIVE, SEVEN, KEPT, MemberLooked("g", 1, -1, 3 * SECOND)], False),
        ([FIVE, SEVEN, KEPT, MemberLooked("h", 0, -1, 3 * SECOND)], False),
        # An older one without an answer may be carried out late.
        (
            [
                FIVE,
                MemberCommitLost("g", 0, 5, SECOND),
                SEVEN,
                KEPT,
                MemberLooked("g", 0, 5, 3 * SECOND),
            ],
            False,
        ),
        # Nobody has said that.
        ([FIVE, MemberLooked("g", 0, 6, SECOND)], True),
    ],
)
def test_a_migrated_group_loses_no_commit(facts, wrong):
    assert bool(alarms(MigrationChecker, *facts)) is wrong


@pytest.mark.parametrize(("silent_us", "wrong"), [(7 * SECOND, True), (9 * SECOND, False)])
def test_a_member_is_known_for_as_long_as_its_session(silent_us, wrong):
    assert bool(alarms(MigrationChecker, MemberForgotten("g", "m", 0, silent_us))) is wrong


def test_a_run_has_groups_that_go_over_and_back(monkeypatch):
    """Else nothing is judged."""
    done = Counter()
    for module in (upgrade, downgrade):

        def counted(*given, module=module, go_on=module._go_on, **more):
            done[module] += 1
            return go_on(*given, **more)

        monkeypatch.setattr(module, "_go_on", counted)
    outcome = simulate(5, 2.0)
    assert not outcome.broken, outcome.line()
    assert done[upgrade]
    assert done[downgrade]
