"""Bytes that no client should send: frames cut short, changed, or made of nothing but chance."""

import struct
from random import Random

from tests.golden import all_frames

from kohort.wire.apis import APIS


def requests() -> list[bytes]:
    """Recorded requests of the APIs that are served: header and body, without the size."""
    found = []
    for one in all_frames():
        if one["api_key"] in APIS and one["version"] in APIS[one["api_key"]].versions:
            found.append(bytes.fromhex(one["request_hex"]))
    return found


def spoil(random: Random, frame: bytes) -> bytes:
    """One frame with something wrong in it, or nothing."""
    match random.randrange(6):
        case 0:
            return frame[: random.randrange(len(frame) + 1)]
        case 1:
            changed = bytearray(frame)
            for _ in range(random.randint(1, 4)):
                changed[random.randrange(len(changed))] = random.choice([0, 1, 127, 128, 255])
            return bytes(changed)
        case 2:
            at = random.randrange(8, max(9, len(frame)))
            huge = struct.pack(">i", random.choice([-1, -2, 2**31 - 1, 10_000_000, 65_536]))
            return frame[:at] + huge + frame[at + 4 :]
        case 3:
            return frame[:8] + random.randbytes(random.randrange(200))
        case 4:
            key, version = random.randrange(-1, 100), random.randrange(-1, 20)
            return struct.pack(">hhi", key, version, 1) + frame[8:]
    return frame


def stream(random: Random, frames: list[bytes], count: int) -> bytes:
    """What a client sends: a few frames, now and then one with a wrong size, or mere noise."""
    out = bytearray()
    for _ in range(count):
        frame = spoil(random, random.choice(frames))
        size = len(frame)
        if random.random() < 0.05:
            size = random.choice([-1, 0, 3, size + 5, max(size - 1, 0), 2**31 - 1, -(2**31)])
        out += struct.pack(">i", size) + frame
    if random.random() < 0.1:
        out += random.randbytes(random.randrange(500))
    return bytes(out)
