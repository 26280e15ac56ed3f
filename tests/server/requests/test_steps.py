"""A request that is answered in steps."""

from typing import Any

import pytest

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Client
from kohort.server.requests.steps import Steps, StepwiseRequest
from kohort.server.scheduler import never


class Token:
    def __init__(self) -> None:
        self.gone = False
        self.answers: list[Any] = []
        self.failures: list[Exception] = []

    def answer(self, response: Any) -> None:
        self.answers.append(response)

    def fail(self, error: Exception) -> None:
        self.failures.append(error)


class Request:
    def refused(self, error: ApiError) -> str:
        return f"refused: {error.code.name}"


@pytest.fixture
def token():
    return Token()


def asked(token: Token, steps: Steps[Any]) -> StepwiseRequest:
    return StepwiseRequest(Call(token, Request(), 0, Client("c", "/h")), steps)


def test_a_short_one_is_answered_at_once(token):
    def steps() -> Steps[Any]:
        return "answer"
        yield

    assert not asked(token, steps()).run(lambda: True)
    assert token.answers == ["answer"]


def test_a_long_one_goes_on_in_each_slice_and_its_answer_is_encoded_in_one_of_its_own(token):
    taken = []

    def steps() -> Steps[Any]:
        for step in range(3):
            taken.append(step)
            yield
        return "answer"

    work = asked(token, steps())
    for count in (1, 2, 3, 3):
        assert work.run(lambda: True)
        assert len(taken) == count
        assert token.answers == []
    assert not work.run(lambda: True)
    assert token.answers == ["answer"]


def test_it_ends_with_its_client(token):
    closed = []

    def steps() -> Steps[Any]:
        try:
            while True:
                yield
        finally:
            closed.append(True)

    work = asked(token, steps())
    assert work.run(lambda: True)
    token.gone = True
    assert not work.run(lambda: True)
    assert (closed, token.answers) == ([True], [])


def test_it_may_refuse_park_or_fail(token):
    def refuses() -> Steps[Any]:
        yield
        raise ApiError(ErrorCode.INVALID_REQUEST)

    def parks() -> Steps[Any]:
        yield

    def fails() -> Steps[Any]:
        yield
        raise ZeroDivisionError

    for steps in (refuses(), parks(), fails()):
        assert not asked(token, steps).run(never)
    assert token.answers == ["refused: INVALID_REQUEST"]
    assert [type(error) for error in token.failures] == [ZeroDivisionError]
