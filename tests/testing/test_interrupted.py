"""The handler of a signal may raise at any line of `start` and `close`: a `close` behind it ends
everything that had begun.
"""

import sys
import threading
from pathlib import Path

import pytest
from tests.waiting import eventually

import kohort.testing
from kohort.testing import Broker

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


def descriptors():
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="nobody tells what is open here")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")  # nor has it begun
def test_nothing_is_left_behind_wherever_start_or_close_is_interrupted(tmp_path):
    with Broker(data_dir=tmp_path / "data"):
        pass
    threads, opened = threading.active_count(), descriptors()
    for name in ("start", "close"):
        number, struck = 0, True
        while struck:
            number += 1
            broker = Broker(data_dir=tmp_path / "data")
            if name == "close":
                broker.start()
            struck = interrupted(getattr(broker, name), number)
            broker.close()
            assert not broker.is_running
            broker.start()
            assert broker.topics == []
            broker.close()
            at = f"all ends that had begun at line {number} of {name}"
            eventually(lambda: threading.active_count() <= threads, at, 20)
            eventually(lambda: descriptors() <= opened, at, 20)
        assert number > 30, "these are most lines of it"
