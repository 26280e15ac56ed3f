# SPDX-License-Identifier: Apache-2.0
"""A plug-in for confluent-kafka's own tests: the cluster that they start is Kohort.

They start one with trivup, whose face is a constructor with settings, `wait_operational`,
`client_conf` and `stop`. What their client of a schema registry imports is not needed here.
"""

import sys
from types import ModuleType
from unittest.mock import MagicMock

from suite_broker import SuiteBroker, plain

NOT_NEEDED = (
    "avro",
    "avro.io",
    "avro.schema",
    "authlib",
    "authlib.integrations",
    "authlib.integrations.httpx_client",
    "httpx",
)


class KafkaCluster:
    """One broker, with a listener in plain text or of SASL with PLAIN."""

    def __init__(self, sasl_mechanism=None, sasl_users="", **_):
        self.sasl_mechanism = sasl_mechanism
        self.user, _, self.password = sasl_users.partition("=")
        protocol = "SASL_PLAINTEXT" if sasl_mechanism else "PLAINTEXT"
        users = plain({self.user: self.password}) if sasl_mechanism else {}
        self.broker = SuiteBroker({protocol: "127.0.0.1:0"}, users)

    def wait_operational(self):
        """It is, as soon as it says so."""

    def client_conf(self):
        conf = {"bootstrap.servers": self.broker.first}
        if self.sasl_mechanism:
            conf |= {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": self.sasl_mechanism,
                "sasl.username": self.user,
                "sasl.password": self.password,
            }
        return conf

    def stop(self, **_):
        self.broker.stop()


def _stand_in(name, **names):
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(names)


for _name in ("trivup", "trivup.clusters"):
    _stand_in(_name)
_stand_in("trivup.clusters.KafkaCluster", KafkaCluster=KafkaCluster)
for _name in NOT_NEEDED:
    sys.modules[_name] = MagicMock()
