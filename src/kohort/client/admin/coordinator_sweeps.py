# SPDX-License-Identifier: Apache-2.0
"""Every coordinator of a cluster is asked once for what it has, wherever it goes meanwhile.

A broker lists the groups, or the transactions, that it coordinates, so what nobody coordinates is
in no answer. The partitions of one internal topic say which coordinators there must be: each is
asked through its leader, one that has moved behind our back is asked where it has gone, and one
that has no leader is named.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

from kohort.client.admin.request_rounds import settle
from kohort.client.network.cluster import Cluster, Node, nodes_of, unanswered
from kohort.errors import ApiError, ErrorCode, UnsupportedVersionError, api_error
from kohort.terms import TopicPartition
from kohort.wire.messages.metadata import MetadataResponse

_ROUNDS = 5  # how often coordinators may move between a question and the look behind it

Part: TypeAlias = int | TopicPartition
"""A node by its id, or a coordinator by its partition of the internal topic."""

AskNode: TypeAlias = Callable[[Node, Sequence[Part], float], Awaitable[ApiError | None]]
"""Asks a node for all that it has, in the name of these parts, and keeps it. Returns what the node
refused with.
"""


@dataclass(frozen=True, slots=True)
class Swept:
    """What is missing: nodes that could not be asked, and coordinators that nobody is. `unverified`
    says why it is not known whether all coordinators have answered; None where that is known.
    """

    errors: dict[Part, ApiError]
    unverified: ApiError | None


async def sweep(cluster: Cluster, topic: str, ask: AskNode, deadline: float) -> Swept:
    """Ask each broker, which covers the coordinators that it has; and those again that have taken
    over others meanwhile.

    Raises the error of the first node where none has answered, UnsupportedVersionError for one that
    is too old, and what `settle` raises.
    """
    sweeping = _Sweep(cluster, topic, ask)
    await sweeping.run(deadline)
    return sweeping.swept()


@dataclass(frozen=True)
class _Coordinators:
    """The brokers, and who coordinates each partition of the topic: None for nobody, be it without
    a leader or with one that cannot read it. `unverified` says why the partitions are not known.
    """

    topic: str
    nodes: Mapping[int, Node]
    leaders: Mapping[TopicPartition, int | None]
    unverified: ApiError | None

    @classmethod
    def of(cls, name: str, metadata: MetadataResponse) -> Self:
        nodes = nodes_of(metadata)
        topic = next((topic for topic in metadata.topics if topic.name == name), None)
        if topic is None:
            return cls(name, nodes, {}, _unverified(name, unanswered("topic", name)))
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # nobody ever needed one
            return cls(name, nodes, {}, None)
        if topic.error_code:
            return cls(name, nodes, {}, _unverified(name, api_error(topic.error_code)))
        leaders = {
            TopicPartition(name, partition.partition_index): (
                partition.leader_id
                if partition.leader_id in nodes
                and partition.leader_id not in partition.offline_replicas
                else None
            )
            for partition in topic.partitions
        }
        return cls(name, nodes, dict(sorted(leaders.items())), None)

    def place(self, part: Part) -> Node | ApiError:
        """Whom to ask for a part."""
        node_id = part if isinstance(part, int) else self.leaders.get(part)
        if node_id is not None and node_id in self.nodes:
            return self.nodes[node_id]
        if isinstance(part, int):
            return ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"node {part} is no broker any more")
        text = f"nobody coordinates partition {part.partition} of {self.topic}"
        return ApiError(ErrorCode.LEADER_NOT_AVAILABLE, text)


def _unverified(topic: str, error: ApiError) -> ApiError:
    return ApiError(
        error.code,
        f"whether all coordinators have answered is not known: {topic} cannot be looked at "
        f"({error.message or error.code.name})",
    )


class _Sweep:
    """The parts, who has answered for each, and who would have to now."""

    def __init__(self, cluster: Cluster, topic: str, ask: AskNode) -> None:
        self._cluster = cluster
        self._topic = topic
        self._ask_node = ask
        self._known = _Coordinators(topic, {}, {}, None)
        self._is_fresh = False  # nobody has used what is known yet
        self._outcomes: dict[Part, int | ApiError] = {}  # the node that has answered for it

    async def run(self, deadline: float) -> None:
        await self._look(deadline)
        parts: list[Part] = [*self._known.nodes, *self._known.leaders]
        for _ in range(_ROUNDS):
            self._outcomes |= await settle(
                self._cluster, parts, self._locate, self._ask, deadline=deadline
            )
            try:
                await self._look(deadline)
            except ApiError as error:
                unverified = _unverified(self._topic, error)
                self._known = replace(self._known, unverified=unverified)
                return
            parts = [*self._moved()]
            if not parts:
                return
        for part in parts:
            text = f"{part} has moved from node to node while they were asked"
            self._outcomes[part] = ApiError(ErrorCode.NOT_COORDINATOR, text)

    def swept(self) -> Swept:
        """What is missing. Raises where no node has answered."""
        nodes = {part: outcome for part, outcome in self._outcomes.items() if isinstance(part, int)}
        errors: dict[Part, ApiError] = {
            node: outcome for node, outcome in nodes.items() if isinstance(outcome, ApiError)
        }
        if len(errors) == len(nodes):
            first = next(iter(errors.values()))
            if first.code is ErrorCode.UNSUPPORTED_VERSION:
                raise UnsupportedVersionError(first.message)
            raise first
        for part, outcome in self._outcomes.items():
            if isinstance(part, int) or not isinstance(outcome, ApiError):
                continue
            if outcome.code is ErrorCode.LEADER_NOT_AVAILABLE:
                errors[part] = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, outcome.message)
            elif self._known.leaders.get(part) not in errors:  # else its node is named already
                errors[part] = outcome
        return Swept(errors, self._known.unverified)

    async def _look(self, deadline: float) -> None:
        metadata = await self._cluster.brokers_and([self._topic], deadline)
        self._known = _Coordinators.of(self._topic, metadata)
        self._is_fresh = True

    def _moved(self) -> Iterable[Part]:
        """The coordinators that are at another node than the one that has answered for them, and
        those that have appeared.
        """
        for part, leader in self._known.leaders.items():
            outcome = self._outcomes.get(part)
            if outcome is None or (isinstance(outcome, int) and leader not in (None, outcome)):
                yield part

    async def _locate(self, parts: Sequence[Part], deadline: float) -> dict[Part, Node | ApiError]:
        if not self._is_fresh:
            await self._look(deadline)
        self._is_fresh = False
        return {part: self._known.place(part) for part in parts}

    async def _ask(
        self, node: Node, parts: Sequence[Part], deadline: float
    ) -> dict[Part, int | ApiError]:
        refusal = await self._ask_node(node, parts, deadline)
        return dict.fromkeys(parts, node.id if refusal is None else refusal)
