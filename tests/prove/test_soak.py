# SPDX-License-Identifier: Apache-2.0
"""For an hour everything comes and goes at a broker with 5,000 partitions and 1,000 descriptors: at
the end it needs as much, and is as quick, as after five minutes.

`KOHORT_SOAK_SECONDS` says for how long.
"""

import asyncio
import os
import re
import threading
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.prove.soak.lives import live
from tests.prove.sweep.bystander import Bystander, bystander
from tests.serve.few_descriptors import create, limited
from tests.serve.talk import address_of

SECONDS = int(os.environ.get("KOHORT_SOAK_SECONDS", "3600"))
FIRST_S = SECONDS / 12  # five minutes of an hour
LOOK_S = FIRST_S / 5
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    # What is kept of producers and ids that are gone has come and gone by the first look.
    "producer.id.expiration.ms": "30000",
    "transactional.id.expiration.ms": "30000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "10000",
}
FILES, TOPICS, PARTITIONS = 1000, 5, 1000
EACH = 3

pytestmark = [pytest.mark.prove, pytest.mark.timeout(900 + 2 * SECONDS)]


class Look(NamedTuple):
    """What the broker needs, and how long a member beside waits."""

    at_s: float
    memory_mib: float
    files: int
    p99_ms: float
    longest_ms: float

    def __str__(self) -> str:
        return (
            f"after {self.at_s:5.0f} s: {self.memory_mib:6.1f} MiB, {self.files:4} files, "
            f"p99 {self.p99_ms:6.2f} ms, longest {self.longest_ms:7.1f} ms"
        )


def look(pid: int, beside: Bystander, begun: float) -> Look:
    """All waits since the last look are of it."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    memory = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert memory is not None
    files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    at = time.monotonic() - begun
    found = Look(at, int(memory[1]) / 1024, files, beside.p99_s() * 1000, beside.longest_s() * 1000)
    beside.begin()
    return found


def test_an_hour_leaves_nothing_behind(tmp_path):
    settings = [part for item in SETTINGS.items() for part in ("-X", "=".join(item))]
    done: Counter[str] = Counter()
    with limited(FILES, tmp_path, *settings) as broker:
        with broker.talk() as client:
            assert create(client, "narrow-8") == (0, None)  # the bystander's
            for number in range(TOPICS):
                assert create(client, f"wide-{number}", PARTITIONS) == (0, None)
        failed: list[BaseException] = []

        def run() -> None:
            try:
                asyncio.run(live(broker.address, SECONDS, EACH, 1, done))
            except BaseException as error:  # noqa: BLE001  (told by the test)
                failed.append(error)

        with bystander(address_of(broker.address)) as beside:
            lives = threading.Thread(target=run)
            lives.start()
            begun = time.monotonic()
            looks = []
            while lives.is_alive():
                lives.join(LOOK_S)
                looks.append(look(broker.process.pid, beside, begun))
                print(looks[-1], dict(done), flush=True)
            assert not failed, failed
    first = [one for one in looks if one.at_s >= FIRST_S][:5]
    last = looks[-6:-1]
    assert len(first) == len(last) == 5
    assert not broker.errors.count("has failed"), broker.errors
    for name, ratio, more in (("memory_mib", 1.1, 10), ("files", 1.1, 10), ("p99_ms", 1.5, 1)):
        before = max(getattr(one, name) for one in first)
        after = sorted(getattr(one, name) for one in last)[2]
        assert after <= ratio * before + more, f"{name}: {before} at first, {after} at last"
