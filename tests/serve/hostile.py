# SPDX-License-Identifier: Apache-2.0
"""Requests that no client should send: cut short, changed, well-formed nonsense, or mere noise."""

import struct
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any

import msgspec
from tests.golden import all_frames

from kohort.errors import WireError
from kohort.wire.apis import APIS
from kohort.wire.codec import decode, encode
from kohort.wire.frames import decode_request_header
from kohort.wire.schema import fields_of

NUMBERS = [-(2**63), -(2**31), -32768, -129, -2, -1, 0, 1, 2, 127, 300, 2**31 - 1, 2**63 - 1]
TEXTS = ["", " ", "t", "orders", "__consumer_offsets", "x" * 250, "\N{SNOWMAN}", "../..", "\0"]


def requests() -> list[bytes]:
    """Recorded requests of the APIs that are served: header and body, without the size."""
    return [
        bytes.fromhex(one["request_hex"])
        for one in all_frames()
        if one["api_key"] in APIS and one["version"] in APIS[one["api_key"]].versions
    ]


def twist(random: Random, message: Any, texts: Sequence[str] = TEXTS) -> None:
    """Change a few fields to what they should not be, but may well be on the wire."""
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        inside = (
            [one for one in value if isinstance(one, msgspec.Struct)]
            if isinstance(value, list)
            else [value]
            if isinstance(value, msgspec.Struct)
            else []
        )
        for one in inside:
            twist(random, one, texts)
        if random.random() > 0.15:
            continue
        match value:
            case bool():
                setattr(message, field.name, not value)
            case int():
                setattr(message, field.name, random.choice(NUMBERS))
            case str():
                setattr(message, field.name, random.choice(texts))
            case bytes() if len(value) != 16:
                setattr(message, field.name, random.randbytes(random.randrange(80)))
            case bytes():
                setattr(message, field.name, random.choice([bytes(16), random.randbytes(16)]))
            case list():
                setattr(message, field.name, random.choice([[], value * 2, value[:1] * 5]))


def nonsense(random: Random, frame: bytes, texts: Sequence[str] = TEXTS) -> bytes:
    """A request that decodes, with fields changed; the frame as it was when that has no bytes."""
    key, version = struct.unpack_from(">hh", frame)
    api = APIS[key]
    with suppress(WireError, struct.error, ValueError, TypeError, AttributeError, OverflowError):
        _, start = decode_request_header(frame, flexible=api.flexible(version))
        message = decode(api.request, version, frame, start)
        twist(random, message, texts)
        return frame[:start] + encode(message, version)
    return frame


def spoil(random: Random, frame: bytes) -> bytes:
    """One frame with something wrong in its bytes."""
    match random.randrange(5):
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
    key, version = random.randrange(-1, 100), random.randrange(-1, 20)
    return struct.pack(">hhi", key, version, 1) + frame[8:]


def stream(
    random: Random, frames: Sequence[bytes], count: int, texts: Sequence[str] = TEXTS
) -> bytes:
    """What a client sends: mostly nonsense that can be read, and at some point what cannot."""
    out = bytearray()
    for _ in range(count):
        frame = random.choice(frames)
        chance = random.random()
        if chance < 0.75:
            frame = nonsense(random, frame, texts)
        elif chance < 0.85:
            frame = spoil(random, frame)
        size = len(frame)
        if random.random() < 0.02:
            size = random.choice([-1, 0, 3, size + 5, max(size - 1, 0), 2**31 - 1, -(2**31)])
        out += struct.pack(">i", size) + frame
    if random.random() < 0.1:
        out += random.randbytes(random.randrange(500))
    return bytes(out)
