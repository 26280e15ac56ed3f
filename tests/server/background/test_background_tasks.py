# SPDX-License-Identifier: Apache-2.0
"""Work beside the loop: a part at a time, and its outcome whatever happens."""

from collections.abc import Iterator

import pytest
from tests.client.joining import coordinator, soon
from tests.client.scripted import asynchronous
from tests.coordinator.consumers import request
from tests.coordinator.desk import Desk
from tests.observer import RecordingObserver

import kohort.server.background.threads
from kohort import AdminClient, Broker, NewTopic
from kohort.machines.effects import BackgroundTask
from kohort.server.background.background_tasks import TaskRun
from kohort.server.environment import BrokerEnvironment


@pytest.fixture
def driver():
    return Desk().driver


def test_parts_are_done_one_by_one(driver) -> None:
    def work() -> Iterator[None]:
        yield
        yield
        return 7

    task_run = TaskRun(driver, BackgroundTask(("k",), work, None))
    assert [task_run.step() for _ in range(3)] == [True, True, False]
    assert task_run.outcome == 7


@pytest.mark.parametrize("begins", [True, False])
def test_a_failure_is_the_outcome(driver, begins) -> None:
    def work() -> Iterator[None]:
        if begins:
            yield
        raise ValueError("no")

    task_run = TaskRun(driver, BackgroundTask(("k",), work, None))
    while task_run.step():
        pass
    assert isinstance(task_run.outcome, ValueError)


def test_work_that_cannot_begin_is_a_failure(driver) -> None:
    def work() -> Iterator[None]:
        raise ValueError("no")

    task_run = TaskRun(driver, BackgroundTask(("k",), work, None))
    assert not task_run.step()
    assert isinstance(task_run.outcome, ValueError)


def test_what_takes_too_long_is_given_up(driver) -> None:
    task_run = TaskRun(driver, BackgroundTask(("k",), request, None))
    task_run.give_up(5.0)
    assert str(task_run.outcome) == "it has taken longer than 5 s"
    assert task_run.failure is None


def test_a_failure_that_nobody_has_expected_is_told_with_its_place(driver) -> None:
    def work() -> Iterator[None]:
        raise ZeroDivisionError("no")

    task_run = TaskRun(driver, BackgroundTask(("plan", "g", 3), work, None))
    assert task_run.failure is None
    task_run.step()
    assert task_run.failure.startswith("plan g has failed:\nTraceback")


@asynchronous
async def test_a_broker_gives_up_a_pattern_that_takes_too_long_and_serves_on(monkeypatch) -> None:
    """K848-110."""
    monkeypatch.setattr(kohort.server.background.threads, "LIMIT_SECONDS", 0.0)
    told = RecordingObserver()
    async with Broker(environment=BrokerEnvironment(observe=told)) as broker:
        async with AdminClient(broker.bootstrap, timeout=120) as admin:
            await admin.create_topics([NewTopic(f"t{one}", 1, 1) for one in range(9)])
        async with coordinator(broker.bootstrap, "g") as connection:
            asked = request("a", 0, names=None, subscribed_topic_regex="x?" * 2000)  # few at a time
            answer = await connection.ask(asked, deadline=soon())
            assert answer.error_code == 0
            while not any(
                "cannot be resolved: it has taken longer" in one for one in told.warnings
            ):
                asked = request("a", 1)
                assert (await connection.ask(asked, deadline=soon())).error_code == 0
