# SPDX-License-Identifier: Apache-2.0
"""Which errors say that the broker is away, and not that it refuses: no connection, no answer in
time, or a coordinator that is somewhere else or not loaded yet.
"""

from confluent_kafka import KafkaError as Told
from confluent_kafka import KafkaException
from kafka import errors

from kohort.errors import ErrorCode

COORDINATOR_MOVES = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
LEADER_MOVES = frozenset({ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER})
_NO_ANSWER = frozenset(  # codes of librdkafka's own
    {
        Told._ALL_BROKERS_DOWN,
        Told._MSG_TIMED_OUT,
        Told._TIMED_OUT,
        Told._TIMED_OUT_QUEUE,
        Told._TRANSPORT,
        Told._WAIT_COORD,
    }
)
_NO_CONNECTION = (
    errors.KafkaConnectionError,
    errors.KafkaTimeoutError,
    errors.MetadataEmptyBrokerList,
    errors.NodeNotReadyError,
    OSError,
    EOFError,
)


def code_of(error: BaseException) -> int | None:
    """The code that a client was told by the broker, or by librdkafka (below -1)."""
    if isinstance(error, KafkaException):
        return int(error.args[0].code())
    if isinstance(error, errors.BrokerResponseError):
        return int(error.errno)
    return None


def is_away(error: BaseException) -> bool:
    """Whether an error is one of a broker that is not there."""
    code = code_of(error)
    return isinstance(error, _NO_CONNECTION) or code in _NO_ANSWER or code in COORDINATOR_MOVES
