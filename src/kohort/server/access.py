"""Who may do what. Handlers ask the cluster's `may`, which is given by whoever opens the cluster.
Nothing is forbidden yet: `everyone_may` is all that is ever given.

Operations and kinds have upstream's codes. Answers show the operations that a caller may do as bit
fields of these codes (KIP-430).
"""

from collections.abc import Callable
from enum import IntEnum

from kohort.coordinator.effects import Client
from kohort.errors import ApiError, ErrorCode


class Operation(IntEnum):
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class Kind(IntEnum):
    """What rules are about."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


May = Callable[[Client, Operation, Kind, str], bool]
"""Whether a client may do something with what has that name, whether it exists or not.

The name of the cluster is CLUSTER_NAME. Where the name is ANY, the question is whether there is a
name at all for which it is allowed.
"""

CLUSTER_NAME = "kafka-cluster"
ANY = "*"
NOT_ASKED = -2147483648  # a bit field that nobody wanted

# Where upstream has a kind of resource with fewer operations than all, so does a bit field.
_OPERATIONS: dict[Kind, tuple[Operation, ...]] = {
    Kind.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Kind.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Kind.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    Kind.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
_ALL_OPERATIONS = {
    kind: sum(1 << operation for operation in allowed) for kind, allowed in _OPERATIONS.items()
}
_REFUSALS = {
    Kind.TOPIC: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    Kind.GROUP: (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
    Kind.CLUSTER: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
    Kind.TRANSACTIONAL_ID: (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional Id authorization failed.",
    ),
}


def everyone_may(_client: Client, _operation: Operation, _kind: Kind, _name: str) -> bool:
    """No rules."""
    return True


def refusal(kind: Kind) -> ApiError:
    """What somebody is told who may not. It does not tell whether there is such a thing."""
    return ApiError(*_REFUSALS[kind])


def check(may: May, client: Client, operation: Operation, kind: Kind, name: str) -> None:
    """Raises ApiError with the code of that kind when the client may not."""
    if not may(client, operation, kind, name):
        raise refusal(kind)


def check_everywhere(may: May, client: Client, operation: Operation, topic: str) -> None:
    """Raises ApiError when the client may not create or delete a topic. Who may do that on the
    cluster may do it to every topic.
    """
    if not may(client, operation, Kind.CLUSTER, CLUSTER_NAME):
        check(may, client, operation, Kind.TOPIC, topic)


def operations(may: May, client: Client, kind: Kind, name: str) -> int:
    """What a client may do, as a bit field."""
    if may is everyone_may:  # a list of many topics asks this for each of them
        return _ALL_OPERATIONS[kind]
    return sum(1 << one for one in _OPERATIONS[kind] if may(client, one, kind, name))


def cluster_operations(may: May, client: Client) -> int:
    """What a client may do with the cluster; nothing is told to who may not describe it."""
    if not may(client, Operation.DESCRIBE, Kind.CLUSTER, CLUSTER_NAME):
        return 0
    return operations(may, client, Kind.CLUSTER, CLUSTER_NAME)
