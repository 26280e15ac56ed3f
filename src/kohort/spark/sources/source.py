# SPDX-License-Identifier: Apache-2.0
"""What a source of rows promises: where it stands, what is new, and the rows.

A source is asked by the driver what there is to read (`plan`), gives a frame of exactly that, and
keeps no state: where a run stopped is a `Position` for each partition, which the caller keeps.

A log may change at any moment: compaction and retention remove records, leaders move, a crash cuts
a tail whose offsets are then used again. Workers go on from the next offset that is there and
never fail for it. What was lost comes to light in the driver: `changes` after a plan was read tells
what happened meanwhile, and the next `plan` finds a cut tail by the fingerprints in the positions,
and reads again what was written in its place. So nothing has to be carried from the workers to the
driver, and nothing is lost when a worker dies before it could tell.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import NamedTuple, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kohort.pipeline.sources.log_position import Identity, Note, Plan, Position, Settings
from kohort.pipeline.sources.samples import NOTHING, Since


class Ends(NamedTuple):
    """Where the partitions of user topics end, and the moment for which a plan is all there was."""

    at: datetime
    """When was asked. What the log said before is in the plan; what it said later is unknown."""
    samples: Callable[[SparkSession], DataFrame | pa.Table | None]
    """The END_OFFSETS rows, as a table where there are few; None for none known."""


def no_samples(_: SparkSession) -> None:
    """Of a source that knows nothing of user topics."""


class Source(Protocol):
    """One log of groups. Every method raises SourceError when the source cannot be read."""

    def identity(self) -> Identity:
        """Whose log it is. What differs from an earlier answer is another log."""

    def plan(
        self,
        since: Mapping[int, Position],
        *,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
    ) -> Plan:
        """What there is to read now, behind `since`.

        Partitions without a position begin at the first record that is not older than `from_time`,
        or at the start of their log. Reading ends before the first record that is not older than
        `to_time`. Times need a zone.
        """

    def frame(self, spark: SparkSession, plan: Plan) -> DataFrame:
        """The rows of a plan, as DECODED. May be read again: a log that was not compacted or cut
        meanwhile gives the same rows.
        """

    def few_or_none(self, plan: Plan) -> pa.Table | None:
        """The same rows, decoded in this process, where that costs less than to ask Spark for them;
        None where there may be many. It is called in another thread, while Spark starts.
        """

    def late_rows(
        self,
        spark: SparkSession,
        since: Mapping[int, Position],
        known: Callable[[], DataFrame],
        files: Collection[str] = (),
    ) -> DataFrame | None:
        """The rows before these positions, as DECODED, where some may have come after later ones
        were read, without those whose partition and offset are `known`, which is asked where that
        matters; None where rows come in order. `files` is what `files` said when these positions
        were planned.
        """

    def files(self) -> tuple[str, ...]:
        """A fingerprint of each file that the last plan has looked at, where rows come by files."""

    def stream(
        self, spark: SparkSession, plan: Plan, *, max_records: int | None = None
    ) -> DataFrame:
        """DECODED rows from where the plan begins, for ever; `max_records` in a micro-batch."""

    def positions(self, following: Mapping[int, int]) -> dict[int, Position]:
        """Positions, with fingerprints, of partitions whose next offsets are known: for a stream,
        which knows from its rows how far it has come.
        """

    def changes(self, plan: Plan) -> tuple[Note, ...]:
        """What happened to the log since it was planned: records that were removed before they
        may have been read, leaders that moved. For after a plan was read.
        """

    def ends(self, since: Since = NOTHING) -> Ends:
        """Where the user topics beside this log end now. Ask as soon as a plan is made, before its
        rows are read: the time between the two is the error of every lag. `since` is what earlier
        rows with origin `log` have told, and need not tell again.
        """

    def settings(self) -> Settings:
        """The settings of the cluster's brokers, as far as they can be known."""
