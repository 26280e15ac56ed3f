# SPDX-License-Identifier: Apache-2.0
"""What a real Kafka and real clients said before they trusted each other (tests/data/sasl)."""

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "sasl"
NONCE = "rOprNGfwEbeRWgbNEkqO"


@cache
def conversations() -> dict[str, dict[str, Any]]:
    """The connections of the recordings by name, in the order in which they were made."""
    return {one["name"]: one for one in _lines("conversations")}


@cache
def logins() -> dict[str, dict[str, Any]]:
    """What real clients sent, by name."""
    return {one["name"]: one for one in _lines("logins")}


def tokens(conversation: dict[str, Any]) -> list[tuple[bytes, bytes | None]]:
    """The tokens that a client sent in SaslAuthenticate, and the answers that were no refusal."""
    return [
        (
            bytes.fromhex(step["request"]["AuthBytes"]),
            bytes.fromhex(step["response"]["AuthBytes"])
            if step.get("response", {}).get("ErrorCode") == 0
            else None,
        )
        for step in conversation["steps"]
        if step.get("api") == "SaslAuthenticate"
    ]


def _lines(name: str) -> list[dict[str, Any]]:
    with lzma.open(DATA / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
