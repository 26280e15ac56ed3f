# SPDX-License-Identifier: Apache-2.0
"""What has happened to groups, in numbers that only grow. Metrics are read from them."""


class GroupCounters:
    """The counts of a whole broker. A shard adds to them as things happen, and they outlast it."""

    __slots__ = (
        "completed_rebalances",
        "computations",
        "computations_failed",
        "computations_installed",
        "computations_invalid",
        "computations_late",
        "group_epochs",
        "offset_commits",
        "offset_deletions",
        "offset_expirations",
    )

    def __init__(self) -> None:
        self.offset_commits = 0
        self.offset_expirations = 0
        self.offset_deletions = 0
        self.completed_rebalances = 0  # of classic groups: the leader has handed out assignments
        self.computations = 0  # that members were asked for
        self.computations_installed = 0  # taken as the target of a group
        self.computations_late = 0  # not delivered in time
        self.computations_invalid = 0  # refused, since something in them is wrong
        self.computations_failed = 0  # delivered as an error of the assignor
        self.group_epochs = 0  # of consumer groups: each asks for a new target
