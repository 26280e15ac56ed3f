# SPDX-License-Identifier: Apache-2.0
"""What the campaigns of kills excuse: a broker that is away, and not one that refuses."""

import threading
import time

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka import errors
from tests.prove.killing import actor as killing
from tests.prove.killing.actor import Actor
from tests.prove.killing.away import is_away
from tests.prove.killing.journal import Journal

AWAY = [
    KafkaException(KafkaError(KafkaError._TRANSPORT)),
    KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN)),
    KafkaException(KafkaError(KafkaError.NOT_COORDINATOR)),
    KafkaException(KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)),
    errors.KafkaConnectionError(),
    errors.NotCoordinatorError(),
    ConnectionRefusedError(),
    EOFError(),
]
REFUSES = [
    KafkaException(KafkaError(KafkaError.INVALID_REQUEST)),
    KafkaException(KafkaError(KafkaError.UNKNOWN)),
    KafkaException(KafkaError(KafkaError._FATAL)),
    KafkaException(KafkaError(KafkaError.KAFKA_STORAGE_ERROR)),
    errors.NonEmptyGroupError(),
    errors.UnknownError(),
    errors.IllegalStateError(),
    AssertionError(),
]


class Once(Actor):
    """Meets one error."""

    def __init__(self, error: BaseException) -> None:
        super().__init__("once", 1, Journal())
        self.error = error

    def act(self) -> None:
        self.ending.set()
        raise self.error


def meets(actor: Actor) -> None:
    actor.start()
    actor.end()


@pytest.mark.parametrize("error", AWAY, ids=repr)
def test_a_broker_that_is_away_is_excused(error: BaseException) -> None:
    assert is_away(error)
    meets(Once(error))


@pytest.mark.parametrize("error", REFUSES, ids=repr)
def test_a_broker_that_refuses_is_not(error: BaseException) -> None:
    assert not is_away(error)
    with pytest.raises(AssertionError, match=type(error).__name__):
        meets(Once(error))


def test_a_campaign_may_excuse_more() -> None:
    actor = Once(KafkaException(KafkaError(KafkaError.KAFKA_STORAGE_ERROR)))
    actor.excused = frozenset({KafkaError.KAFKA_STORAGE_ERROR})
    meets(actor)


class Hanging(Actor):
    """Never comes back from its client."""

    def __init__(self) -> None:
        super().__init__("hanging", 1, Journal())
        self.let_go = threading.Event()

    def act(self) -> None:
        self.say("closes")
        self.let_go.wait(30)


def test_who_hangs_in_a_client_is_told_with_the_call_it_is_in(monkeypatch) -> None:
    monkeypatch.setattr(killing, "ACT_SECONDS", 0.01)
    actor = Hanging()
    actor.start()
    time.sleep(0.05)
    with pytest.raises(AssertionError, match=r"(?s)hanging hangs .*: closes\n.*let_go\.wait"):
        actor.check()
    actor.let_go.set()
    actor.end()
