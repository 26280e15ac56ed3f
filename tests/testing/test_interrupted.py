# SPDX-License-Identifier: Apache-2.0
"""The handler of a signal may raise at any line of `start` and `close`: a `close` behind it ends
everything that had begun.
"""

import operator
import os
import sys
import threading
from pathlib import Path

import pytest
from tests.waiting import eventually

import kohort.testing
from kohort.testing import Broker

LONG = pytest.mark.timeout(1800)
PACKAGE = str(Path(kohort.testing.__file__).parent)


class Interrupt(BaseException):
    """What the handler raises."""


def interrupted(work, number):
    """Whether the work was interrupted before so many lines of the package had begun: lines of this
    thread, and those at which it waits for another one.
    """
    left = number

    def look(frame, event, _):
        nonlocal left
        ours = frame.f_code.co_filename.startswith(PACKAGE)
        waits = frame.f_code.co_qualname == "Event.wait"  # for another thread to begin
        if not ours and not waits:
            return None
        if event == "line" if ours else event != "line":
            left -= 1
            if left == 0:
                raise Interrupt
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        work()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def begun():
    """How many threads, descriptors and children this process has."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    return (
        threading.active_count(),
        len([*Path("/proc/self/fd").iterdir()]),
        len(children.read_text().split()) if children.exists() else 0,
    )


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="nobody tells what is open here")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")  # nor has it begun
@pytest.mark.parametrize(
    ("process", "step"),
    [
        pytest.param(False, 1, id="thread"),
        pytest.param(True, 37, id="process"),
        pytest.param(True, 1, id="process at each", marks=[pytest.mark.prove, LONG]),
    ],
)
def test_nothing_is_left_behind_wherever_start_or_close_is_interrupted(tmp_path, process, step):
    with Broker(data_dir=tmp_path / "data", process=process):
        pass
    before = begun()
    for name in ("start", "close"):
        number, struck = 1, True
        while struck:
            broker = Broker(data_dir=tmp_path / "data", process=process)
            if name == "close":
                broker.start()
            struck = interrupted(getattr(broker, name), number)
            broker.close()
            assert not broker.is_running
            broker.start()
            assert broker.topics == []
            broker.close()
            at = f"all ends that had begun at line {number} of {name}"
            eventually(lambda: all(map(operator.le, begun(), before)), at, 20)
            number += step
        assert number > max(30, 2 * step), "these are most lines of it"
