# SPDX-License-Identifier: Apache-2.0
"""Members in processes of their own, which come and go."""

import subprocess

from tests.clients.member_processes import Crew, Member
from tests.prove.killing.actor import Actor
from tests.prove.killing.asking import asked
from tests.prove.killing.journal import Journal

LEAVE_SECONDS = 20


class Churn(Actor):
    """Replaces the members of some groups, one at a time: some leave, some are killed."""

    def __init__(
        self,
        seed: int,
        crew: Crew,
        bootstrap: str,
        journal: Journal,
        *,
        topic: str,
        groups: dict[str, list[str]],
        pause: tuple[float, float] = (3, 6),
    ) -> None:
        """`groups` has the kinds of the members of each group."""
        super().__init__("members", seed, journal)
        self._crew = crew
        self.bootstrap = bootstrap
        self._topic = topic
        self._kinds = groups
        self._pause = pause
        self._last: dict[str, dict[tuple[str, int], int]] = {group: {} for group in groups}
        self.members: dict[str, list[Member]] = {
            group: [self._join(group, kind) for kind in kinds] for group, kinds in groups.items()
        }
        self._all = {group: list(members) for group, members in self.members.items()}

    def _join(self, group: str, kind: str) -> Member:
        self.say(f"a {kind} joins {group}")
        return self._crew.join(kind, self.bootstrap, self._topic, group)

    def act(self) -> None:
        if self.ending.wait(self.random.uniform(*self._pause)):
            return
        group = self.random.choice(list(self.members))
        members = self.members[group]
        place = self.random.randrange(len(members))
        if self.random.random() < 0.5:
            self.say(f"one of {group} is killed")
            members[place].kill()
            self.done("members killed")
        else:
            self.say(f"one of {group} leaves")
            self._leave(members[place])
        new = members[place] = self._join(group, self._kinds[group][place])
        self._all[group].append(new)

    def _leave(self, member: Member) -> None:
        """Some clients do not end as long as the broker does not live for a while."""
        try:
            member.leave(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            self.say("it does not end, and is killed")
            member.kill()
            self.done("members killed, for they did not end")
        else:
            self.done("members left")

    def everybody(self, group: str) -> list[Member]:
        """The members of a group of all times."""
        return list(self._all[group])

    def promised(self) -> dict[str, dict[tuple[str, int], int]]:
        """The highest offset of each partition that some member was told is committed."""
        return {
            group: highest_commits(self._topic, self.everybody(group)) for group in self.members
        }

    def compare(self, promised: dict[str, dict[tuple[str, int], int]]) -> None:
        """Compare what is committed with what had been promised, and what was found, before."""
        for group, offsets in promised.items():
            found = asked(self.bootstrap, lambda client, group=group: client.committed(group))
            for key, offset in (*offsets.items(), *self._last[group].items()):
                assert found.get(key, -1) >= offset, (group, key, offset, found)
            self._last[group] = found


def highest_commits(topic: str, members: list[Member]) -> dict[tuple[str, int], int]:
    highest: dict[tuple[str, int], int] = {}
    for member in members:
        for commit in member.notes("committed"):
            for partition, offset in commit:
                if offset < 0:
                    continue  # of it librdkafka had nothing to commit
                key = (topic, partition)
                highest[key] = max(highest.get(key, 0), offset)
    return highest
