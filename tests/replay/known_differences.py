# SPDX-License-Identifier: Apache-2.0
"""Answers that differ from upstream's, and why: a feature that is not there yet, or a decision.

Patterns of frame names. COUNTS pins how many answers of each scenario differ, so that an entry that
is no longer needed is found.
"""

_INTERVAL = "decision: the interval between assignments is 0, so that the capture's is set here"
_SHARE = "share and streams groups are only listed"
_JUNK = "decision: a subscription whose bytes lie does not hang the group"
_EPOCH_OF_EMPTY = "decision: an emptied group gets a new, empty target (KAFKA-20442)"
_ASSIGNOR_BUMP = "decision: a change of the effective assignor raises the epoch (KAFKA-20434)"
_OWN_ID = "decision: a static member that comes back with its own id is the same member"
_HAS = "decision: a downgrade writes what members have, where upstream writes what they would get"
_SANE_CODE = "decision: a nonsensical request gets the code that says what is wrong, not -1"
_ONCE = "decision: what a request that reads names again is answered once"

DIFFERENCES: dict[str, str] = {
    "consumer_static/rejoin-same-member-epoch-0": _OWN_ID,
    "consumer_static/describe-empty": _EPOCH_OF_EMPTY,
    "migration/v3-describe-after": _HAS,
    "group_configs/describe-*-missing-group": _INTERVAL,
    "group_configs/alter-*-describe-after-*": _INTERVAL,
    "group_configs/alter-*-bad-operation": _SANE_CODE,
    "group_configs/list-resources-v1-none": "the capture had the topics of all scenarios",
    "find_coordinator/v6-share*": _SHARE,
    "listing/delete-v*-non-empty": _SHARE,
    "classic_other_types/junk-*": _JUNK,
    "classic_too_many_waiting/b-join-parked": "which of the waiting members leads is hash order",
    "consumer_versions/v*-fetch-*-epoch-no-member": _SANE_CODE,
    "consumer_versions/v*-describe-empty": _EPOCH_OF_EMPTY,
    "consumer_versions/classic-leave-v*-describe": _EPOCH_OF_EMPTY,
    "listing/consumer-describe-v*-each-kind": _EPOCH_OF_EMPTY,
    "consumer_reconcile/*": _ASSIGNOR_BUMP,
    "find_coordinator/v0-group": "the internal topic is there from the start",
    "find_coordinator/v1-transaction": "whoever asks first waits until the internal topic is made",
    "listing/describe-v*-twice": _ONCE,
    "listing/consumer-describe-v*-twice": _ONCE,
    "offsets/fetch-v*-same-twice": _ONCE,
    "idempotent/init-first-of-broker": "producer ids are there from the start",
}

COUNTS = {
    "classic_other_types": 6,
    "classic_too_many_waiting": 1,
    "consumer_reconcile": 13,
    "consumer_static": 2,
    "consumer_versions": 9,
    "find_coordinator": 4,
    "group_configs": 11,
    "idempotent": 1,
    "listing": 14,
    "migration": 1,
    "offsets": 3,
}
