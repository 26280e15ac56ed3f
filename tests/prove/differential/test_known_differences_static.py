# SPDX-License-Identifier: Apache-2.0
"""What is known of static members is explained where one has come before, and nowhere else."""

from types import SimpleNamespace

import pytest
from tests.prove.differential.comparing import Difference
from tests.prove.differential.known_differences import EXPLANATIONS, explanation_of
from tests.prove.differential.occasions import Occasion
from tests.prove.differential.player import StepOutcome
from tests.prove.differential.steps import Step

FULL, FITS_NOT, FENCED, UNRELEASED, UNKNOWN, STALE = 81, 23, 82, 111, 25, 113
COMMITTED = "topics[].partitions[].error_code"


def told(api, member, instance, code=0, group="g", *, came=True):
    field = "instance_id" if api == "ConsumerGroupHeartbeat" else "group_instance_id"
    request = {"group_id": group, "member_id": member, "member_epoch": 1, field: instance}
    sent = [SimpleNamespace(came=came)] * 2
    return StepOutcome(Step("a", api, 9, {}), [request] * 2, sent, [{"error_code": code}] * 2)


def beat(member, instance, code=0, group="g"):
    return told("ConsumerGroupHeartbeat", member, instance, code, group)


def join(instance, group="g", *, came=True):
    return told("JoinGroup", "", instance, 0, group, came=came)


def name_of(asked, path, kafka, kohort, *before, answers=None):
    """Of what explains the difference in the answer to a request. What waits has no answer."""
    request = asked.requests[0]
    kafka_answer, kohort_answer = answers or ({"error_code": kafka}, {"error_code": kohort})
    difference = Difference(path, kafka, kohort)
    known = explanation_of(
        Occasion(asked.step, request, kafka_answer, kohort_answer, difference, before)
    )
    return None if known is None else known.name


BACK = "static member that comes back to a full group"
REFUSAL = "refusal of a static member in a full group"
OTHERS = "static member that comes back with other assignors"
CALL = "call of a static member that only Kafka refuses to replace"
COMMIT = "commit with the instance id of another member"
NO_COMMIT = "refused commit with the instance id of another member"


@pytest.mark.parametrize("make", [join, lambda instance: beat("m", instance)])
@pytest.mark.parametrize(
    ("codes", "name"),
    [
        ((FULL, 0), BACK),
        ((FULL, FENCED), REFUSAL),
        ((FULL, UNRELEASED), REFUSAL),
        ((FULL, FITS_NOT), REFUSAL),
        ((FULL, UNKNOWN), None),
        ((0, FULL), None),
        ((UNRELEASED, FULL), None),
    ],
)
def test_a_full_group_has_room_for_who_is_in_it(make, codes, name):
    now = make("i")
    assert name_of(now, "error_code", *codes, make("i"), now) == name
    assert name_of(now, "error_code", *codes, make("j"), now) is None
    assert name_of(now, "error_code", *codes, now) is None
    nobody = make(None)
    assert name_of(nobody, "error_code", *codes, make(None), nobody) is None


@pytest.mark.parametrize(("code", "name"), [(FULL, BACK), (FITS_NOT, OTHERS), (UNKNOWN, None)])
def test_a_join_that_kohort_parks_is_one_that_kafka_has_refused(code, name):
    now = join("i")
    refused = {"error_code": code}, None
    when = "(when)", "answered", "waits"
    assert name_of(now, *when, join("i"), now, answers=refused) == name
    assert name_of(now, *when, join("i", "h"), now, answers=refused) is None


def test_a_member_that_a_full_group_puts_out_ends_the_sequence():
    named = told("JoinGroup", "m", "i")
    known = name_of(named, "error_code", FULL, FENCED, join("i"), named)
    assert known == "refusal of a member in a full group"
    assert not next(one for one in EXPLANATIONS if one.name == known).goes_on
    assert next(one for one in EXPLANATIONS if one.name == REFUSAL).goes_on


def test_other_assignors_are_those_of_a_classic_join():
    now = join("i")
    assert name_of(now, "error_code", FITS_NOT, 0, join("i"), now) == OTHERS
    assert name_of(now, "error_code", 0, FITS_NOT, join("i"), now) is None
    assert name_of(beat("m", "i"), "error_code", FITS_NOT, 0, beat("m", "i"), now) is None


@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
def test_a_call_goes_on_waiting_where_kafka_has_refused_the_successor(api):
    call = told(api, "", "i")
    when = "(when)", "waits", "answered"
    fenced = None, {"error_code": FENCED}
    assert name_of(call, *when, join("i"), join("i"), answers=fenced) == CALL
    assert name_of(call, *when, join("i"), join("i", came=False), answers=fenced) is None
    assert name_of(call, *when, join("i", "h"), join("i", "h"), answers=fenced) is None
    other = None, {"error_code": 0}
    assert name_of(call, *when, join("i"), join("i"), answers=other) is None


@pytest.mark.parametrize(
    ("codes", "name"),
    [
        ((0, FENCED), COMMIT),
        ((0, UNKNOWN), COMMIT),
        ((STALE, FENCED), NO_COMMIT),
        ((UNKNOWN, FENCED), NO_COMMIT),
        ((FENCED, 0), None),
        ((0, STALE), None),
    ],
)
@pytest.mark.parametrize("api", ["OffsetCommit", "TxnOffsetCommit"])
def test_a_commit_has_the_instance_id_of_its_member(api, codes, name):
    commit = told(api, "m", "i")
    where = COMMITTED, *codes
    assert name_of(commit, *where, beat("m", "j")) == name
    assert name_of(commit, *where, beat("m", "i"), beat("n", "i")) == name
    assert name_of(commit, *where, beat("n", "i"), beat("m", "i", FENCED)) == name
    assert name_of(commit, *where, beat("m", "i")) is None
    assert name_of(commit, *where, beat("m", "j", group="h")) is None
    assert name_of(commit, *where, join("j")) is None, "a classic group"
    assert name_of(told(api, "m", None), *where, beat("m", "j")) is None


PICKED = "assignment.topic_partitions[]"


def test_a_member_comes_back_by_another_instance_id():
    def heartbeat(member, instance, epoch):
        one = beat(member, instance)
        one.requests[0]["member_epoch"] = epoch
        return one

    def name(*before, now):
        answer = {"error_code": 0, "member_epoch": 2, "assignment": {}}
        return name_of(now, PICKED, [], [{}], *before, now, answers=(answer, answer))

    exchanged, away = "member that comes back by another instance id", heartbeat("m", "i", -2)
    assert name(away, now=heartbeat("m", "j", 0)) == exchanged
    assert name(away, now=heartbeat("m", "i", 0)) is None
    assert name(away, now=heartbeat("n", "j", 0)) is None
    assert name(heartbeat("m", "i", -1), now=heartbeat("m", "j", 0)) is None
