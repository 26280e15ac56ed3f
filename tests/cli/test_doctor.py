# SPDX-License-Identifier: Apache-2.0
"""`kohort doctor` as a command."""

from tests.ports import free_ports

from kohort.testing import Broker


def test_a_line_for_each_step_and_a_code(kohort):
    with Broker(in_memory=True) as broker:
        server = ("--bootstrap-server", broker.bootstrap)
        broker.create_topic("t")
        ran = kohort("doctor", *server, "--topic", "t", "--group", "g")
        assert (ran.code, ran.err) == (0, "")
        assert [row[:2] for row in ran.rows] == [
            ["ok", check]
            for check in ("tcp", "principal", "versions", "brokers", "cluster", "topic", "group")
        ]
        assert ran.rows[3][2:] == ["1", "node,", *ran.rows[3][4:]]

        ran = kohort("doctor", *server, "--topic", "none", "--format", "json")
        assert (ran.code, ran.json["ok"]) == (1, False)
        assert ran.json["checks"][-1] == {
            "check": "topic",
            "result": "failed",
            "text": "none: there is no such topic",
        }


def test_nobody_listens(kohort):
    (port,) = free_ports(1)
    ran = kohort("doctor", "--bootstrap-server", f"127.0.0.1:{port}")
    assert ran.code == 1
    assert ran.out == f"failed   tcp        cannot connect to 127.0.0.1:{port}: refused\n"


def test_a_wrong_call_is_a_line(kohort):
    ran = kohort("doctor", "-X", "security.protocol=SASL_SSL")
    assert (ran.code, ran.out) == (2, "")
    assert ran.complaints == [
        (
            "kohort: sasl.mechanism is missing, expected one of PLAIN, SCRAM-SHA-256, "
            "SCRAM-SHA-512, OAUTHBEARER"
        )
    ]
    endpoint = "sasl.oauthbearer.token.endpoint.url=http://issuer.example"
    settings = ("security.protocol=SASL_SSL", "sasl.mechanism=OAUTHBEARER", endpoint)
    client = ("sasl.oauthbearer.client.id=a", "sasl.oauthbearer.client.secret=${env:PATH}")
    ran = kohort("doctor", *(part for one in (*settings, *client) for part in ("-X", one)))
    (line,) = ran.complaints
    assert (ran.code, line.startswith("kohort: doctor: the token endpoint is no")) == (2, True)
