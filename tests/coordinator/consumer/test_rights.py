# SPDX-License-Identifier: Apache-2.0
"""Regular expressions under rules of access: each member reads what it may describe itself."""

from collections.abc import Hashable
from typing import Any

import pytest
from tests.coordinator.consumers import Consumer, Partitions, beat, kinds, request
from tests.coordinator.desk import Desk, topics

from kohort.coordinator.consumer import expressions, rights
from kohort.coordinator.consumer.no_op_heartbeats import no_op_heartbeat_or_none
from kohort.errors import ErrorCode
from kohort.machines.effects import Client

MANY = topics(q1=2, q2=2, other=1)


class Rights:
    """Topics by the client that may describe them; the id of a client stands for its principal."""

    def __init__(self, **seen: str) -> None:
        self.number = 1
        self.seen = {name: set(topics.split()) for name, topics in seen.items()}

    def alike(self, client: Client) -> Hashable:
        return frozenset(self.seen.get(client.id, ()))

    def sees(self, client: Client, topic: str) -> bool:
        return topic in self.seen.get(client.id, ())


class Person(Consumer):
    """A consumer with a principal, that subscribes by the expression."""

    def __init__(self, desk: Desk, name: str, member_id: str = "", expression: str = "q.*") -> None:
        super().__init__(desk, member_id or name)
        self.name = name
        self.expression = expression

    def join(self) -> "Person":
        self.owned = {}
        return self._send(
            epoch=0, subscribed_topic_names=None, subscribed_topic_regex=self.expression
        )

    def beat(self, **fields: Any) -> "Person":
        return self._send(epoch=self.epoch, **fields)

    def _send(self, *, epoch: int, **fields: Any) -> "Person":
        before = self.desk.as_client
        self.desk.as_client = self.name
        try:
            answer = beat(self.desk, self.id, epoch, owned=self.owned, **fields)
        finally:
            self.desk.as_client = before
        self.take(answer)
        return self


class RulesDesk(Desk):
    """A desk whose requests come from `as_client`."""

    as_client = "app"
    rights: Rights

    def told(self, request: Any, version: int, client: str = "") -> Any:
        return super().told(request, version, client or self.as_client)

    def rules_change(self, **seen: str) -> None:
        self.rights.seen.update({name: set(topics.split()) for name, topics in seen.items()})
        self.rights.number += 1
        self.topics_changed(topics(q1=2, q2=2, other=1))
        self.wait(expressions.SETTLING_MS)


@pytest.fixture
def desk() -> RulesDesk:
    return RulesDesk(
        known=MANY,
        rights=Rights(alice="q1 other", bob="q2", carol="q1 q2", dora=""),
        group_consumer_assignment_interval_ms=0,
    )


def group_of(desk: Desk) -> Any:
    return desk.shard.groups.consumer("g")


def rest(*members: Person) -> list[Partitions]:
    for _ in range(6):
        for member in members:
            member.beat()
    return [member.owned for member in members]


def test_two_principals_with_one_expression_read_each_its_own_topics(desk: RulesDesk) -> None:
    """K848-165, SEC-82: Kafka gives both of them what the first one may describe."""
    alice, bob = Person(desk, "alice").join(), Person(desk, "bob").join()

    assert rest(alice, bob) == [{"q1": [0, 1]}, {"q2": [0, 1]}]
    assert group_of(desk).resolved == {"q.*": ("q1", "q2")}, "the log has those of all members"


def test_who_may_describe_nothing_gets_nothing(desk: RulesDesk) -> None:
    assert rest(Person(desk, "dora").join()) == [{}]
    assert group_of(desk).resolved == {"q.*": ()}


def test_one_that_joins_has_at_once_what_others_with_its_rights_have(desk: RulesDesk) -> None:
    rest(Person(desk, "alice").join())
    second = Person(desk, "alice", "second").join()
    desk.errands_held = True
    assert second.beat().epoch == group_of(desk).group_epoch
    assert not desk.driver.tasks
    assert rest(*(Person(desk, "carol", f"c{number}").join() for number in (1, 2)))


def test_a_grant_and_a_revocation_count_a_second_later(desk: RulesDesk) -> None:
    """Kafka looks again when group.consumer.regex.refresh.interval.ms is over."""
    alice, bob = Person(desk, "alice").join(), Person(desk, "bob").join()
    rest(alice, bob)
    desk.rules_change(alice="q1 q2")
    owned = rest(alice, bob)
    assert owned[0]["q1"] == [0, 1]
    assert sorted(owned[0].get("q2", []) + owned[1]["q2"]) == [0, 1]

    desk.rules_change(alice="q2", bob="")
    assert rest(alice, bob) == [{"q2": [0, 1]}, {}]
    assert group_of(desk).resolved == {"q.*": ("q2",)}


def test_rules_that_change_and_change_back_take_nothing_away(desk: RulesDesk) -> None:
    """A tool deletes a rule and makes another one."""
    alice = Person(desk, "alice").join()
    before, epoch = rest(alice), alice.epoch
    for seen in ("", "q1"):
        desk.rights.seen["alice"] = set(seen.split())
        desk.rights.number += 1
        desk.topics_changed(topics(q1=2, q2=2, other=1))
        desk.wait(expressions.SETTLING_MS // 2)
    desk.wait(expressions.SETTLING_MS)
    assert (rest(alice), alice.epoch) == (before, epoch)


def test_a_change_that_concerns_nobody_changes_nothing(desk: RulesDesk) -> None:
    alice = Person(desk, "alice").join()
    rest(alice)
    written, epoch = len(desk.log), alice.epoch
    desk.rules_change(alice="q1", eve="q2")
    rest(alice)
    assert (len(desk.log), alice.epoch) == (written, epoch)


def test_a_new_topic_is_found_for_who_may_describe_it(desk: RulesDesk) -> None:
    alice, bob = Person(desk, "alice").join(), Person(desk, "bob").join()
    rest(alice, bob)
    desk.rights.seen["bob"].add("q3")
    desk.topics_changed(topics(q1=2, q2=2, q3=1, other=1))
    assert rest(alice, bob) == [{"q1": [0, 1]}, {"q2": [0, 1], "q3": [0]}]


def test_a_restart_takes_nothing_away_and_gives_nothing(desk: RulesDesk) -> None:
    """Whose members they are is known again with their heartbeats."""
    alice, bob = Person(desk, "alice").join(), Person(desk, "bob").join()
    before = rest(alice, bob)
    written = len(desk.log)
    desk.restart()
    assert rest(alice, bob) == before
    assert kinds(desk.log[written:]) == [], "nobody has another assignment, or another epoch"


def test_rights_that_are_lost_meanwhile_are_lost_at_the_first_heartbeats(desk: RulesDesk) -> None:
    alice, bob = Person(desk, "alice").join(), Person(desk, "bob").join()
    rest(alice, bob)
    desk.rights.seen["alice"] = {"other"}
    desk.restart()
    assert rest(alice, bob) == [{}, {"q2": [0, 1]}]


def test_before_a_member_is_heard_of_again_it_gets_nothing_new(desk: RulesDesk) -> None:
    carol, bob = Person(desk, "carol").join(), Person(desk, "bob").join()
    rest(carol, bob)
    desk.restart()
    dora = Person(desk, "dora").join()
    rest(bob, dora)
    bob.beat()
    target = group_of(desk).targets["carol"].partitions
    assert len(target) == 1, "q1, as before, and q2 for want of knowledge is bob's"
    desk.rules_change(bob="")
    assert rest(carol, bob, dora) == [{"q1": [0, 1], "q2": [0, 1]}, {}, {}]


def test_what_was_planned_blindly_is_planned_again(desk: RulesDesk) -> None:
    one, two = Person(desk, "carol", "one").join(), Person(desk, "carol", "two").join()
    rest(one, two)
    desk.restart()
    assert len(group_of(desk).targets["one"].partitions) == 1
    three = Person(desk, "carol", "three").join()
    three.beat()
    assert group_of(desk).planned_blindly
    owned = rest(one, two, three)
    assert not group_of(desk).planned_blindly
    assert sorted(sum(map(len, mine.values())) for mine in owned) == [1, 1, 2]


def is_no_op(desk: Desk, member: Person) -> bool:
    """Whether the next heartbeat may be answered from memory."""
    client = Client(member.name, "/127.0.0.1")
    asked = request(member.id, member.epoch)
    return no_op_heartbeat_or_none(desk.shard, asked, client) is not None


def test_heartbeats_of_a_group_at_rest_can_be_answered_from_memory(desk: RulesDesk) -> None:
    """After a restart only once it is known who the member is."""
    alice, bob = Person(desk, "alice").join(), Person(desk, "bob").join()
    rest(alice, bob)
    assert is_no_op(desk, alice)
    desk.restart()
    alice.beat()
    assert not group_of(desk).expressions_stale
    assert (is_no_op(desk, alice), is_no_op(desk, bob)) == (True, False)
    bob.beat()
    assert is_no_op(desk, bob)


def test_a_heartbeat_that_says_nothing_makes_nobody_the_member(desk: RulesDesk) -> None:
    """SEC-83: whoever may read the group may send it."""
    alice = Person(desk, "alice").join()
    before = rest(alice)
    heard = group_of(desk).heard["alice"]
    alice.name = "bob"
    assert rest(alice) == before
    assert group_of(desk).heard["alice"] is heard


def test_who_subscribes_anew_is_judged_by_its_own_rights(desk: RulesDesk) -> None:
    member = Person(desk, "alice").join()
    rest(member)
    member.name = "bob"
    member.beat(subscribed_topic_regex="q.*")
    assert rest(member) == [{"q2": [0, 1]}]


def test_another_expression_names_what_it_may_name(desk: RulesDesk) -> None:
    alice, bob = Person(desk, "alice").join(), Person(desk, "bob", expression="q2|other").join()
    rest(alice, bob)
    alice.beat(subscribed_topic_regex="q2|other")
    assert rest(alice, bob) == [{"other": [0]}, {"q2": [0, 1]}]
    assert group_of(desk).resolved == {"q2|other": ("other", "q2")}


def test_a_failed_resolution_takes_nothing_away(desk: RulesDesk) -> None:
    alice = Person(desk, "alice").join()
    before = rest(alice)
    desk.restart()
    desk.errands_held = True
    alice.beat()
    desk.driver.task_done(desk.driver.tasks.popleft(), TimeoutError("too long"))
    desk.wait(0)
    assert rest(alice) == before
    assert not desk.driver.tasks, "it would fail again, at each heartbeat"


def test_who_is_refused_is_not_remembered(desk: RulesDesk) -> None:
    alice = Person(desk, "alice").join()
    rest(alice)
    desk.shard.record_limit = lambda: 100
    for number in range(50):
        answer = beat(
            desk,
            f"m{number}" * 20,
            0,
            names=None,
            subscribed_topic_regex="q.*",
        )
        assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert len(group_of(desk).heard) <= 3


def test_a_member_that_leaves_is_forgotten(desk: RulesDesk) -> None:
    alice, bob = Person(desk, "alice").join(), Person(desk, "bob").join()
    rest(alice, bob)
    beat(desk, "bob", -1)
    assert set(group_of(desk).heard) == set(group_of(desk).views) == {"alice"}
    rest(alice)
    assert group_of(desk).resolved == {"q.*": ("q1", "q2")}
    desk.rules_change()
    assert group_of(desk).resolved == {"q.*": ("q1",)}


class CountedRights(Rights):
    """Counts the questions."""

    def __init__(self, **seen: str) -> None:
        super().__init__(**seen)
        self.asked = 0

    def sees(self, client: Client, topic: str) -> bool:
        self.asked += 1
        return super().sees(client, topic)


PEOPLE = [f"p{number}" for number in range(20)]
NAMES = [f"q{number:03}" for number in range(250)]
SEEN = {person: " ".join(NAMES[at::20]) for at, person in enumerate(PEOPLE)}


@pytest.fixture
def crowd() -> RulesDesk:
    """20 principals, each of whom may describe other topics of 250."""
    desk = RulesDesk(
        known=topics(**dict.fromkeys(NAMES, 1)),
        rights=CountedRights(**SEEN, late="q000 q001"),
        group_consumer_assignment_interval_ms=0,
    )
    desk.errands_held = True
    for person in PEOPLE:
        Person(desk, person).join()
    return desk


def pieces(desk: RulesDesk) -> Any:
    """A turn after the other, until what was found is written: the questions of each."""
    asked: Any = desk.rights
    desk.errands_held = False
    before = asked.asked
    desk._step()  # the expression is matched; the outcome is taken
    desk.errands_held = True
    while True:
        yield asked.asked - before
        if not desk.driver._long_tasks:
            return
        before = asked.asked
        desk._step()


def test_many_questions_about_rights_are_asked_some_in_a_turn(crowd: RulesDesk) -> None:
    """10,000 topics and 50 principals were six seconds in one piece, in which nobody was served."""
    found = list(pieces(crowd))
    assert max(found) <= rights.AT_ONCE
    assert sum(found) == len(PEOPLE) * len(NAMES)
    assert group_of(crowd).resolved == {"q.*": tuple(NAMES)}
    crowd.errands_held = False
    views = group_of(crowd).views
    assert {name: " ".join(sorted(view.topics)) for name, view in views.items()} == SEEN


def test_what_happens_between_two_turns_counts(crowd: RulesDesk) -> None:
    """A member that joins, rules that change, heartbeats, which ask for nothing more."""
    turns = pieces(crowd)
    for _ in range(5):
        next(turns)
    Person(crowd, "late").join()
    Person(crowd, PEOPLE[3]).join()
    assert not crowd.driver.tasks
    for _ in range(5):
        next(turns)
    crowd.rights.seen[PEOPLE[0]] = {"q249"}
    crowd.rights.number += 1
    for _ in turns:
        pass
    views = group_of(crowd).views
    assert views["late"].topics == {"q000", "q001"}
    assert views[PEOPLE[0]].topics == {"q249"}
    assert views[PEOPLE[1]].topics == set(SEEN[PEOPLE[1]].split())
    assert not group_of(crowd).asks_rights


def test_a_group_that_goes_between_two_turns_is_let_go(crowd: RulesDesk) -> None:
    turns = pieces(crowd)
    next(turns)
    for person in PEOPLE:
        beat(crowd, person, -1)
    for _ in turns:
        pass
    group = group_of(crowd)
    assert group is None or not group.members
    assert not crowd.driver._long_tasks
