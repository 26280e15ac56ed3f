"""What this release does not do yet, as refusals: everywhere in the same words.

Clients take these codes for final; with most others they would ask again for ever.
"""

from kohort.coordinator.effects import Client
from kohort.errors import ApiError, ErrorCode
from kohort.runtime.observers import Observer


class NotBuiltError(ApiError):
    """A refusal of something that is not built yet. The log has its text: few answers do."""


def warn_if_not_built(observe: Observer, request: str, client: Client, error: ApiError) -> None:
    """A line of the log, if the refusal is of something that is not built yet."""
    if isinstance(error, NotBuiltError):
        who = f"{client.id!r} at {client.host}"
        observe.warning(f"{request} of {who} is refused: {error.message}")


def transaction_pattern(pattern: str) -> NotBuiltError:
    """A pattern of ids in ListTransactions (KIP-1152)."""
    return NotBuiltError(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"TransactionalIdPattern {pattern!r}: patterns of ids are not supported yet",
    )
