# SPDX-License-Identifier: Apache-2.0
"""Who has no right to what. Brokers answer a bare code, or a text that names neither."""

from kohort.errors import ApiError, ErrorCode
from kohort.escaping import visible
from kohort.terms import TopicPartition

_KINDS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "group",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional id",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "cluster",
}
_GENERIC = "uthorization failed."  # the end of each text of upstream that says nothing more


def explained(error: ApiError, principal: str, name: object, operation: str = "") -> ApiError:
    """The error with the principal and the thing, where it is a refusal by rules that says neither;
    any other error as it is. `name` is that of the group, of the topic or of its partition.
    `operation` is what rules call the right that lacks, where the caller knows it.
    """
    kind = _KINDS.get(error.code)
    if kind is None or (error.message and not error.message.endswith(_GENERIC)):
        return error
    name = name.topic if isinstance(name, TopicPartition) else name
    thing = "the cluster" if kind == "cluster" else f"{kind} {visible(str(name))}"
    what = f"{operation} on {thing}" if operation else thing
    return ApiError(error.code, f"{visible(principal)} is not authorized for {what}")
