# SPDX-License-Identifier: Apache-2.0
"""A cluster: who is asked first, look-ups in one request or many, pauses."""

import asyncio

import pytest
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous, in_turn

import kohort
from kohort.client.network.address import Address
from kohort.client.network.cluster import OF_TRANSACTION, Backoff, Cluster, Node
from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError
from kohort.errors import ApiError, ErrorCode, UnsupportedVersionError, api_error
from kohort.testing import Broker
from kohort.wire.frames import encode_response
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kohort.wire.messages.metadata import MetadataRequest, MetadataResponse


def soon(seconds: float = 5.0) -> float:
    return asyncio.get_running_loop().time() + seconds


async def until(holds) -> None:
    async with asyncio.timeout(5.0):
        while not holds():  # noqa: ASYNC110  (what holds is in a table that tells nobody)
            await asyncio.sleep(0.001)


def test_pauses_double_up_to_a_bound_with_a_jitter_of_a_fifth():
    backoff = Backoff(0.05, 1.0)

    assert [round(backoff.pause_s(n, 0.5), 3) for n in range(7)] == [
        *(0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0)
    ]
    assert backoff.pause_s(9, 0.0) == pytest.approx(0.8)
    assert backoff.pause_s(100_000, 1.0) == pytest.approx(1.2)


def test_no_bootstrap_server_is_a_mistake():
    with pytest.raises(ValueError, match="expected at least one host:port"):
        Cluster([], client_id="test")


@asynchronous
async def test_a_bootstrap_server_that_is_down_is_passed_over():
    async with ScriptedCluster(nodes=2) as scripted:
        await scripted.stop(0)
        cluster = scripted.cluster()
        assert sorted(await cluster.nodes(soon())) == [0, 1]
        await cluster.close()


@asynchronous
async def test_when_all_are_down_each_is_named():
    async with ScriptedCluster(nodes=2) as scripted:
        await scripted.stop(0)
        await scripted.stop(1)
        ports = [node.port for node in scripted.nodes]
        with pytest.raises(ConnectionFailedError) as caught:
            await scripted.cluster().nodes(soon())
        assert caught.value.message == "; ".join(
            f"cannot connect to 127.0.0.1:{port}: refused" for port in ports
        )


@asynchronous
async def test_a_connection_is_opened_once_whoever_asks():
    async with ScriptedCluster() as scripted:
        cluster = scripted.cluster()
        address = Address("127.0.0.1", scripted.nodes[0].port)
        made = await asyncio.gather(*(cluster.connection(address, soon()) for _ in range(5)))
        assert len(set(map(id, made))) == 1
        assert len(scripted.sent("ApiVersions")) == 1
        await cluster.close()


@asynchronous
async def test_a_connection_that_died_meanwhile_is_opened_anew():
    async with ScriptedCluster() as scripted:
        answer = scripted.answers[MetadataRequest]
        scripted.answers[MetadataRequest] = in_turn(answer, CLOSE, answer)
        cluster = scripted.cluster()
        await cluster.nodes(soon())
        assert sorted(await cluster.nodes(soon())) == [0]
        assert len(scripted.sent("ApiVersions")) == 2
        await cluster.close()


LOOK_UPS = {
    MetadataRequest: lambda cluster: cluster.nodes(soon()),
    FindCoordinatorRequest: lambda cluster: cluster.coordinators(["g"], soon()),
}


@pytest.mark.parametrize("request_type", LOOK_UPS, ids=lambda each: each.name)
@asynchronous
async def test_a_broker_that_breaks_each_connection_is_asked_twice(request_type):
    """An open connection may have died since its last use. A second one is no accident."""
    async with ScriptedCluster() as scripted:
        scripted.answers[request_type] = lambda _asked: CLOSE
        cluster = scripted.cluster()
        with pytest.raises(ConnectionFailedError):
            await LOOK_UPS[request_type](cluster)
        assert len(scripted.sent(request_type.name)) == 2
        await cluster.close()


@pytest.mark.parametrize("versions", ["0-6", "0-3"])
@asynchronous
async def test_transactional_ids_have_coordinators_too(versions):
    async with ScriptedCluster(2) as scripted:
        scripted.offer("FindCoordinator", versions)
        scripted.coordinators["x"] = 1
        cluster = scripted.cluster()
        found = await cluster.coordinators(["x"], soon(), key_type=OF_TRANSACTION)
        await cluster.close()
        assert found["x"].id == 1
        assert [one.request.key_type for one in scripted.sent("FindCoordinator")] == [1]


@asynchronous
async def test_a_broker_without_transactions_is_refused_by_name():
    async with ScriptedCluster() as scripted:
        scripted.offer("FindCoordinator", "0-0")
        cluster = scripted.cluster()
        with pytest.raises(UnsupportedVersionError, match="transactions needs v1"):
            await cluster.coordinators(["x"], soon(), key_type=OF_TRANSACTION)
        await cluster.close()


@asynchronous
async def test_coordinators_are_looked_up_in_one_request():
    """K709-28: KIP-699."""
    async with ScriptedCluster(nodes=2) as scripted:
        scripted.coordinators["b"] = 1
        cluster = scripted.cluster()
        found = await cluster.coordinators(["a", "b", "c"], soon())
        assert {name: node.id for name, node in found.items()} == {"a": 0, "b": 1, "c": 0}
        assert [one.version for one in scripted.sent("FindCoordinator")] == [6]
        await cluster.close()


@pytest.mark.parametrize("newest", [0, 1, 3])
@asynchronous
async def test_or_one_by_one_below_v4(newest):
    """K709-28."""
    async with ScriptedCluster(nodes=2) as scripted:
        scripted.coordinators["b"] = 1
        scripted.offer("FindCoordinator", f"0-{newest}")
        cluster = scripted.cluster()
        found = await cluster.coordinators(["a", "b", "c"], soon())
        assert {name: node.id for name, node in found.items()} == {"a": 0, "b": 1, "c": 0}
        assert [one.request.key for one in scripted.sent("FindCoordinator")] == ["a", "b", "c"]
        await cluster.close()


@asynchronous
async def test_below_v4_one_answer_that_cannot_be_read_leaves_the_others():
    async with ScriptedCluster() as scripted:
        scripted.offer("FindCoordinator", "0-3")
        honest = scripted.answers[FindCoordinatorRequest]

        def answer(asked):
            if asked.request.key != "b":
                return honest(asked)
            head = 1 + len(scripted.sent("FindCoordinator")) - 1
            scripted.nodes[0].writers[0].write(encode_response(head, b"\0", flexible=True))
            return None

        scripted.answers[FindCoordinatorRequest] = answer
        cluster = scripted.cluster()
        found = await cluster.coordinators(["a", "b", "c"], soon())
        assert found["a"] == found["c"] == Node(0, "127.0.0.1", scripted.nodes[0].port)
        assert "FindCoordinator that cannot be read" in found["b"].message
        await cluster.close()


@pytest.mark.parametrize("asked", [MetadataRequest, FindCoordinatorRequest])
@asynchronous
async def test_a_broker_that_froze_meanwhile_leaves_time_to_look_up_elsewhere(asked):
    """Its connection is open, and its machine may be gone: nothing tells."""
    async with ScriptedCluster(2) as scripted:
        cluster = scripted.cluster()
        await cluster.nodes(soon())
        honest = scripted.answers[asked]
        scripted.answers[asked] = lambda asked: None if asked.node == 0 else honest(asked)
        if asked is MetadataRequest:
            assert sorted(await cluster.nodes(soon(1.0))) == [0, 1]
        else:
            assert list(await cluster.coordinators(["g"], soon(1.0))) == ["g"]
        await cluster.close()


LONG_S, LIMIT_S = 120.0, 20.0  # what a caller allows, and what half of it would exceed


def silent_at(scripted, api, *nodes):
    """These nodes take the request of an API, and never answer it."""
    honest = scripted.answers[api]
    scripted.answers[api] = lambda asked: None if asked.node in nodes else honest(asked)


@pytest.mark.parametrize("api", [ApiVersionsRequest, MetadataRequest, FindCoordinatorRequest])
@asynchronous
async def test_two_silent_servers_cost_a_moment_and_not_their_share_of_the_time(api):
    async with ScriptedCluster(3) as scripted:
        silent_at(scripted, api, 0, 1)
        cluster = scripted.cluster()
        async with asyncio.timeout(LIMIT_S):
            if api is FindCoordinatorRequest:
                found = await cluster.coordinators(["g"], soon(LONG_S))
                assert found["g"].id == 0
            else:
                assert sorted(await cluster.nodes(soon(LONG_S))) == [0, 1, 2]
        await cluster.close()


@asynchronous
async def test_who_was_silent_is_asked_last_from_then_on():
    async with ScriptedCluster(2) as scripted:
        silent_at(scripted, MetadataRequest, 0)
        cluster = scripted.cluster()
        for _ in range(3):
            await cluster.nodes(soon(LONG_S))
        assert [one.node for one in scripted.sent("Metadata")] == [0, 1, 1, 1]
        await scripted.stop_connections()  # those that are made anew begin with the other one
        await cluster.nodes(soon(LONG_S))
        assert [one.node for one in scripted.sent("Metadata")] == [0, 1, 1, 1, 1]
        await cluster.close()


@asynchronous
async def test_clusters_of_one_client_know_the_same_servers_as_silent():
    async with ScriptedCluster(2) as scripted:
        silent_at(scripted, ApiVersionsRequest, 0)
        cluster = scripted.cluster()
        await cluster.nodes(soon(LONG_S))
        another = cluster.another()
        await another.nodes(soon(LONG_S))
        assert [one.node for one in scripted.sent("ApiVersions")] == [0, 1, 1]
        await cluster.close()
        await another.close()


@pytest.mark.parametrize("kind", ["admin", "producer", "transactions", "consumer", "classic"])
@asynchronous
async def test_a_silent_first_server_costs_a_client_a_moment(kind):
    """Each of them allows a minute, half of which it once gave to the first server."""
    server = await asyncio.start_server(lambda *_: asyncio.sleep(LONG_S), "127.0.0.1", 0)
    with Broker(in_memory=True) as broker:
        broker.create_topic("t")
        broker.produce("t", b"x")
        servers = f"127.0.0.1:{server.sockets[0].getsockname()[1]},{broker.bootstrap}"
        async with asyncio.timeout(LIMIT_S):
            match kind:
                case "admin":
                    async with kohort.AdminClient(servers, timeout=60) as admin:
                        await admin.list_groups()
                case "producer":
                    async with kohort.Producer(bootstrap_servers=servers) as producer:
                        await producer.send_and_wait("t", b"y")
                case "transactions":
                    async with (
                        kohort.Producer(
                            bootstrap_servers=servers, transactional_id="x"
                        ) as producer,
                        producer.transaction(),
                    ):
                        await producer.send("t", b"y")
                case _:
                    async with kohort.Consumer(
                        "t",
                        bootstrap_servers=servers,
                        group_id="g",
                        group_protocol=kind,
                        auto_offset_reset="earliest",
                    ) as consumer:
                        await consumer.getone()
    server.close()


@asynchronous
async def test_one_server_has_no_more_than_the_time_to_set_a_connection_up():
    async with ScriptedCluster() as scripted:
        silent_at(scripted, ApiVersionsRequest, 0)
        cluster = Cluster([Address.of(scripted.bootstrap)], client_id="test", setup_s=0.05)
        async with asyncio.timeout(LIMIT_S):
            with pytest.raises(RequestTimeoutError, match="did not answer ApiVersions in time"):
                await cluster.any_connection(soon(LONG_S))
            address = Address.of(scripted.bootstrap)
            with pytest.raises(RequestTimeoutError, match="did not answer ApiVersions in time"):
                await cluster.connection(address, soon(LONG_S))


@asynchronous
async def test_a_server_that_answers_at_last_is_waited_for():
    """It is the only one, and is silent for longer than a connection may take to set up."""
    async with ScriptedCluster() as scripted:
        ready = scripted.answers[ApiVersionsRequest]
        scripted.answers[ApiVersionsRequest] = in_turn(None, None, ready)
        cluster = Cluster([Address.of(scripted.bootstrap)], client_id="test", setup_s=0.05)
        assert list(await cluster.nodes(soon(LONG_S))) == [0]
        await cluster.close()


@asynchronous
async def test_of_two_open_connections_the_one_is_asked_that_waits_for_less():
    async with ScriptedCluster(2) as scripted:
        honest = scripted.answers[FindCoordinatorRequest]
        scripted.answers[FindCoordinatorRequest] = lambda asked: (
            None if asked.node == 0 else honest(asked)
        )
        cluster = scripted.cluster()
        for address in (Address("127.0.0.1", node.port) for node in scripted.nodes):
            await cluster.connection(address, soon())
        silent = asyncio.ensure_future(cluster.coordinators(["a"], soon(60.0)))
        await until(lambda: scripted.sent("FindCoordinator"))
        assert list(await cluster.coordinators(["b"], soon())) == ["b"]
        assert [one.node for one in scripted.sent("FindCoordinator")] == [0, 1]
        silent.cancel()
        await cluster.close()


@asynchronous
async def test_who_opens_a_connection_does_not_spend_the_time_of_others():
    async with ScriptedCluster(answers={ApiVersionsRequest: lambda _: None}) as scripted:
        cluster = scripted.cluster()
        address = Address.of(scripted.bootstrap)
        patient = asyncio.ensure_future(cluster.connection(address, soon(60.0)))
        await until(lambda: scripted.sent("ApiVersions"))
        async with asyncio.timeout(5.0):
            with pytest.raises(RequestTimeoutError, match="cannot connect to") as it:
                await cluster.connection(address, soon(0.05))
        assert not it.value.sent
        patient.cancel()
        await cluster.close()


@asynchronous
async def test_each_group_has_its_own_refusal():
    def find(asked):
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key="a", node_id=0, host="127.0.0.1", port=1),
                Coordinator(key="b", error_code=30, error_message="not yours"),
            ]
        )

    async with ScriptedCluster(answers={FindCoordinatorRequest: find}) as scripted:
        cluster = scripted.cluster()
        found = await cluster.coordinators(["a", "b", "c"], soon())
        await cluster.close()
    assert found["a"] == Node(0, "127.0.0.1", 1)
    assert isinstance(found["b"], ApiError)
    assert (found["b"].code, found["b"].message) == (
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "not yours",
    )
    assert isinstance(found["c"], ApiError)
    assert "lacks group c" in found["c"].message


@pytest.mark.parametrize(("newest", "named"), [(13, True), (4, True), (3, False)])
@asynchronous
async def test_asking_never_creates_a_topic(newest, named):
    """Below v4 Metadata creates what it is asked for, so all topics are asked for instead."""
    async with ScriptedCluster() as scripted:
        scripted.offer("Metadata", f"0-{newest}")
        cluster = scripted.cluster()
        await cluster.metadata(["maybe"], soon())
        request = scripted.sent("Metadata")[0].request
        assert (request.topics is not None) is named
        assert not named or request.allow_auto_topic_creation is False
        await cluster.close()


@asynchronous
async def test_a_broker_that_knows_no_brokers_yet_is_asked_again():
    """One of KRaft that is just starting: it names nobody, itself included."""
    async with ScriptedCluster() as scripted:
        nobody, honest = MetadataResponse(), scripted.answers[MetadataRequest]
        scripted.answers[MetadataRequest] = in_turn(nobody, nobody, honest)
        cluster = scripted.cluster()
        assert list(await cluster.nodes(soon())) == [0]
        scripted.answers[MetadataRequest] = lambda _: nobody
        with pytest.raises(ApiError, match="the cluster names no brokers") as caught:
            await cluster.nodes(soon(0.1))
        assert caught.value.code is ErrorCode.BROKER_NOT_AVAILABLE
        await cluster.close()


@asynchronous
async def test_a_controller_that_is_not_there():
    async with ScriptedCluster() as scripted:
        answer = scripted.answers[MetadataRequest]

        def nobody(asked):
            metadata = answer(asked)
            metadata.controller_id = -1
            return metadata

        scripted.answers[MetadataRequest] = nobody
        cluster = scripted.cluster()
        with pytest.raises(ApiError, match="node -1, is not among the brokers"):
            await cluster.controller(soon())
        await cluster.close()


def test_an_unknown_code_keeps_its_number():
    assert api_error(4711).message == "error code 4711"
    assert api_error(4711).code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert api_error(16, None).code is ErrorCode.NOT_COORDINATOR


@asynchronous
async def test_brokers_that_are_starting_are_waited_for_and_that_is_said_once(caplog):
    """A cluster whose brokers begin by hanging up, like one behind a proxy that is up first."""
    async with ScriptedCluster() as scripted:
        ready = scripted.answers[ApiVersionsRequest]
        scripted.answers[ApiVersionsRequest] = in_turn(CLOSE, CLOSE, ready)
        cluster = Cluster([Address.of(scripted.bootstrap)], client_id="test", chance=lambda: 0.0)
        await cluster.reach(soon())
        await cluster.close()
        assert len(scripted.sent("ApiVersions")) == 3
    assert len([one for one in caplog.messages if "no broker answers yet" in one]) == 1


@asynchronous
async def test_brokers_that_never_answer_are_waited_for_until_the_deadline():
    async with ScriptedCluster(answers={ApiVersionsRequest: lambda _: CLOSE}) as scripted:
        often = Backoff(first_s=0.001, most_s=0.01)
        cluster = Cluster([Address.of(scripted.bootstrap)], client_id="test", backoff=often)
        with pytest.raises(ConnectionFailedError, match="closed the connection"):
            await cluster.reach(soon(1.0))
        assert len(scripted.sent("ApiVersions")) > 2


@asynchronous
async def test_an_attempt_cut_short_by_the_deadline_does_not_hide_why_the_one_before_failed():
    then_silent = in_turn(CLOSE, lambda _: None)
    async with ScriptedCluster(answers={ApiVersionsRequest: then_silent}) as scripted:
        cluster = Cluster([Address.of(scripted.bootstrap)], client_id="test")
        with pytest.raises(ConnectionFailedError, match="closed the connection"):
            await cluster.reach(soon(1.0))
        assert len(scripted.sent("ApiVersions")) == 2


def test_another_event_loop_gets_one_error_that_names_it() -> None:
    """It refuses to be closed there, and goes on in its own."""
    cluster: list[Cluster] = []

    async def here() -> None:
        async with ScriptedCluster() as script:
            cluster.append(script.cluster())
            await cluster[0].nodes(soon())
            await asyncio.to_thread(asyncio.run, elsewhere())
            await cluster[0].nodes(soon())
            await cluster[0].close()

    async def elsewhere() -> None:
        for ask in (cluster[0].nodes, cluster[0].reach):
            with pytest.raises(RuntimeError, match="client test belongs to the event loop in"):
                await ask(soon())
        with pytest.raises(RuntimeError, match="close it there, or make one for each loop"):
            await cluster[0].close()

    asyncio.run(here())
