"""What this release does not do yet, as refusals: each in the same words wherever it is met.

The codes are those that clients take for final; on most others they would ask again for ever.
"""

from kohort.errors import ApiError, ErrorCode


def static_membership(instance_id: str) -> ApiError:
    """KIP-345."""
    return ApiError(
        ErrorCode.INVALID_REQUEST,
        f"instance id {instance_id!r}: static membership is not supported yet",
    )


def regular_expression(pattern: str) -> ApiError:
    """Of a consumer group's subscription, resolved by the broker (KIP-848)."""
    return ApiError(
        ErrorCode.INVALID_REQUEST,
        f"SubscribedTopicRegex {pattern!r}: server-side regular expressions are not supported yet; "
        "subscribe by name",
    )


def transactions(transactional_id: str) -> ApiError:
    """KIP-98, but for idempotent producers."""
    return ApiError(
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        f"transactional id {transactional_id!r}: transactions are not supported yet",
    )


def group_configs(name: str) -> ApiError:
    """KIP-848 and KIP-932 let some settings be changed for one group."""
    return ApiError(
        ErrorCode.INVALID_REQUEST,
        f"group {name!r}: configurations of groups are not supported yet",
    )
