# SPDX-License-Identifier: Apache-2.0
"""Who may do what. Handlers ask the cluster's `may`.

`May` is Kafka's Authorizer. With `authorizer.class.name` it is the one of `server/authorizer.py`,
which obeys the rules (ACLs) of the catalog, and without it `everyone_may`.

Operations and types of resources have upstream's codes (`security/acls.py`). Answers show the
operations that a caller may do as bit fields of these codes (KIP-430).
"""

from collections.abc import Callable
from typing import Final

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Client
from kohort.security.acls import AclOperation, ResourceType

# Under their own names: looking one up in its class takes longer than the whole question.
READ, WRITE, CREATE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE
DELETE, ALTER, DESCRIBE = AclOperation.DELETE, AclOperation.ALTER, AclOperation.DESCRIBE
CLUSTER_ACTION = AclOperation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
IDEMPOTENT_WRITE, CREATE_TOKENS = AclOperation.IDEMPOTENT_WRITE, AclOperation.CREATE_TOKENS
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID, USER = ResourceType.TRANSACTIONAL_ID, ResourceType.USER

May = Callable[[Client, AclOperation, ResourceType, str], bool]
"""Whether a client may do something with the thing of this name, whether it exists or not.

The name of the cluster is CLUSTER_NAME. With ANY as the name, the question is whether it is allowed
for any name at all.
"""


class _AnyName(str):
    """Known by its identity: a client may give any text for a name."""

    __slots__ = ()


ANY: Final = _AnyName("*")

CLUSTER_NAME = "kafka-cluster"
NOT_ASKED = -2147483648  # a bit field that was not asked for

# The operations that upstream knows for each kind: no bit field shows another.
_OPERATIONS: dict[ResourceType, tuple[AclOperation, ...]] = {
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
    USER: (CREATE_TOKENS,),
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
    USER: (
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        "Delegation Token authorization failed.",
    ),
}


def everyone_may(
    _client: Client, _operation: AclOperation, _kind: ResourceType, _name: str
) -> bool:
    """No rules."""
    return True


def refusal(kind: ResourceType, *, with_text: bool = True) -> ApiError:
    """The refusal of a client that may not. It does not tell whether the thing exists. Upstream
    leaves its text out in some APIs.
    """
    code, text = _REFUSALS[kind]
    return ApiError(code, text if with_text else "")


def check(
    may: May,
    client: Client,
    operation: AclOperation,
    kind: ResourceType,
    name: str,
    *,
    with_text: bool = True,
) -> None:
    """Raises ApiError, with the code of that kind, when the client may not."""
    if not may(client, operation, kind, name):
        raise refusal(kind, with_text=with_text)


def may_create(may: May, client: Client, topic: str) -> bool:
    """Whether a client may create a topic: one that may create on the cluster may create all."""
    return may(client, CREATE, CLUSTER, CLUSTER_NAME) or may(client, CREATE, TOPIC, topic)


def may_act_as_broker(may: May, client: Client) -> bool:
    """Whether a client may ask for what brokers ask of each other."""
    return may(client, CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)


def operations(may: May, client: Client, kind: ResourceType, name: str) -> int:
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
