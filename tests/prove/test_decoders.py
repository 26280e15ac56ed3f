# SPDX-License-Identifier: Apache-2.0
"""Decoders under spoiled bytes: a WireError or a value, and soon."""

import os
import struct
from contextlib import suppress
from random import Random

import pytest
from tests.golden import all_frames
from tests.serve.hostile import spoil

from kohort.errors import WireError
from kohort.wire import batch
from kohort.wire.apis import APIS
from kohort.wire.codec import decode
from kohort.wire.frames import decode_request_header

ROUNDS = int(os.environ.get("KOHORT_FUZZ_FRAMES", "400"))


def every_frame(rounds: int, seed: int) -> None:
    random = Random(seed)
    for one in all_frames():
        api = APIS.get(one["api_key"])
        version = one["version"]
        if api is None or version not in api.versions:
            continue
        for _ in range(rounds):
            data = spoil(random, bytes.fromhex(one["request_hex"]))
            with suppress(WireError):
                _, start = decode_request_header(data, flexible=api.flexible(version))
                decode(api.request, version, data, start)
            if one["response_hex"]:
                data = spoil(random, bytes.fromhex(one["response_hex"]))
                with suppress(WireError):
                    decode(api.response, version, data, 5 if api.flexible(version) else 4)


def every_batch(rounds: int, seed: int) -> None:
    random = Random(seed)
    good = [
        batch.build([(b"k%d" % n, b"v" * n) for n in range(20)], 1_700_000_000_000, compression=c)
        for c in range(5)
    ]
    for _ in range(rounds):
        data = bytearray(random.choice(good))
        for _ in range(random.randint(1, 3)):
            data[random.randrange(61 if random.random() < 0.3 else len(data))] = random.randrange(
                256
            )
        if random.random() < 0.3:
            del data[random.randrange(len(data)) :]
        if len(data) > 12:
            struct.pack_into(">i", data, 8, len(data) - 12)  # or its length gives it away
        with suppress(WireError):
            header = batch.header_at(bytes(data))
            list(batch.records(bytes(data)))
            batch.check(bytes(data), 0, header)


def test_frames():
    every_frame(2, 1)


def test_batches():
    every_batch(2000, 1)


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_frames_for_long():
    every_frame(ROUNDS, 2)


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_batches_for_long():
    every_batch(ROUNDS * 3000, 2)
