"""Who may do what. Handlers ask the cluster's `may`, which the opener of the cluster provides.

`May` is Kafka's Authorizer. Rules (ACLs) are kept in `server/catalog.py`, and nothing enforces them
yet: so far `may` is always `everyone_may`.

Operations and kinds have upstream's codes. Answers show the operations that a caller may do as bit
fields of these codes (KIP-430).
"""

from collections.abc import Callable
from enum import IntEnum

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Client


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


# Under their own names: looking one up in its class takes longer than the whole question.
(
    READ,
    WRITE,
    CREATE,
    DELETE,
    ALTER,
    DESCRIBE,
    CLUSTER_ACTION,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
    IDEMPOTENT_WRITE,
) = Operation
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = Kind

May = Callable[[Client, Operation, Kind, str], bool]
"""Whether a client may do something with the thing of this name, whether it exists or not.

The name of the cluster is CLUSTER_NAME. With the name ANY, the question is whether it is allowed
for any name at all.
"""

CLUSTER_NAME = "kafka-cluster"
ANY = "*"
NOT_ASKED = -2147483648  # a bit field that was not asked for

# The operations that upstream knows for each kind: no bit field shows another.
_OPERATIONS: dict[Kind, tuple[Operation, ...]] = {
    TOPIC: (
        READ,
        WRITE,
        CREATE,
        DELETE,
        ALTER,
        DESCRIBE,
        DESCRIBE_CONFIGS,
        ALTER_CONFIGS,
    ),
    GROUP: (
        READ,
        DELETE,
        DESCRIBE,
        DESCRIBE_CONFIGS,
        ALTER_CONFIGS,
    ),
    CLUSTER: (
        CREATE,
        ALTER,
        DESCRIBE,
        CLUSTER_ACTION,
        DESCRIBE_CONFIGS,
        ALTER_CONFIGS,
        IDEMPOTENT_WRITE,
    ),
    TRANSACTIONAL_ID: (WRITE, DESCRIBE),
}
_ALL_OPERATIONS = {
    kind: sum(1 << operation for operation in allowed) for kind, allowed in _OPERATIONS.items()
}
_REFUSALS = {
    TOPIC: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    GROUP: (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
    CLUSTER: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
    TRANSACTIONAL_ID: (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional Id authorization failed.",
    ),
}


def everyone_may(_client: Client, _operation: Operation, _kind: Kind, _name: str) -> bool:
    """No rules."""
    return True


def refusal(kind: Kind) -> ApiError:
    """The refusal of a client that may not. It does not tell whether the thing exists."""
    return ApiError(*_REFUSALS[kind])


def check(may: May, client: Client, operation: Operation, kind: Kind, name: str) -> None:
    """Raises ApiError, with the code of that kind, when the client may not."""
    if not may(client, operation, kind, name):
        raise refusal(kind)


def check_create(may: May, client: Client, topic: str) -> None:
    """Raises ApiError when the client may not create a topic. A client that may create on the
    cluster may create every topic.
    """
    if not may(client, CREATE, CLUSTER, CLUSTER_NAME):
        check(may, client, CREATE, TOPIC, topic)


def operations(may: May, client: Client, kind: Kind, name: str) -> int:
    """What a client may do, as a bit field."""
    if may is everyone_may:  # a list of many topics asks this for each of them
        return _ALL_OPERATIONS[kind]
    return sum(
        1 << operation for operation in _OPERATIONS[kind] if may(client, operation, kind, name)
    )


def cluster_operations(may: May, client: Client) -> int:
    """What a client may do with the cluster; nothing when it may not describe the cluster."""
    if not may(client, DESCRIBE, CLUSTER, CLUSTER_NAME):
        return 0
    return operations(may, client, CLUSTER, CLUSTER_NAME)
