# SPDX-License-Identifier: Apache-2.0
"""Names for the topics and groups of a test: fresh ones, which say what test they are of."""

import re
from itertools import count

LONGEST = 100  # a topic's name may be 249 characters long, and a folder has the partition behind it

_numbers = count(1)


def fresh_name(test: str) -> str:
    """A name that no other test of this process gets. It is legal for topics and groups."""
    plain = re.sub(r"[^a-zA-Z0-9._-]+", "-", test).strip("-.")[:LONGEST]
    return f"{plain or 'test'}-{next(_numbers)}"
