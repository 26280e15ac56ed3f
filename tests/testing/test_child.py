# SPDX-License-Identifier: Apache-2.0
"""The process of a broker under test."""

import pickle
import subprocess
import sys
from multiprocessing.connection import Pipe

from tests.testing.test_broker_harness import plan
from tests.waiting import SOON_S

from kohort.errors import ApiError, ErrorCode, KohortError
from kohort.testing import child


def started():
    ours, theirs = Pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "kohort.testing.child", str(theirs.fileno())],
        pass_fds=(theirs.fileno(),),
        stderr=subprocess.PIPE,
        text=True,
    )
    theirs.close()
    return ours, process


def test_it_ends_with_the_test_that_has_started_it():
    pipe, process = started()
    pipe.send(plan())
    number, addresses, error = pipe.recv()
    assert (number, error) == (0, None)
    assert addresses["PLAINTEXT"].startswith("127.0.0.1:")
    for number, command in ((7, "time_ms"), (8, "no_such_command")):
        pipe.send((number, command, (), {}))
    answers = {number: (value, error) for number, value, error in (pipe.recv(), pipe.recv())}
    assert answers[7] == (1_000, None)
    assert isinstance(answers[8][1], AttributeError)
    pipe.close()
    assert process.wait(SOON_S) == 0
    process.stderr.close()


class PickyError(Exception):
    def __init__(self, one, other):
        super().__init__(f"{one}, {other}")


def test_an_error_that_cannot_travel_is_told_by_its_text():
    refused = ApiError(ErrorCode.NON_EMPTY_GROUP, "g")
    assert child.portable(refused) is refused
    again = pickle.loads(pickle.dumps(refused))
    assert (again.code, again.message, str(again)) == (refused.code, "g", str(refused))
    told = child.portable(PickyError(1, 2))
    assert (type(told), str(told)) == (KohortError, "PickyError: 1, 2")


def test_it_says_why_it_does_not_start(tmp_path):
    (tmp_path / "file").write_text("")
    pipe, process = started()
    pipe.send(plan(data_dir=str(tmp_path / "file")))
    assert str(tmp_path / "file") in str(pipe.recv()[2])
    assert process.wait(SOON_S) == 0
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    pipe.close()
