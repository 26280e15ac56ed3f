# SPDX-License-Identifier: Apache-2.0
"""Asks what needs no disk and no other client, again and again. A checker watches how long its
requests lie at the broker.
"""

from typing import ClassVar

from kohort.sim.actors.actor import Actor
from kohort.wire.messages.api_versions import ApiVersionsRequest


class Bystander(Actor):
    """Its name is what the checker knows it by."""

    kind: ClassVar[str] = "bystander"

    async def live(self) -> None:
        while not self.over:
            await self.pause(self.random.randrange(20, 1000))
            request = ApiVersionsRequest(
                client_software_name="bystander", client_software_version="1"
            )
            await self.ask(request, 3)
        self.caller.hang_up()
