# SPDX-License-Identifier: Apache-2.0
"""A Kafka that matches patterns as often as it is asked to.

After it has resolved the patterns of a group it lets ten seconds pass before the next time. A
sequence would have to wait for them again and again. The pause is one constant of one class: a copy
of that class with another number in its place stands ahead of Kafka's own. All else is as released.
"""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

from tests.peers.kafka import class_path

CLASS = "org/apache/kafka/coordinator/group/GroupMetadataManager.class"
_LONG = b"\x05"  # the tag of such a constant
PAUSE = _LONG + struct.pack(">q", 10_000)
NO_PAUSE = _LONG + struct.pack(">q", 0)


def put_into(folder: Path) -> None:
    """Write the changed class. Raises AssertionError where the class is not as it was in 4.3.1."""
    jar = next(one for one in class_path().split(":") if "kafka-group-coordinator-4" in one)
    with zipfile.ZipFile(jar) as content:
        code = content.read(CLASS)
    assert code.count(PAUSE) == 1, f"{CLASS} has {code.count(PAUSE)} constants of 10 s, not one"
    file = folder / CLASS
    file.parent.mkdir(parents=True)
    file.write_bytes(code.replace(PAUSE, NO_PAUSE))
