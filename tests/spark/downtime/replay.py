# SPDX-License-Identifier: Apache-2.0
"""A recorded story: what was done, what the clients saw, and what a history makes of the log."""

import json
import tarfile
from base64 import urlsafe_b64encode
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from tests.spark.downtime.days import BROKER

from kohort.history import History, HistoryInputs, Names, RebalanceRow, Record, Row
from kohort.history.logged import Line, Lines, by_member
from kohort.pipeline.columns.decode import decode
from kohort.pipeline.columns.events import events
from kohort.pipeline.columns.segments import parse
from kohort.pipeline.schemas import DECODED
from kohort.pipeline.sources.server_lines import parse_removals


class Done(NamedTuple):
    """Something that was done to a client, or to the broker. Times are in milliseconds."""

    what: str
    who: str
    at: int
    until: int


class Polled(NamedTuple):
    """A poll that returned records of a partition."""

    at: int
    client: str
    first: int
    last: int


class Committed(NamedTuple):
    """A commit that was acknowledged."""

    at: int
    client: str
    offset: int


class Story:
    """One archive of `record`."""

    def __init__(self, archive: Path) -> None:
        self.server_log = b""
        pieces = []
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                stream = tar.extractfile(member)
                assert stream is not None
                data = stream.read()
                if member.name == "truth.json":
                    self.truth: dict[str, Any] = json.loads(data)
                elif member.name == "server.log":
                    self.server_log = data
                else:
                    partition = int(member.name.partition("/")[0].rpartition("-")[2])
                    pieces += [decode(one) for one in parse(data, partition).pieces]
        self.rows = pa.Table.from_batches(pieces, DECODED.arrow)
        self.done = [Done(**one) for one in self.truth["done"]]

    def __str__(self) -> str:
        return f"{self.truth['on']}-{self.truth['seed']}"

    @cached_property
    def names(self) -> dict[str, str]:
        ids = zip(self.rows["topic_id"].to_pylist(), self.rows["topic"].to_pylist(), strict=True)
        return {urlsafe_b64encode(one).decode().rstrip("="): topic for one, topic in ids if one}

    def lines(self, group: str) -> Lines:
        """What the coordinator has written into its log file about the group."""
        found = parse_removals(self.server_log.splitlines(keepends=True))
        return by_member(
            Line(one.member_id, one.trigger, one.reason, one.clock_us, one.number, "server.log")
            for one in found
            if one.group_id == group
        )

    def rebalances(
        self, group: str, *, proof: bool, session_ms: int | None = None, every: int | None = None
    ) -> list[RebalanceRow]:
        """In order; without `proof` from keys and values alone. `every` so many events the history
        is put aside and continued.
        """
        happened = events(self.rows.filter(pc.equal(self.rows["group_id"], group)))
        if not proof:
            for one in happened:
                if isinstance(one, Record):
                    one.causes = []
        lines = self.lines(group) if proof else {}
        told = HistoryInputs(Names(self.names), session_ms, 0, lines)
        found: list[Row] = []
        history, size = History(told), every or len(happened)
        for begin in range(0, len(happened), size):
            history = History(told, history.state())
            history.feed(happened[begin : begin + size])
            found += history.closed
        found += history.open_rows()
        return sorted(
            (one for one in found if isinstance(one, RebalanceRow)), key=lambda row: row.offset
        )

    def done_to(self, who: str) -> list[Done]:
        return [one for one in self.done if one.who == who and one.what != "start"]

    @cached_property
    def outages(self) -> list[Done]:
        return self.done_to(BROKER)

    @cached_property
    def polled(self) -> dict[tuple[str, int], list[Polled]]:
        """(group, partition) -> the polls of all its clients, in order."""
        found: dict[tuple[str, int], list[Polled]] = {}
        for client, at, told in self._journals("poll"):
            for index, (first, last) in told.items():
                place = (client.partition("-")[0], int(index))
                found.setdefault(place, []).append(Polled(at, client, first, last))
        return {place: sorted(polls) for place, polls in found.items()}

    @cached_property
    def committed(self) -> dict[tuple[str, int], list[Committed]]:
        """(group, partition) -> the commits of all its clients, in order."""
        found: dict[tuple[str, int], list[Committed]] = {}
        for client, at, told in self._journals("commit"):
            for index, offset in told.items():
                place = (client.partition("-")[0], int(index))
                found.setdefault(place, []).append(Committed(at, client, offset))
        return {place: sorted(commits) for place, commits in found.items()}

    def _journals(self, kind: str) -> list[tuple[str, int, dict[str, Any]]]:
        return [
            (client, at, told)
            for client, journal in self.truth["journals"].items()
            for at, what, told in journal
            if what == kind
        ]
