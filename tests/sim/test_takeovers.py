# SPDX-License-Identifier: Apache-2.0
"""Nodes that take a log on another cluster from each other: seeds in which nothing is wrong, and
bugs that are found. Where a change of the model has moved a find:
`python -m kohort.sim --takeovers --plant NAME --minutes 6 --seeds 1-400`.
"""

import os
import subprocess
import sys

import pytest

from kohort.errors import ErrorCode
from kohort.machines.effects import Producer
from kohort.sim.main import main
from kohort.sim.remote.injected_bugs import TAKEOVER_BUGS
from kohort.sim.remote.partition import ProducerIds, RemotePartition
from kohort.sim.remote.run import simulate_takeovers
from kohort.terms import Millis, Offset
from kohort.wire import batch

FINDS = {  # the seed, its minutes, and the alarm
    "read before claim": (1, 6.0, "lost"),
    "no fence": (1, 6.0, "lost"),
    "no keep-alive": (110, 6.0, "stale"),
    "no renewal": (31, 10.0, "stale"),
    "no lease": (5, 6.0, "stale"),
    "lease from arrival": (16, 6.0, "lease"),
    "resent backwards": (1, 6.0, "lost"),
    "answer when sent": (1, 6.0, "acknowledged"),
    "any gap": (3, 6.0, "unseen"),
    "crowded start": (145, 4.0, "stale"),
}


@pytest.mark.parametrize("seed", range(1, 7))
def test_nothing_is_wrong(seed):
    outcome = simulate_takeovers(seed, 3.0)
    assert not outcome.broken, outcome.line()
    assert outcome.pieces > 20


def test_a_seed_is_one_run_whatever_the_hashes_are():
    expected = simulate_takeovers(2, 2.0).line()
    command = [sys.executable, "-m", "kohort.sim", "--takeovers", "--seed", "2", "--minutes", "2"]
    for hashes in ("1", "2"):
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": hashes},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == expected


@pytest.mark.parametrize("plant", FINDS)
def test_a_planted_bug_is_found(plant):
    seed, minutes, alarm = FINDS[plant]
    outcome = simulate_takeovers(seed, minutes, plant=plant)
    assert outcome.broken.startswith(f"{alarm}: "), outcome.line()


def test_every_plant_has_a_seed():
    assert FINDS.keys() == TAKEOVER_BUGS.keys()


def test_the_command_plays_them(capsys):
    assert main(["--takeovers", "--seed", "3", "--minutes", "6", "--plant", "any gap"]) == 0
    assert "without a stranger" in capsys.readouterr().out


@pytest.mark.parametrize("more", [["--plant", "any gap"], ["--takeovers", "--plant", "overtake"]])
def test_a_plant_of_the_other_world_is_refused(more, capsys):
    with pytest.raises(SystemExit):
        main(["--seed", "3", *more])
    assert more[-1] in capsys.readouterr().err


def data(producer, epoch, sequence):
    return batch.build(
        [(b"k", b"v")], 0, producer_id=producer, producer_epoch=epoch, base_sequence=sequence
    )


def test_the_partition_does_what_kafka_does():
    """Findings (a) to (e) of the fencing of a partition, seen on 3.7.2, 3.9.1 and 4.3.1."""
    log, now = RemotePartition(1000), Millis(5000)
    assert log.produce(data(1, 0, 0), now) == (ErrorCode.NONE, 0)
    assert log.produce(data(1, 0, 1), now) == (ErrorCode.NONE, 1)
    assert log.produce(data(1, 0, 1), now) == (ErrorCode.NONE, 1), "the same once more"
    assert log.end == 2
    assert log.produce(data(1, 1, 0), now) == (ErrorCode.NONE, 2), "the next owner's claim"
    for sequence in (2, 0, 1):
        assert log.produce(data(1, 0, sequence), now)[0] is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.produce(data(1, 1, 5), now)[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    moved = batch.stamp(data(1, 1, 1), 7, 0)
    assert log.produce(moved, now)[0] is ErrorCode.INVALID_RECORD
    later = Millis(now + 1001)
    assert log.produce(data(1, 0, 2), later)[0] is ErrorCode.NONE, "it has forgotten the producer"
    assert log.produce(data(1, 1, 1), later)[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_compacted_log_keeps_the_last_batch_of_each_producer():
    log, now = RemotePartition(1000), Millis(0)
    for producer in (1, 1, 2, 2, 3):
        log.produce(batch.build([(b"k", b"v")], 0, producer_id=producer, producer_epoch=0), now)
    log.compact(Offset(4))
    kept = [header.producer_id for header, _ in log.read(Offset(0))]
    assert kept == [1, 2, 3]


def test_producer_ids_are_forgotten_and_used_up():
    ids = ProducerIds(1000, last_epoch=1)
    assert ids.init(None, Millis(0)) == Producer(1, 0)
    assert ids.init(Producer(1, 0), Millis(0)) == Producer(1, 1)
    assert ids.init(Producer(1, 0), Millis(0)) == Producer(1, 1), "its answer was lost"
    assert ids.init(Producer(9, 0), Millis(0)) is ErrorCode.PRODUCER_FENCED
    assert ids.init(None, Millis(0)) == Producer(2, 0), "there is no epoch left"
    assert ids.init(None, Millis(1001)) == Producer(3, 0), "it was silent for too long"
    assert ids.init(Producer(2, 0), Millis(1001)) is ErrorCode.PRODUCER_FENCED
