# SPDX-License-Identifier: Apache-2.0
"""An assignor that moves a few partitions at a time, for members with much state to rebuild.

    few = FewMoves(2)
    consumer = Consumer("orders", group_id="billing", assignors=[few])

A new member gets two partitions at once, and two more whenever somebody asks for another
assignment, as `consumer.ask_for_assignment(reason)` does; `few.unbalanced` says whether that is
worth while.
"""

from kohort import AssignmentTold, Assignor, GroupToAssign, Share, TopicPartition


class FewMoves(Assignor):
    """At most `most` partitions change hands in a rebalance. Those without an owner come on top."""

    name = "few-moves"

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"most is {most}, expected 1 or more")
        self.most = most
        self.unbalanced = False  # whether there is still something to move, as last told

    def assign(self, group: GroupToAssign) -> dict[str, Share]:
        mine: dict[str, set[TopicPartition]] = {member: set() for member in group.members}
        for partition, owner in group.owners().items():
            if partition.topic in group.members[owner].topics:
                mine[owner].add(partition)
        given = set().union(*mine.values())
        for topic in sorted(group.topics):
            readers = [one.member_id for one in group.readers_of(topic)]
            for partition in group.partitions_of(topic):
                if readers and partition not in given:
                    mine[min(readers, key=lambda one: (len(mine[one]), one))].add(partition)
        moves = 0
        while moves < self.most and self._move_one(group, mine):
            moves += 1
        left = b"more to move" if _next_move(group, mine) else b""
        return {member: Share(tuple(sorted(some)), left) for member, some in mine.items()}

    def on_assignment(self, told: AssignmentTold) -> None:
        self.unbalanced = bool(told.metadata)

    def _move_one(self, group: GroupToAssign, mine: dict[str, set[TopicPartition]]) -> bool:
        move = _next_move(group, mine)
        if move is None:
            return False
        partition, giver, taker = move
        mine[giver].remove(partition)
        mine[taker].add(partition)
        return True


def _next_move(
    group: GroupToAssign, mine: dict[str, set[TopicPartition]]
) -> tuple[TopicPartition, str, str] | None:
    """From the richest to the poorest that wants it, where that makes them more even."""
    for giver in sorted(mine, key=lambda one: (-len(mine[one]), one)):
        for taker in sorted(mine, key=lambda one: (len(mine[one]), one)):
            if len(mine[giver]) - len(mine[taker]) < 2:
                break
            wanted = [one for one in mine[giver] if one.topic in group.members[taker].topics]
            if wanted:
                return max(wanted), giver, taker
    return None
