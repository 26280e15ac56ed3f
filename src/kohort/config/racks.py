# SPDX-License-Identifier: Apache-2.0
"""The racks of nodes: `broker.rack` of several nodes, which share one file, has one for each."""

from kohort.config.settings import ConfigError


def racks_of_nodes(text: str | None, nodes: int) -> tuple[str | None, ...]:
    """The rack of each node, in their order. One rack is that of all, fewer than nodes are taken in
    turns, and an empty one is none. Raises ConfigError where there are more racks than nodes.
    """
    racks = [rack.strip() or None for rack in (text or "").split(",")]
    if len(racks) > nodes:
        raise ConfigError(
            f"broker.rack is {text!r}, which are {len(racks)} racks, expected at most {nodes}: "
            "one for each node"
        )
    return tuple(racks[index % len(racks)] for index in range(nodes))
