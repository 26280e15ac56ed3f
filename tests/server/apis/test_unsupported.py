"""What is not there yet is refused in words, and the log has them too."""

from tests.observer import Told

from kohort.coordinator.effects import Client
from kohort.errors import ApiError, ErrorCode
from kohort.server.apis import unsupported

CLIENT = Client("app", "/127.0.0.1")


def test_the_log_tells_of_what_is_not_built_and_of_nothing_else():
    told = Told()
    for error in (unsupported.transaction_pattern("t"), ApiError(ErrorCode.INVALID_REQUEST, "no")):
        unsupported.warn_if_not_built(told, "ListTransactions", CLIENT, error)
    (line,) = told.warnings
    assert line == (
        "ListTransactions of 'app' at /127.0.0.1 is refused: "
        "TransactionalIdPattern 't': patterns of ids are not supported yet"
    )
