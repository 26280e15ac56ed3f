# SPDX-License-Identifier: Apache-2.0
"""A disk that is full for a while, with real clients of both protocols at work: all go on by
themselves, and nothing acknowledged is lost. Once with a kill while it is full.
"""

import errno
import os
import time
from pathlib import Path
from random import SystemRandom

import pytest
from tests.prove.killing.campaign import Campaign
from tests.serve.small_disk import small_file_system

from kohort.errors import ErrorCode

TIMES = int(os.environ.get("KOHORT_FULL_DISKS", "10"))
SEED = int(os.environ.get("KOHORT_FULL_DISKS_SEED", SystemRandom().getrandbits(32)))
FULL_SECONDS = 4.0


def fill(ballast: Path) -> int:
    """Take all room that is left; the number of bytes."""
    taken = 0
    with ballast.open("wb", buffering=0) as file:
        size = 1 << 16
        while size:
            try:
                taken += file.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2
    return taken


def full_again_and_again(campaign: Campaign, small: Path, times: int) -> None:
    """Each second time the broker is killed while there is no room, and started again and again
    until it is ready, as a supervisor does.
    """
    ballast = small / "ballast"
    for number in range(times):
        campaign.goes_on()
        taken = fill(ballast)
        campaign.tell(f"full, with {taken >> 10} KiB of ballast")
        end = time.monotonic() + FULL_SECONDS
        while time.monotonic() < end:
            fill(ballast.with_name(f"more-{time.monotonic()}"))  # what a cleaning has set free
            time.sleep(0.2)
        starts = campaign.victim.starts
        if number % 2:
            campaign.victim.kill()
            promised = campaign.promised()
            campaign.victim.spawn()
            ready = campaign.victim.is_ready()
            campaign.tell(f"killed; ready while the disk is full: {ready}")
        for more in (ballast, *small.glob("more-*")):
            more.unlink()
        if number % 2:
            while not ready:
                campaign.victim.end()
                campaign.victim.spawn()
                ready = campaign.victim.is_ready()
                assert campaign.victim.starts < starts + 5, campaign.victim.lines()
            campaign.compare(promised)
        campaign.check()
    campaign.goes_on()


@pytest.mark.clients
@pytest.mark.prove
@pytest.mark.timeout(600 + 180 * TIMES)
def test_full_for_a_while(crew, tmp_path):
    print(f"seed {SEED}, {TIMES} times")
    with (
        small_file_system(tmp_path / "small", 64) as small,
        Campaign(
            *(crew, tmp_path, SEED),
            data=small / "data",
            never=("Traceback",),
            excused=frozenset({ErrorCode.KAFKA_STORAGE_ERROR}),
        ) as campaign,
    ):
        full_again_and_again(campaign, small, TIMES)
        campaign.end()
