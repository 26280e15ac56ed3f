# SPDX-License-Identifier: Apache-2.0
"""A second process with the instance id of a static member, as a supervisor that lost sight of the
first one starts it. The two fence each other, until all is calm; then only the first is left.
"""

from typing import ClassVar

from kohort.sim.actors.classic_member import ClassicMember
from kohort.sim.actors.consumer import Consumer
from kohort.sim.actors.member import Member


class Double(Member):
    """Lives for short whiles, and always ends without a word."""

    async def live(self) -> None:
        random = self.random
        await self.prepare()
        while not self.calm:
            await self.pause(random.randrange(60_000))
            if self.calm or self.instance_id is None:
                return
            self._begin()
            until = self.now() + random.randrange(30_000)
            while self.now() < until and not (self.failed or self.calm):
                await self._turn()
            self._is_out()
            self.caller.hang_up()


class ConsumerDouble(Double, Consumer):
    """Gets in when the first one has left for a while, or is silent for its session."""

    kind: ClassVar[str] = "consumer double"


class ClassicDouble(Double, ClassicMember):
    """Gets in at once."""

    kind: ClassVar[str] = "classic double"
