# SPDX-License-Identifier: Apache-2.0
"""The exceptions of Kafka's tools: their names and texts, which end up in what the tools print.

A trace is printed without the lines of its frames, which would be those of a Java program.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kohort.errors import ApiError, AuthenticationError, ErrorCode, UnsupportedVersionError

ERRORS = "org.apache.kafka.common.errors"
FUTURE = "java.util.concurrent.ExecutionException"


class JavaError(Exception):
    """An exception as the Java tools would raise it. Without a text its cause is its text."""

    def __init__(
        self, name: str, text: str | None = None, cause: "JavaError | None" = None
    ) -> None:
        self.name = name
        self.text = str(cause) if text is None and cause is not None else text or ""
        self.cause = cause
        super().__init__(self.text)

    def __str__(self) -> str:
        return f"{self.name}: {self.text}" if self.text else self.name

    def trace(self) -> Iterator[str]:
        """The lines of its stack trace, without frames."""
        yield str(self)
        cause = self.cause
        while cause is not None:
            yield f"Caused by: {cause}"
            cause = cause.cause


class _Words(NamedTuple):
    """The class of an error of the protocol, and what it says by itself."""

    name: str
    text: str


_NO_TOPIC = "This server does not host this topic-partition."
_WORDS = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: _Words(
        "CoordinatorLoadInProgressException",
        "The coordinator is loading and hence can't process requests.",
    ),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: _Words(
        "CoordinatorNotAvailableException", "The coordinator is not available."
    ),
    ErrorCode.NOT_COORDINATOR: _Words(
        "NotCoordinatorException", "This is not the correct coordinator."
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: _Words("UnknownTopicOrPartitionException", _NO_TOPIC),
    ErrorCode.LEADER_NOT_AVAILABLE: _Words(
        "LeaderNotAvailableException",
        "There is no leader for this topic-partition as we are in the middle of a leadership "
        "election.",
    ),
    ErrorCode.INVALID_GROUP_ID: _Words("InvalidGroupIdException", "The group id is invalid."),
    ErrorCode.GROUP_ID_NOT_FOUND: _Words(
        "GroupIdNotFoundException", "The group id does not exist."
    ),
    ErrorCode.NON_EMPTY_GROUP: _Words("GroupNotEmptyException", "The group is not empty."),
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: _Words(
        "GroupSubscribedToTopicException",
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed "
        "to it.",
    ),
    ErrorCode.UNKNOWN_MEMBER_ID: _Words(
        "UnknownMemberIdException", "The coordinator is not aware of this member."
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: _Words(
        "GroupAuthorizationException", "Group authorization failed."
    ),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _Words(
        "TopicAuthorizationException", "Topic authorization failed."
    ),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _Words(
        "ClusterAuthorizationException", "Cluster authorization failed."
    ),
    ErrorCode.INVALID_TOPIC_EXCEPTION: _Words(
        "InvalidTopicException",
        "The request attempted to perform an operation on an invalid topic.",
    ),
    ErrorCode.UNKNOWN_SERVER_ERROR: _Words(
        "UnknownServerException",
        "The server experienced an unexpected error when processing the request.",
    ),
    ErrorCode.INVALID_CONFIG: _Words("InvalidConfigurationException", ""),
    ErrorCode.INVALID_REQUEST: _Words("InvalidRequestException", ""),
    ErrorCode.UNSUPPORTED_VERSION: _Words("UnsupportedVersionException", ""),
    ErrorCode.REQUEST_TIMED_OUT: _Words("TimeoutException", ""),
    ErrorCode.NETWORK_EXCEPTION: _Words("TimeoutException", ""),
}


def of_code(code: int) -> JavaError:
    """An error of the protocol that comes as a bare code."""
    words = _words(code)
    return JavaError(f"{ERRORS}.{words.name}", words.text or f"The server answered {code}.")


def of_error(error: Exception) -> JavaError:
    """An error of our client, with the text that it came with."""
    if isinstance(error, AuthenticationError):
        return JavaError(f"{ERRORS}.SaslAuthenticationException", str(error))
    if isinstance(error, UnsupportedVersionError):
        return JavaError(f"{ERRORS}.UnsupportedVersionException", str(error))
    if isinstance(error, ApiError):
        words = _words(error.code)
        return JavaError(f"{ERRORS}.{words.name}", error.message or words.text)
    return JavaError("org.apache.kafka.common.KafkaException", str(error))


def in_future(cause: JavaError) -> JavaError:
    """As it comes out of a call whose answer was waited for."""
    return JavaError(FUTURE, cause=cause)


def at_run_time(cause: JavaError) -> JavaError:
    """As code passes it on that may not raise it."""
    return JavaError("java.lang.RuntimeException", cause=cause)


def failed_command(error: JavaError) -> str:
    """The line in which kafka-consumer-groups names an error."""
    return f"Executing consumer group command failed due to {error.text}"


def illegal(text: str) -> JavaError:
    """An argument that makes no sense."""
    return JavaError("java.lang.IllegalArgumentException", text)


def _words(code: int) -> _Words:
    try:
        known = ErrorCode(code)
    except ValueError:
        return _Words("UnknownServerException", f"error code {code}")
    spelled = "".join(map(str.capitalize, known.name.split("_")))
    return _WORDS.get(known) or _Words(f"{spelled}Exception", "")
