# SPDX-License-Identifier: Apache-2.0
"""One connection: addresses, the handshake, version choice, the queue, and every way to fail."""

import asyncio
from typing import Any

import pytest
from tests.client.scripted import CLOSE, ReceivedRequest, ScriptedCluster, asynchronous, in_turn

from kohort.client.network.address import Address
from kohort.client.network.connection import HOLD_MAX_S, Connection, Need
from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError
from kohort.errors import ErrorCode, UnsupportedVersionError, WireError
from kohort.wire.codec import encode
from kohort.wire.frames import encode_response
from kohort.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from kohort.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kohort.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kohort.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kohort.wire.messages.fetch import FetchRequest, FetchResponse
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kohort.wire.messages.metadata import MetadataRequest, MetadataResponse
from kohort.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse


def soon(seconds: float = 5.0) -> float:
    return asyncio.get_running_loop().time() + seconds


async def connect(scripted: ScriptedCluster, seconds: float = 5.0) -> Connection:
    address = Address("127.0.0.1", scripted.nodes[0].port)
    return await Connection.open(address, client_id="test", deadline=soon(seconds))


def groups(*names: str) -> ListGroupsResponse:
    return ListGroupsResponse(groups=[ListedGroup(group_id=name) for name in names])


@asynchronous
async def test_the_handshake_learns_what_is_offered():
    async with ScriptedCluster() as scripted:
        scripted.offer("ListGroups", "0-2")
        connection = await connect(scripted)
        assert scripted.asked[0].version == 4
        assert scripted.asked[0].request.client_software_name == "kohort"
        assert connection.version(ListGroupsRequest) == 2
        assert connection.offers(ListGroupsRequest, 2)
        assert not connection.offers(ListGroupsRequest, 3)
        await connection.close()
        assert not connection.is_open


@pytest.mark.parametrize("newest", [0, 2, 3])
@asynchronous
async def test_an_older_broker_says_which_handshake_it_knows(newest):
    """KIP-511: error 35 comes in the layout of v0, whatever was asked."""
    async with ScriptedCluster() as scripted:
        scripted.offer("ApiVersions", f"0-{newest}")
        connection = await connect(scripted)
        assert [one.version for one in scripted.sent("ApiVersions")] == [newest]
        assert connection.offers(ListGroupsRequest, 5)
        await connection.close()


MOCKED = [
    # What librdkafka's mock broker says to a version above its own: a layout that no version has.
    bytes.fromhex("0023 01 0012 0000 0002 00000000"),
    bytes.fromhex("0023"),
    bytes.fromhex("0023 7fffffff"),
]


@pytest.mark.parametrize(
    "refusal", MOCKED, ids=["librdkafka's mock", "a bare code", "a false count"]
)
@asynchronous
async def test_a_refusal_that_cannot_be_read_is_one_all_the_same(refusal):
    """The code says that the version is unknown, and version 0 is known to all."""
    from kohort.wire.messages.api_versions import ApiVersionsRequest

    async with ScriptedCluster() as scripted:
        honest = scripted.answers[ApiVersionsRequest]

        def answer(asked):
            if asked.version == 0:
                return honest(asked)
            scripted.nodes[0].writers[0].write(encode_response(0, refusal, flexible=False))
            return None

        scripted.answers[ApiVersionsRequest] = answer
        connection = await connect(scripted)
        assert [one.version for one in scripted.sent("ApiVersions")] == [4, 0]
        assert connection.offers(ListGroupsRequest, 5)
        await connection.close()


@asynchronous
async def test_a_handshake_that_cannot_be_read_names_the_broker():
    """It is a failure to connect: of several bootstrap servers the next one is tried."""
    from kohort.wire.messages.api_versions import ApiVersionsRequest

    def answer(asked):
        scripted.nodes[0].writers[0].write(encode_response(0, b"\0\0\0", flexible=False))

    async with ScriptedCluster(answers={ApiVersionsRequest: answer}) as scripted:
        with pytest.raises(ConnectionFailedError) as caught:
            await connect(scripted)
    assert not caught.value.sent
    expected = f"{scripted.bootstrap} sent an answer to ApiVersions that cannot be read: not a "
    assert caught.value.message.startswith(expected)


@asynchronous
async def test_a_port_that_wants_sasl_closes_at_the_first_request():
    """ApiVersions is answered to strangers too; what comes next must be the handshake of SASL."""
    async with ScriptedCluster(answers={ListGroupsRequest: lambda _: CLOSE}) as scripted:
        connection = await connect(scripted)
        with pytest.raises(ConnectionFailedError) as caught:
            await connection.ask(ListGroupsRequest(), deadline=soon())
    assert caught.value.message == (
        f"{scripted.bootstrap} closed the connection at the first request: it may want SASL "
        "(security.protocol is PLAINTEXT)"
    )


@asynchronous
async def test_a_port_that_has_answered_before_wants_no_sasl():
    async with ScriptedCluster(
        answers={ListGroupsRequest: in_turn(groups("a"), lambda _: CLOSE)}
    ) as scripted:
        connection = await connect(scripted)
        await connection.ask(ListGroupsRequest(), deadline=soon())
        with pytest.raises(ConnectionFailedError) as caught:
            await connection.ask(ListGroupsRequest(), deadline=soon())
    assert caught.value.message == f"{scripted.bootstrap} closed the connection"


@asynchronous
async def test_nobody_listens():
    async with ScriptedCluster() as scripted:
        await scripted.stop(0)
        with pytest.raises(ConnectionFailedError) as caught:
            await connect(scripted)
        assert caught.value.message == f"cannot connect to {scripted.bootstrap}: refused"
        assert caught.value.code is ErrorCode.NETWORK_EXCEPTION
        assert not caught.value.sent


@pytest.mark.parametrize(
    "address",
    [
        Address("a..b", 9092),
        Address("a" * 70, 9092),
        Address("a\0b", 9092),
        Address("127.0.0.1", 70_000),
        Address("127.0.0.1", -1),
        Address("", -1),
    ],
    ids=repr,
)
@asynchronous
async def test_an_address_that_cannot_be_is_one_that_nobody_listens_at(address):
    """A broker tells addresses of others, and may tell anything."""
    with pytest.raises(ConnectionFailedError) as caught:
        await Connection.open(address, client_id="test", deadline=soon())
    assert caught.value.message.startswith(f"cannot connect to {address}: ")
    assert not caught.value.sent


@pytest.mark.parametrize(
    ("code", "why"), [(58, "SASL_AUTHENTICATION_FAILED"), (999, "error code 999")]
)
@asynchronous
async def test_a_handshake_that_is_refused_says_why(code, why):
    refused = ApiVersionsResponse(error_code=code)
    async with ScriptedCluster(answers={ApiVersionsRequest: lambda _: refused}) as scripted:
        with pytest.raises(ConnectionFailedError) as caught:
            await connect(scripted)
    assert caught.value.message == f"{scripted.bootstrap} refused ApiVersions: {why}"


@asynchronous
async def test_a_broker_whose_newest_handshake_is_none_is_asked_in_version_0():
    async with ScriptedCluster() as scripted:
        honest = scripted.answers[ApiVersionsRequest]

        def answer(asked):
            if asked.version == 0:
                return honest(asked)
            known = ApiVersion(api_key=18, min_version=-1, max_version=-1)
            body = encode(ApiVersionsResponse(error_code=35, api_keys=[known]), 0)
            scripted.nodes[0].writers[0].write(encode_response(0, body, flexible=False))
            return None

        scripted.answers[ApiVersionsRequest] = answer
        connection = await connect(scripted)
        assert [one.version for one in scripted.sent("ApiVersions")] == [4, 0]
        await connection.close()


@asynchronous
async def test_a_broker_that_is_silent_at_the_handshake():
    from kohort.wire.messages.api_versions import ApiVersionsRequest

    async with ScriptedCluster(answers={ApiVersionsRequest: lambda _: None}) as scripted:
        with pytest.raises(RequestTimeoutError, match="did not answer ApiVersions in time"):
            await connect(scripted, 0.1)


@asynchronous
async def test_answers_come_to_those_who_asked():
    """Many at once on one connection; in the order asked, each gets its own."""
    count = iter(range(100))
    async with ScriptedCluster(
        answers={ListGroupsRequest: lambda _: groups(str(next(count)))}
    ) as scripted:
        connection = await connect(scripted)
        answers = await asyncio.gather(
            *(connection.ask(ListGroupsRequest(), deadline=soon()) for _ in range(20))
        )
        assert [one.groups[0].group_id for one in answers] == [str(index) for index in range(20)]
        await connection.close()


@asynchronous
async def test_one_that_gave_up_keeps_its_place_in_the_queue():
    held = []
    async with ScriptedCluster(answers={ListGroupsRequest: held.append}) as scripted:
        connection = await connect(scripted)
        first = asyncio.create_task(connection.ask(ListGroupsRequest(), deadline=soon()))
        second = asyncio.create_task(connection.ask(ListGroupsRequest(), deadline=soon()))
        while len(held) < 2:  # noqa: ASYNC110  (the list belongs to the scripted broker)
            await asyncio.sleep(0.001)
        first.cancel()
        await asyncio.sleep(0)
        from kohort.wire.codec import encode

        for number, name in ((1, "one"), (2, "two")):  # 0 was the handshake
            body = encode(groups(name), 5)
            scripted.nodes[0].writers[0].write(encode_response(number, body, flexible=True))
        assert (await second).groups[0].group_id == "two"
        await connection.close()


@asynchronous
async def test_what_is_needed_is_refused_by_name_and_nothing_is_sent():
    async with ScriptedCluster() as scripted:
        scripted.offer("ListGroups", "0-3")
        connection = await connect(scripted)
        need = Need(4, "filtering by state", "KIP-518, Apache Kafka 2.6")
        with pytest.raises(UnsupportedVersionError) as caught:
            await connection.ask(ListGroupsRequest(), deadline=soon(), need=need)
        assert str(caught.value) == (
            f"{scripted.bootstrap} offers ListGroups v0-3; filtering by state needs v4 "
            "(KIP-518, Apache Kafka 2.6)"
        )
        assert scripted.names() == []
        await connection.close()


@asynchronous
async def test_an_api_that_is_not_there_is_refused_by_name():
    async with ScriptedCluster() as scripted:
        scripted.offer("ListGroups", None)
        connection = await connect(scripted)
        with pytest.raises(UnsupportedVersionError, match=r"does not offer ListGroups \(KIP-40"):
            await connection.ask(ListGroupsRequest(), deadline=soon())
        await connection.close()


@asynchronous
async def test_a_broker_of_the_future_is_refused_by_name():
    async with ScriptedCluster() as scripted:
        scripted.offer("ListGroups", "9-12")
        connection = await connect(scripted)
        with pytest.raises(UnsupportedVersionError, match=r"offers ListGroups v9-12, expected one"):
            await connection.ask(ListGroupsRequest(), deadline=soon())
        await connection.close()


@asynchronous
async def test_a_range_without_a_version_is_shown_as_it_came():
    """The error said "offers ListGroups vnone"."""
    async with ScriptedCluster() as scripted:
        scripted.offer("ListGroups", "9-3")
        connection = await connect(scripted)
        with pytest.raises(UnsupportedVersionError) as caught:
            await connection.ask(ListGroupsRequest(), deadline=soon())
        assert str(caught.value) == (
            f"{scripted.bootstrap} offers ListGroups v9 to v3, which is no version, expected one "
            f"of v{ListGroupsRequest.versions}"
        )
        await connection.close()


@asynchronous
async def test_a_broken_connection_tells_everybody_who_waits():
    async with ScriptedCluster(answers={ListGroupsRequest: lambda _: CLOSE}) as scripted:
        connection = await connect(scripted)
        results = await asyncio.gather(
            *(connection.ask(ListGroupsRequest(), deadline=soon()) for _ in range(2)),
            return_exceptions=True,
        )
        for error in results:
            assert isinstance(error, ConnectionFailedError)
            assert error.sent
            assert "closed the connection" in error.message
        assert not connection.is_open
        with pytest.raises(ConnectionFailedError) as caught:
            await connection.ask(ListGroupsRequest(), deadline=soon())
        assert not caught.value.sent


@asynchronous
async def test_a_silent_broker_is_left():
    async with ScriptedCluster(answers={ListGroupsRequest: lambda _: None}) as scripted:
        connection = await connect(scripted)
        with pytest.raises(RequestTimeoutError, match="did not answer ListGroups in time"):
            await connection.ask(ListGroupsRequest(), deadline=soon(0.05))
        assert not connection.is_open


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (encode_response(99, b"", flexible=True), "correlation id 99 that nobody waits for"),
        (b"\xff\xff\xff\xff", "a frame of -1 bytes"),
        (b"\x00\x00\x00\x02\x00\x00", "correlation id -1"),
    ],
)
@asynchronous
async def test_bytes_that_are_no_answer_end_the_connection(data, error):
    def answer(asked):
        scripted.nodes[0].writers[0].write(data)

    async with ScriptedCluster(answers={ListGroupsRequest: answer}) as scripted:
        connection = await connect(scripted)
        with pytest.raises(ConnectionFailedError, match=error):
            await connection.ask(ListGroupsRequest(), deadline=soon())
        await connection.close()


@asynchronous
async def test_an_answer_that_is_no_message_fails_its_request_only():
    def answer(asked):
        if len(scripted.names()) > 1:
            return groups("fine")
        scripted.nodes[0].writers[0].write(encode_response(1, b"\x00", flexible=True))
        return None

    async with ScriptedCluster(answers={ListGroupsRequest: answer}) as scripted:
        connection = await connect(scripted)
        with pytest.raises(
            WireError, match=r"127\.0\.0\.1:.* ListGroups .* not a ListGroupsResponse v5"
        ):
            await connection.ask(ListGroupsRequest(), deadline=soon())
        fine = await connection.ask(ListGroupsRequest(), deadline=soon())
        assert fine.groups[0].group_id == "fine"
        await connection.close()


@asynchronous
async def test_what_has_no_answer_is_only_told():
    async with ScriptedCluster(answers={ListGroupsRequest: lambda _: None}) as scripted:
        connection = await connect(scripted)
        await connection.tell(ListGroupsRequest())
        with pytest.raises(UnsupportedVersionError, match="telling needs v99"):
            await connection.tell(ListGroupsRequest(), need=Need(99, "telling", "never"))
        await asyncio.sleep(0.02)
        assert scripted.names() == ["ListGroups"]
        await connection.close()
        with pytest.raises(ConnectionFailedError) as raised:
            await connection.tell(ListGroupsRequest())
        assert not raised.value.sent


@asynchronous
async def test_who_tells_much_waits_until_it_is_written():
    async with ScriptedCluster(answers={ListGroupsRequest: lambda _: None}) as scripted:
        connection = await connect(scripted)
        connection.pause_writing()
        telling = asyncio.create_task(connection.tell(ListGroupsRequest()))
        await asyncio.sleep(0.01)
        assert not telling.done()
        connection.resume_writing()
        await telling
        connection.pause_writing()
        telling = asyncio.create_task(connection.tell(ListGroupsRequest()))
        await asyncio.sleep(0)
        await connection.close()
        await telling


@asynchronous
async def test_the_features_of_the_cluster_are_known():
    async with ScriptedCluster() as scripted:

        def answer(asked):
            told = scripted._api_versions(asked)
            told.finalized_features = [
                FinalizedFeatureKey(
                    name="transaction.version", max_version_level=2, min_version_level=2
                )
            ]
            return told

        scripted.answers[ApiVersionsRequest] = answer
        connection = await connect(scripted)
        assert connection.features == {"transaction.version": 2}
        await connection.close()


@pytest.mark.parametrize("how", ["closed", "too late"])
@asynchronous
async def test_what_has_not_left_when_the_connection_ends_was_never_sent(how: str) -> None:
    """The broker reads no more: what is behind a large request stays here."""
    stopped = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
        correlation_id = int.from_bytes(frame[4:8])
        version = int.from_bytes(frame[2:4])
        body = encode(script._api_versions(ReceivedRequest(0, None, version)), version)
        writer.write(encode_response(correlation_id, body, flexible=False))
        writer.transport.pause_reading()
        await stopped.wait()
        if how == "closed":
            writer.write_eof()
        await asyncio.sleep(soon())

    script = ScriptedCluster()
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=4096)
    address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
    connection = await Connection.open(address, client_id="test", deadline=soon())
    large = ListGroupsRequest(states_filter=["x" * 30_000] * 1000)
    seconds = 5.0 if how == "closed" else 0.3
    first, second = (
        asyncio.create_task(connection.ask(request, deadline=soon(seconds)))
        for request in (large, ListGroupsRequest())
    )
    await asyncio.sleep(0.05)
    stopped.set()
    outcomes = await asyncio.gather(first, second, return_exceptions=True)
    assert all(isinstance(one, ConnectionFailedError | RequestTimeoutError) for one in outcomes)
    assert [one.sent for one in outcomes] == [False, False]
    server.close()


# Quotas

MINUTE_MS = 60_000


def held(answer: Any, milliseconds: int) -> Any:
    answer.throttle_time_ms = milliseconds
    return answer


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (ListGroupsRequest(), ListGroupsResponse),
        (MetadataRequest(topics=[]), MetadataResponse),
        (FindCoordinatorRequest(coordinator_keys=["g"]), FindCoordinatorResponse),
        (FetchRequest(topics=[]), FetchResponse),
        (OffsetFetchRequest(groups=[]), OffsetFetchResponse),
        (DescribeGroupsRequest(groups=[]), DescribeGroupsResponse),
        (DeleteGroupsRequest(groups_names=[]), DeleteGroupsResponse),
        (CreateTopicsRequest(topics=[], timeout_ms=1), CreateTopicsResponse),
    ],
)
@asynchronous
async def test_a_client_waits_for_as_long_as_a_broker_asks_it_to(
    request_: Any, answer: type[Any]
) -> None:
    """KIP-219: whatever it was that has used up the quota, and nothing is sent meanwhile."""
    answers = in_turn(lambda _: held(answer(), MINUTE_MS), lambda _: answer())
    async with ScriptedCluster(answers={type(request_): answers}) as scripted:
        connection = await connect(scripted)
        await connection.ask(request_, deadline=soon())
        with pytest.raises(RequestTimeoutError, match="a quota is used up") as caught:
            await connection.ask(request_, deadline=soon(0.05))
        assert not caught.value.sent
        assert len(scripted.sent(request_.name)) == 1
        assert connection.is_open
        await connection.close()


@asynchronous
async def test_what_had_to_wait_is_sent_then() -> None:
    answers = in_turn(lambda _: held(groups("a"), 20), lambda _: groups("b"))
    async with ScriptedCluster(answers={ListGroupsRequest: answers}) as scripted:
        connection = await connect(scripted)
        await connection.ask(ListGroupsRequest(), deadline=soon())
        until_s = connection.held_until
        answer = await connection.ask(ListGroupsRequest(), deadline=soon())
        assert asyncio.get_running_loop().time() >= until_s
        assert [one.group_id for one in answer.groups] == ["b"]
        assert not connection.held_until
        await connection.close()


@asynchronous
async def test_no_broker_has_a_client_wait_for_ever() -> None:
    answers = {ListGroupsRequest: lambda _: held(groups(), 2**31 - 1)}
    async with ScriptedCluster(answers=answers) as scripted:
        connection = await connect(scripted)
        await connection.ask(ListGroupsRequest(), deadline=soon())
        now = asyncio.get_running_loop().time()
        assert now < connection.held_until <= now + HOLD_MAX_S
        await connection.close()


@asynchronous
async def test_a_broker_that_has_waited_itself_is_not_waited_for_again() -> None:
    """Before Apache Kafka 2.0 an answer came when the time was over."""
    answers = {ListGroupsRequest: lambda _: held(groups(), MINUTE_MS)}
    async with ScriptedCluster(answers=answers) as scripted:
        scripted.offer("ApiVersions", "0-1")
        connection = await connect(scripted)
        for _ in range(2):
            await connection.ask(ListGroupsRequest(), deadline=soon())
        assert len(scripted.sent("ListGroups")) == 2
        await connection.close()


@asynchronous
async def test_a_broker_whose_quota_is_used_up_holds_up_no_other() -> None:
    async with ScriptedCluster(2) as scripted:
        honest = scripted.answers[MetadataRequest]
        scripted.answers[MetadataRequest] = lambda asked: held(
            honest(asked), MINUTE_MS * (asked.node == 0)
        )
        cluster = scripted.cluster()
        for _ in range(3):
            assert sorted(await cluster.nodes(soon(20.0))) == [0, 1]
        assert [one.node for one in scripted.sent("Metadata")] == [0, 1, 1]
        await cluster.close()
