"""What this release does not do yet, as refusals: everywhere in the same words.

Clients take these codes for final; with most others they would ask again for ever.
"""

from kohort.coordinator.effects import Client
from kohort.errors import ApiError, ErrorCode
from kohort.runtime.observers import Observer
from kohort.server.access import TRANSACTIONAL_ID, WRITE, May, check


class NotBuiltError(ApiError):
    """A refusal of something that is not built yet. The log has its text: few answers do."""


def warn_if_not_built(observe: Observer, request: str, client: Client, error: ApiError) -> None:
    """A line of the log, if the refusal is of something that is not built yet."""
    if isinstance(error, NotBuiltError):
        who = f"{client.id!r} at {client.host}"
        observe.warning(f"{request} of {who} is refused: {error.message}")


def regular_expression(pattern: str) -> NotBuiltError:
    """A regular expression in a subscription, for the broker to resolve (KIP-848)."""
    return NotBuiltError(
        ErrorCode.INVALID_REQUEST,
        f"SubscribedTopicRegex {pattern!r}: server-side regular expressions are not supported yet; "
        "subscribe by name",
    )


def transactions(transactional_id: str) -> NotBuiltError:
    """KIP-98, except idempotent producers."""
    return NotBuiltError(
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        f"transactional id {transactional_id!r}: transactions are not supported yet",
    )


def transactional(may: May, client: Client, transactional_id: str) -> ApiError:
    """Refuse a transactional id; an empty one is an error of its own. Raises ApiError where the
    client may not use this id.
    """
    check(may, client, WRITE, TRANSACTIONAL_ID, transactional_id)
    if not transactional_id:
        return ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    return transactions(transactional_id)
