# SPDX-License-Identifier: Apache-2.0
"""Each example runs as it stands, ends well, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.testing.test_plugin import PLUGIN
from tests.waiting import SOON_S

from kohort.testing import Broker

EXAMPLES = Path(__file__).parents[2] / "examples"
PARTS = {  # what another example uses
    *("demo_parts.py", "billing.py"),
    *(f"assignors/{name}.py" for name in ("by_weight", "few_moves", "nearby")),
}
TESTS = {"test_billing.py", "assignors/test_assignors.py"}  # they are run by pytest
LEFT = {"demo.py": ["kohort-demo"]}  # what an example says that it leaves
BY_JAVA = re.compile("hsperfdata_|liblz4|snappy-|libzstd|blockmgr|spark-")
WORDS = {
    "admin.py": "created orders with 3 partitions",
    "admin_sync.py": "topic orders has retention.ms = 86400000",
    "assignors/test_assignors.py": "9 passed",
    "assignors/watch.py": "weight-1 has 2, weight-2 has 4, weight-3 has 6",
    "consume.py": "13 words, most often 'the'",
    "broker.py": "read after the kill: hello",
    "demo.py": "Every check held.",
    "reset_offsets.py": "orders:0: 10 -> 7, 3 records ahead",
    "produce.py": "copied 12 orders in transactions",
    "test_billing.py": "7 passed",
}

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]


def test_all_examples_are_run_here():
    found = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py")}
    assert found == {*WORDS, *PARTS}


@pytest.mark.parametrize("name", WORDS)
def test_an_example_runs_and_leaves_nothing_behind(name, tmp_path):
    temporary, here = tmp_path / "temporary", tmp_path / "here"
    temporary.mkdir()
    here.mkdir()

    done = run(temporary, name, here=here)

    assert done.returncode == 0, done.stdout + done.stderr
    assert WORDS[name] in done.stdout
    assert "Traceback" not in done.stderr
    assert [one.name for one in temporary.iterdir() if not BY_JAVA.match(one.name)] == []
    assert [one.name for one in here.iterdir()] == LEFT.get(name, [])


def test_the_admin_example_asks_any_cluster(tmp_path):
    with Broker(in_memory=True) as broker:
        done = run(tmp_path, "admin.py", broker.bootstrap)

    assert (done.returncode, done.stdout, done.stderr) == (0, "0 groups\n", "")


def run(
    temporary: Path, name: str, *arguments: str, here: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The example in a process group of its own, which is empty when it has ended."""
    tests = ["-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, *PLUGIN]
    with subprocess.Popen(
        [sys.executable, *(tests if name in TESTS else ()), str(EXAMPLES / name), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=here,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:
        try:
            out, err = process.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    deadline = time.monotonic() + SOON_S
    while lives(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)  # init reaps who has ended
    assert not lives(process.pid), "somebody of its group lives"
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def lives(group: int) -> bool:
    """Whether a process group has anybody in it."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
