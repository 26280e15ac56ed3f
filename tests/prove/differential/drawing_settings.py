# SPDX-License-Identifier: Apache-2.0
"""Settings of single groups, before they have members and while they have."""

from __future__ import annotations

from typing import Any

from tests.prove.differential.drawing import ADMIN, Draw
from tests.prove.differential.drawing_topics import GROUP, TOPIC
from tests.prove.differential.steps import Name, Step

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
INTERVAL = "consumer.assignment.interval.ms"
LONGEST_INTERVAL_MS = 600_000  # no sequence lasts so long: it is now, or never
OTHERS = ("share.session.timeout.ms", "share.auto.offset.reset", "streams.num.standby.replicas")
SET, DELETE, APPEND, SUBTRACT = range(4)


class DrawSettings(Draw):
    """One request about the settings of groups."""

    def configured(self) -> Any:
        return self.but(Name("g1"), Name("g2"), Name("simple"), Name("ghost"), "")

    def good(self) -> tuple[str, str | None]:
        return self.one(
            *((HEARTBEAT, "5000"), (HEARTBEAT, "15000"), (HEARTBEAT, "7000"), (HEARTBEAT, "10000")),
            *((SESSION, "1800000"), (SESSION, "600000"), (SESSION, "900000")),
            *((INTERVAL, "0"), (INTERVAL, f"{LONGEST_INTERVAL_MS}")),
        )

    def bad(self) -> tuple[str, str | None]:
        return self.one(
            *((HEARTBEAT, "4999"), (HEARTBEAT, "15001"), (HEARTBEAT, "0"), (HEARTBEAT, "-1")),
            *((HEARTBEAT, "soon"), (HEARTBEAT, ""), (HEARTBEAT, None), (HEARTBEAT, " 7000 ")),
            *((HEARTBEAT, "2147483648"), (HEARTBEAT, "7000.0"), (HEARTBEAT, "+7000")),
            *((SESSION, "44999"), (SESSION, "1800001"), (SESSION, "1"), (SESSION, None)),
            *((INTERVAL, "600001"), (INTERVAL, "-1"), (INTERVAL, "x")),
            *(("no.such.setting", "1"), ("", "1"), ("retention.ms", "1000")),
            *(("consumer.Session.timeout.ms", "600000"), ("group." + SESSION, "600000")),
            *(("share.session.timeout.ms", "45000"), ("share.session.timeout.ms", "1")),
            *(("share.auto.offset.reset", "latest"), ("share.auto.offset.reset", "never")),
            *(("streams.num.standby.replicas", "1"), ("streams.num.standby.replicas", "9")),
        )

    def setting(self) -> tuple[str, str | None]:
        return self.bad() if self.chance(0.3) else self.good()

    def alter(self) -> Step:
        """Some settings of some groups, each named once or twice."""
        resources = []
        for _ in range(self.but(1, 0, 2)):
            changes = []
            for _ in range(self.but(self.one(1, 1, 2), 0, 3)):
                name, value = self.setting()
                operation = self.one(*[SET] * 8, *[DELETE] * 3, self.but(SET, APPEND, SUBTRACT))
                changes.append({"name": name, "config_operation": operation, "value": value})
            kind = self.but(GROUP, TOPIC, 16, 0, 64, odd=self.odd / 4)
            name = Name("t1") if kind == TOPIC else self.configured()
            resources.append({"resource_type": kind, "resource_name": name, "configs": changes})
        if resources and self.chance(self.odd / 3):
            resources.append(resources[0])
        return self.step(
            ADMIN,
            "IncrementalAlterConfigs",
            resources=resources,
            validate_only=self.chance(0.15),
        )

    def replace(self) -> Step:
        """The older request, which takes back what it does not name."""
        settings = [self.setting() for _ in range(self.but(1, 0, 2))]
        configs = [{"name": name, "value": value} for name, value in dict(settings).items()]
        resource = {
            "resource_type": GROUP,
            "resource_name": self.configured(),
            "configs": configs,
        }
        return self.step(
            ADMIN, "AlterConfigs", resources=[resource], validate_only=self.chance(0.15)
        )

    def describe(self) -> Step:
        keys = self.one(
            *(None, None, []),
            *([SESSION, HEARTBEAT, INTERVAL], [HEARTBEAT, "no.such.setting"], list(OTHERS)),
        )
        resources = [
            {"resource_type": GROUP, "resource_name": name, "configuration_keys": keys}
            for name in {f"{one}": one for one in self._some()}.values()
        ]
        return self.step(
            ADMIN,
            "DescribeConfigs",
            resources=resources,
            include_synonyms=self.chance(0.5),
            include_documentation=self.chance(0.1),
        )

    def _some(self) -> list[Any]:
        return [self.configured() for _ in range(self.but(1, 0, 2, 3))]

    def list(self) -> Step:
        version = self.version("ListConfigResources")
        types = self.one([GROUP], [GROUP], [], [TOPIC, GROUP], [TOPIC], [16], [self.but(4, 99, 0)])
        more = {"resource_types": types} if version else {}
        return self.step(ADMIN, "ListConfigResources", version, **more)
