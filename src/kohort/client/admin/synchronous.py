# SPDX-License-Identifier: Apache-2.0
"""SyncAdminClient: AdminClient for programs without asyncio.

Each of its calls is the one of AdminClient, made in an event loop in a thread of its own. The
parameters, results and errors are those of AdminClient, also to type checkers: none of them is
written here.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from functools import wraps
from threading import Lock
from types import TracebackType
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar

from kohort.client.admin.answers import Answers
from kohort.client.admin.client import AdminClient
from kohort.client.event_loop_thread import EventLoopThread, LoopEndedError
from kohort.client.lifetime import Client
from kohort.errors import ApiError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Key = TypeVar("Key")
Value = TypeVar("Value")

_END: Final = object()


def _blocking(
    call: Callable[Concatenate[AdminClient, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate["SyncAdminClient", Parameters], Result]:
    """The same call, which returns once it has ended."""

    @wraps(call)
    def wait(
        self: "SyncAdminClient", /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        return self._wait(lambda admin: call(admin, *args, **kwargs))

    return wait


class Entries(Iterator[tuple[Key, Value | ApiError]], Generic[Key, Value]):
    """Each key with its outcome, in the order in which they come.

    Several threads may take from it, and each entry goes to one of them. Who drops it early, as by
    a `break`, cancels what is not answered yet: the loop closes an iterator that nobody has.
    """

    def __init__(self, client: "SyncAdminClient", answers: Answers[Key, Value, Any]) -> None:
        self._client = client
        self._answers: AsyncIterator[tuple[Key, Value | ApiError]] = aiter(answers)
        self._lock = Lock()

    def __next__(self) -> tuple[Key, Value | ApiError]:
        with self._lock:  # its own iterator takes one caller at a time
            entry: Any = self._client._wait(lambda _: anext(self._answers, _END))  # noqa: SLF001
        if entry is _END:
            raise StopIteration
        self._client._check_open()  # noqa: SLF001  (what a close has cut off is no answer)
        return entry  # type: ignore[no-any-return]


def _iterating(
    call: Callable[Concatenate[AdminClient, Parameters], Answers[Key, Value, Any]],
) -> Callable[Concatenate["Iterations", Parameters], Entries[Key, Value]]:
    """The same call, of which each outcome can be had as soon as it is there."""

    @wraps(call)
    def iterate(
        self: "Iterations", /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Entries[Key, Value]:
        return self._entries(lambda admin: call(admin, *args, **kwargs))

    return iterate


class Iterations:
    """The calls that ask several nodes, of which a `for` gets each outcome as it comes.

        for group_id, outcome in admin.iterate.describe_groups(ids):
            ...  # a GroupDescription or an ApiError, as soon as its coordinator has answered

    They ask the same requests, and raise at the end of the loop what the call itself raises.
    """

    def __init__(self, client: "SyncAdminClient") -> None:
        self._client = client

    list_groups = _iterating(AdminClient.list_groups)
    describe_groups = _iterating(AdminClient.describe_groups)
    delete_groups = _iterating(AdminClient.delete_groups)
    list_group_offsets = _iterating(AdminClient.list_group_offsets)
    list_offsets = _iterating(AdminClient.list_offsets)
    end_offsets = _iterating(AdminClient.end_offsets)
    describe_configs = _iterating(AdminClient.describe_configs)
    describe_log_dirs = _iterating(AdminClient.describe_log_dirs)
    describe_producers = _iterating(AdminClient.describe_producers)
    describe_transactions = _iterating(AdminClient.describe_transactions)
    delete_records = _iterating(AdminClient.delete_records)

    def _entries(
        self, call: Callable[[AdminClient], Answers[Key, Value, Any]]
    ) -> Entries[Key, Value]:
        client = self._client
        client._check_open()  # noqa: SLF001
        return Entries(client, call(client._client))  # noqa: SLF001


def _constructor(
    made: Callable[Parameters, AdminClient],
) -> Callable[[Callable[..., None]], Callable[Concatenate["SyncAdminClient", Parameters], None]]:
    """Takes what that of AdminClient takes."""

    def decorate(
        init: Callable[..., None],
    ) -> Callable[Concatenate["SyncAdminClient", Parameters], None]:
        @wraps(AdminClient.__init__)
        def construct(
            self: "SyncAdminClient", /, *args: Parameters.args, **kwargs: Parameters.kwargs
        ) -> None:
            init(self, made(*args, **kwargs))

        return construct

    return decorate


class SyncAdminClient(Client):
    """`AdminClient` for programs without asyncio: the same calls, which wait for their results.

        with SyncAdminClient("127.0.0.1:9092") as admin:
            for group in admin.list_groups(states=["Stable"]):
                print(group.group_id)

    `iterate` has the calls that ask several nodes, for a `for` that gets results as they come.
    Arguments, results and errors are those of `AdminClient`. Several threads may call at once, and
    share connections. Ctrl-C ends a call: what was sent by then may have been done. The first call
    starts a thread, `close` ends it, and neither keeps the program from ending. A process that was
    forked needs a client of its own.
    """

    _to_close = "use `with`, or close()"

    @_constructor(AdminClient)
    def __init__(self, client: AdminClient) -> None:
        self._client = client
        self._addresses = client._addresses  # noqa: SLF001  (they are one client)
        self._thread: EventLoopThread | None = None
        self._lock = Lock()

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections, and end the thread. A later call raises ValueError, as does one
        that waits for its result.
        """
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.end(self._client.close)

    @property
    def iterate(self) -> Iterations:
        """The calls that ask several nodes, for a `for` that gets each outcome as it comes."""
        return Iterations(self)

    create_topics = _blocking(AdminClient.create_topics)
    create_partitions = _blocking(AdminClient.create_partitions)
    delete_topics = _blocking(AdminClient.delete_topics)
    list_topics = _blocking(AdminClient.list_topics)
    describe_topics = _blocking(AdminClient.describe_topics)
    list_offsets = _blocking(AdminClient.list_offsets)
    end_offsets = _blocking(AdminClient.end_offsets)
    time_lags = _blocking(AdminClient.time_lags)
    commit_times = _blocking(AdminClient.commit_times)
    describe_acls = _blocking(AdminClient.describe_acls)
    create_acls = _blocking(AdminClient.create_acls)
    delete_acls = _blocking(AdminClient.delete_acls)
    describe_user_scram_credentials = _blocking(AdminClient.describe_user_scram_credentials)
    alter_user_scram_credentials = _blocking(AdminClient.alter_user_scram_credentials)
    list_groups = _blocking(AdminClient.list_groups)
    describe_groups = _blocking(AdminClient.describe_groups)
    delete_groups = _blocking(AdminClient.delete_groups)
    describe_group_configs = _blocking(AdminClient.describe_group_configs)
    alter_group_configs = _blocking(AdminClient.alter_group_configs)
    list_group_offsets = _blocking(AdminClient.list_group_offsets)
    alter_group_offsets = _blocking(AdminClient.alter_group_offsets)
    delete_group_offsets = _blocking(AdminClient.delete_group_offsets)
    plan_offset_reset = _blocking(AdminClient.plan_offset_reset)
    remove_members = _blocking(AdminClient.remove_members)
    describe_configs = _blocking(AdminClient.describe_configs)
    alter_configs = _blocking(AdminClient.alter_configs)
    list_config_resources = _blocking(AdminClient.list_config_resources)
    describe_producers = _blocking(AdminClient.describe_producers)
    list_transactions = _blocking(AdminClient.list_transactions)
    describe_transactions = _blocking(AdminClient.describe_transactions)
    fence_producers = _blocking(AdminClient.fence_producers)
    abort_transaction = _blocking(AdminClient.abort_transaction)
    describe_cluster = _blocking(AdminClient.describe_cluster)
    wait_for_broker = _blocking(AdminClient.wait_for_broker)
    describe_topics_by_id = _blocking(AdminClient.describe_topics_by_id)
    delete_topics_by_id = _blocking(AdminClient.delete_topics_by_id)
    delete_records = _blocking(AdminClient.delete_records)
    elect_leaders = _blocking(AdminClient.elect_leaders)
    alter_partition_reassignments = _blocking(AdminClient.alter_partition_reassignments)
    list_partition_reassignments = _blocking(AdminClient.list_partition_reassignments)
    describe_log_dirs = _blocking(AdminClient.describe_log_dirs)
    describe_features = _blocking(AdminClient.describe_features)
    update_features = _blocking(AdminClient.update_features)
    describe_client_quotas = _blocking(AdminClient.describe_client_quotas)
    alter_client_quotas = _blocking(AdminClient.alter_client_quotas)
    create_delegation_token = _blocking(AdminClient.create_delegation_token)
    renew_delegation_token = _blocking(AdminClient.renew_delegation_token)
    expire_delegation_token = _blocking(AdminClient.expire_delegation_token)
    describe_delegation_tokens = _blocking(AdminClient.describe_delegation_tokens)

    def _details(self) -> Mapping[str, object]:
        return self._client._details()  # noqa: SLF001

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the admin client is closed: make another one")

    def _wait(self, call: Callable[[AdminClient], Awaitable[Result]]) -> Result:
        with self._lock:
            self._check_open()
            if self._thread is None:
                self._thread = EventLoopThread(repr(self))
                self._loop = self._thread.loop
            thread, client = self._thread, self._client  # the loop does not keep this one alive
        try:
            return thread.run(lambda: call(client))
        except LoopEndedError:
            raise ValueError("the admin client was closed while a call waited") from None

    def __del__(self) -> None:
        super().__del__()
        if self._loop is not None and not self._closed and self._thread is not None:
            self._thread.let_end(self._client.close)
