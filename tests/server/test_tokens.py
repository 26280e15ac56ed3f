"""An answer reaches the one that asked; what goes wrong on the way is that one's alone."""

import pytest

from kohort.server.tokens import Gather, Mapped, one_after_the_other


class Asked:
    """What came of a request."""

    def __init__(self):
        self.told = []

    def answer(self, response):
        self.told.append(response)

    def fail(self, error):
        self.told.append(repr(error))


def test_an_answer_may_change_its_shape_on_the_way():
    asked = Asked()
    Mapped(asked, str.upper).answer("done")
    Mapped(asked, str.upper).fail(ValueError("bad"))

    assert asked.told == ["DONE", "ValueError('bad')"]


def test_an_answer_that_cannot_be_changed_ends_the_request():
    asked = Asked()
    Mapped(asked, lambda _: 1 / 0).answer("done")

    assert asked.told == ["ZeroDivisionError('division by zero')"]


def test_the_last_part_releases_the_whole_in_the_order_of_the_question():
    asked = Asked()
    gather = Gather(asked, 3, "".join)
    for index in (2, 0):
        gather.part(index).answer("abc"[index])
    before = list(asked.told)
    gather.part(1).answer("b")

    assert (before, asked.told) == ([], ["abc"])


def test_a_part_that_fails_fails_the_whole():
    asked = Asked()
    gather = Gather(asked, 2, "".join)
    gather.part(0).answer("a")
    gather.part(1).fail(OSError("gone"))

    assert asked.told == ["OSError('gone')"]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_parts_are_asked_for_one_after_the_other(count):
    asked, waiting = Asked(), []
    one_after_the_other(asked, count, lambda part, number: waiting.append((part, number)), tuple)
    for number in range(count):
        ((part, index),) = waiting
        waiting.clear()
        assert (index, asked.told) == (number, [])
        part.answer(number * 10)

    assert (waiting, asked.told) == ([], [tuple(range(0, count * 10, 10))])


def test_very_many_parts_may_be_answered_at_once():
    asked = Asked()
    one_after_the_other(asked, 5_000, lambda part, number: part.answer(number), sum)

    assert asked.told == [sum(range(5_000))]


def test_a_part_that_cannot_be_asked_for_fails_the_whole():
    asked = Asked()

    def ask(part, number):
        part.answer("x") if number == 0 else part.fail(OSError("gone"))

    one_after_the_other(asked, 2, ask, tuple)

    assert asked.told == ["OSError('gone')"]
