# SPDX-License-Identifier: Apache-2.0
"""What `kohort doctor` looks at, step by step, with clusters that play a part."""

import asyncio
import functools
import socket
from datetime import timedelta

import pytest
from tests.certificates import Authority
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous
from tests.ports import free_ports

from kohort.cli.diagnosis import diagnose
from kohort.client.network.address import Address
from kohort.security.settings import NO_SECURITY, Security, Store
from kohort.security.stores import server_context
from kohort.server.broker import Broker
from kohort.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kohort.wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from kohort.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kohort.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kohort.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kohort.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from kohort.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kohort.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

READ_AND_DESCRIBE = 1 << 3 | 1 << 8


def answers():
    """Of a cluster whose principal may do a little."""

    def groups(asked):
        (group_id,) = asked.request.group_ids
        code = {"forbidden": 30}.get(group_id, 69)
        if group_id == "new":
            group = DescribedConsumerGroup(group_id="new", authorized_operations=READ_AND_DESCRIBE)
        else:
            group = DescribedConsumerGroup(group_id=group_id, error_code=code)
        return ConsumerGroupDescribeResponse(groups=[group])

    def classic(asked):
        (group_id,) = asked.request.groups
        if group_id == "classic":
            group = DescribedGroup(group_id=group_id, authorized_operations=READ_AND_DESCRIBE)
        else:
            group = DescribedGroup(group_id=group_id, group_state="Dead")
        return DescribeGroupsResponse(groups=[group])

    return {
        DescribeClusterRequest: lambda _: DescribeClusterResponse(cluster_authorized_operations=0),
        ConsumerGroupDescribeRequest: groups,
        DescribeGroupsRequest: classic,
    }


async def examined(cluster, security=NO_SECURITY, *, host="127.0.0.1", **more):
    found = await diagnose(
        [Address(host, cluster.nodes[0].port)],
        security,
        client_id="test",
        timeout_s=5.0,
        **{"groups": (), "topics": (), **more},
    )
    assert all("\n" not in one.text for one in found)
    return found


def of(found, check):
    return [(one.result, one.text) for one in found if one.check == check]


@asynchronous
async def test_a_cluster_that_is_well_is_told_step_by_step():
    async with ScriptedCluster(2, answers()) as cluster:
        found = await examined(cluster)
        assert [one.check for one in found] == [
            *("tcp", "principal", "versions", "brokers", "cluster"),
        ]
        assert {one.result for one in found} == {"ok"}
        ports = [node.port for node in cluster.nodes]
        ((_, brokers),) = of(found, "brokers")
        assert brokers.startswith(
            "2 nodes, reached where they tell clients to come: 0 at 127.0.0.1"
        )
        assert brokers.endswith(f"1 at 127.0.0.1:{ports[1]}")
        assert of(found, "cluster") == [("ok", "no rights that the broker tells")]


@asynchronous
async def test_rights_are_told_for_groups_of_each_kind():
    async with ScriptedCluster(1, answers()) as cluster:
        found = await examined(cluster, groups=("new", "classic", "none", "forbidden"))
        assert of(found, "group") == [
            ("ok", "new: may Read, Describe"),
            ("ok", "classic: may Read, Describe"),
            ("ok", "none: may Describe it, and it does not exist yet"),
            ("failed", "forbidden: no right to Describe it"),
        ]
        cluster.offer("ConsumerGroupDescribe", None)
        cluster.offer("DescribeGroups", "0-2")
        (group,) = of(await examined(cluster, groups=("classic",)), "group")
        assert group == ("ok", "classic: the broker is too old to tell rights (KIP-430)")


@asynchronous
async def test_an_answer_without_the_group_or_with_others_hides_no_finding():
    async with ScriptedCluster(1, answers()) as cluster:
        other = DescribedConsumerGroup(group_id="other", authorized_operations=0)
        usual = cluster.answers[ConsumerGroupDescribeRequest]

        def with_another(asked):
            answer = usual(asked)
            return ConsumerGroupDescribeResponse(groups=[other, *answer.groups])

        cluster.answers[ConsumerGroupDescribeRequest] = with_another
        cluster.answers[DescribeGroupsRequest] = lambda _: DescribeGroupsResponse()
        found = await examined(cluster, groups=("new", "gone"))
        assert of(found, "group") == [
            ("ok", "new: may Read, Describe"),
            ("failed", "gone: the answer to DescribeGroups does not have it"),
        ]


@asynchronous
async def test_a_token_is_asked_for_once_by_each_connection():
    asked = []

    def provide():
        asked.append("")
        return "abc"

    logins = {
        SaslHandshakeRequest: lambda _: SaslHandshakeResponse(mechanisms=["OAUTHBEARER"]),
        SaslAuthenticateRequest: lambda _: SaslAuthenticateResponse(),
    }
    security = Security(protocol="SASL_PLAINTEXT", mechanism="OAUTHBEARER", token=provide)
    async with ScriptedCluster(1, answers() | logins) as cluster:
        found = await examined(cluster, security)
        address = f"127.0.0.1:{cluster.nodes[0].port}"
        assert of(found, "sasl") == [("ok", f"{address} takes the token (no JWT; OAUTHBEARER)")]
        assert len(asked) == len(cluster.sent("SaslHandshake"))


@asynchronous
async def test_a_coordinator_that_is_still_made_is_waited_for():
    async with ScriptedCluster(1, answers()) as cluster:
        usual = cluster.answers[FindCoordinatorRequest]
        made = [Coordinator(key="new", error_code=15)]

        def later(asked):
            if made:
                return FindCoordinatorResponse(coordinators=[made.pop()])
            return usual(asked)

        cluster.answers[FindCoordinatorRequest] = later
        found = await examined(cluster, groups=("new",))
        assert of(found, "group") == [("ok", "new: may Read, Describe")]


@asynchronous
async def test_rights_are_told_for_topics():
    async with ScriptedCluster(1, answers()) as cluster:
        usual = cluster.answers[MetadataRequest]

        def metadata(asked):
            answer = usual(asked)
            codes = {"secret": 29, "gone": 3, "sick": 56}
            answer.topics = [
                MetadataResponseTopic(
                    name=one.name,
                    error_code=codes.get(one.name, 0),
                    topic_authorized_operations=READ_AND_DESCRIBE,
                )
                for one in asked.request.topics or ()
            ]
            return answer

        cluster.answers[MetadataRequest] = metadata
        found = await examined(cluster, topics=("mine", "secret", "gone", "sick"))
        assert of(found, "topic") == [
            ("ok", "mine: may Read, Describe"),
            ("failed", "secret: no right to Describe it"),
            ("failed", "gone: there is no such topic"),
            ("failed", "sick: KAFKA_STORAGE_ERROR"),
        ]
        (asked,) = [one for one in cluster.sent("Metadata") if one.request.topics]
        assert not asked.request.allow_auto_topic_creation


@asynchronous
async def test_an_advertised_address_that_cannot_be_reached_is_named():
    async with ScriptedCluster(1, answers()) as cluster:
        (closed,) = free_ports(1)
        usual = cluster.answers[MetadataRequest]

        def metadata(asked):
            answer: MetadataResponse = usual(asked)
            away = MetadataResponseBroker(node_id=7, host="127.0.0.1", port=closed)
            answer.brokers.append(away)
            return answer

        cluster.answers[MetadataRequest] = metadata
        where = f"127.0.0.1:{closed}"
        told = f"node 7 tells clients to come to {where}: cannot connect to {where}: refused"
        assert of(await examined(cluster), "brokers") == [("failed", told)]


@asynchronous
async def test_an_address_where_nobody_listens_is_the_end():
    (closed,) = free_ports(1)
    found = await diagnose(
        [Address("127.0.0.1", closed), Address("no.such.invalid", 1)],
        NO_SECURITY,
        client_id="test",
        groups=("g",),
        topics=(),
        timeout_s=5.0,
    )
    assert [(one.check, one.result) for one in found] == [("tcp", "failed"), ("name", "failed")]


@asynchronous
async def test_a_name_with_an_address_that_is_closed_is_a_warning(monkeypatch):
    async def both(*_, **__):
        return [(socket.AF_INET, 1, 6, "", (one, 0)) for one in ("127.0.0.3", "127.0.0.1")]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", both, raising=False)
    async with ScriptedCluster(1, answers()) as cluster:
        found = await examined(cluster, host="broker.example")
        assert of(found, "name") == [("ok", "broker.example is 127.0.0.3, 127.0.0.1")]
        assert [result for result, _ in of(found, "tcp")] == ["warning", "ok"]
        assert of(found, "brokers")


class TlsCluster(ScriptedCluster):
    """The same, with TLS."""

    def __init__(self, identity, **more):
        super().__init__(1, answers())
        self._context = server_context(Store(text=identity.pem()), **more)

    async def __aenter__(self):
        (node,) = self.nodes
        serve = functools.partial(self._serve, node)
        node.server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=self._context)
        node.port = node.server.sockets[0].getsockname()[1]
        return self


@pytest.fixture(scope="module")
def authority():
    return Authority()


def trusting(authority, **more):
    return Security(protocol="SSL", trust=Store(text=authority.pem), **more)


def test_a_certificate_is_told_with_its_names_and_its_end(authority):
    @asynchronous
    async def talk(identity, result, left):
        async with TlsCluster(identity) as cluster:
            found = await examined(cluster, trusting(authority))
            port = cluster.nodes[0].port
            assert of(found, "tls") == [
                (
                    result,
                    (
                        f"127.0.0.1:{port} speaks TLSv1.3; its certificate CN=broker,O=Kohort is "
                        f"for 127.0.0.1, localhost, ends in {left}, and is issued by "
                        "CN=Kohort Test CA,O=Kohort"
                    ),
                )
            ]
            assert of(found, "principal") == [("ok", "User:ANONYMOUS: nobody has logged in")]
            assert of(found, "brokers")

    talk(authority.sign("broker"), "ok", "364 days")
    talk(authority.sign("broker", valid=timedelta(days=5)), "warning", "4 days")


def test_a_certificate_that_is_not_good_is_the_end(authority):
    @asynchronous
    async def talk(identity, security, told):
        async with TlsCluster(identity) as cluster:
            found = await examined(cluster, security)
            ((result, text),) = of(found, "tls")
            assert (result, found[-1].check) == ("failed", "tls")
            assert told in text

    good = authority.sign("broker")
    talk(authority.sign("broker", valid=timedelta(days=-1)), trusting(authority), "expired")
    talk(good, trusting(Authority("Another")), "Kohort Test CA")
    talk(authority.sign("broker", names=("a.example",)), trusting(authority), "a.example")
    talk(good, Security(protocol="SSL", trust=Store(path="/no/such")), "/no/such")


def test_the_subject_of_the_own_certificate_is_the_principal(authority):
    @asynchronous
    async def talk(identity, security, told):
        async with TlsCluster(
            identity, trust=Store(text=authority.pem), client_auth="required"
        ) as cluster:
            found = await examined(cluster, security)
            assert of(found, "principal") == [("ok", told)]

    own = trusting(authority, identity=Store(text=authority.sign("alice").pem()))
    rules = "if ssl.principal.mapping.rules does not change it"
    talk(authority.sign("broker"), own, f"User:CN=alice,O=Kohort, {rules}")


def test_without_verification_there_is_a_warning(authority):
    @asynchronous
    async def talk(identity):
        async with TlsCluster(identity) as cluster:
            found = await examined(cluster, Security(protocol="SSL", verify=False))
            assert [result for result, _ in of(found, "tls")] == ["failed", "warning"]
            assert of(found, "brokers")

    talk(authority.sign("broker", valid=timedelta(days=-1)))


@asynchronous
async def test_a_port_of_plain_text_and_one_without_sasl_are_named():
    async with ScriptedCluster(1, answers()) as cluster:
        found = await examined(cluster, Security(protocol="SSL"))
        ((result, text),) = of(found, "tls")
        assert (result, "speaks plain text" in text) == ("failed", True)
        user = Security(
            protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="alice", password="hunter2"
        )
        found = await examined(cluster, user)
        ((result, text),) = of(found, "sasl")
        assert (result, "has no SASL" in text) == ("failed", True)
        assert "hunter2" not in str(found)


@asynchronous
async def test_a_port_that_wants_a_login_is_one_failure():
    """What follows from it is left out."""
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": 'x.PlainLoginModule required user_alice="alice-secret";',
    }
    async with Broker(settings) as broker:
        server = Address(*broker.addresses[0])
        found = await diagnose(
            [server], NO_SECURITY, client_id="d", groups=["g"], topics=["t"], timeout_s=10
        )
    assert [(one.check, one.result) for one in found] == [("tcp", "ok"), ("sasl", "failed")]
    assert "wants SASL" in found[-1].text


@asynchronous
async def test_a_step_that_fails_does_not_hide_the_others():
    def hangs_up(_asked):
        return CLOSE

    async with ScriptedCluster(1, {**answers(), DescribeClusterRequest: hangs_up}) as cluster:
        found = await examined(cluster, groups=("classic",))
        assert [result for result, _ in of(found, "cluster")] == ["failed"]
        assert of(found, "group") == [("ok", "classic: may Read, Describe")]
