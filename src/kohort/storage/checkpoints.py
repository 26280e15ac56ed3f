# SPDX-License-Identifier: Apache-2.0
"""The small text files beside the segments, as Kafka writes them.

`leader-epoch-checkpoint` (version, count, then `epoch offset` a line), `partition.metadata`
(`version: 0`, `topic_id: …`), and `log-start-offset-checkpoint` (version, count, then `topic
partition offset` a line): once per directory of logs, as Kafka keeps it, where DeleteRecords lets
logs begin, and once per partition where its log began when segments were last removed.
`recovery-point-offset-checkpoint` is once per directory and written likewise: everything before an
offset was synced. `known-holes-checkpoint` is ours alone (`first next` a line): what is missing
between two segments, and was when the log came to us or was repaired.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

from kohort.errors import Broken, StorageError, UnsettledError
from kohort.storage.files import Files, UnsyncedError, read_whole, replace_whole
from kohort.terms import Offset, TopicId, uuid_bytes, uuid_text

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
START_OFFSETS = "log-start-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HOLES = "known-holes-checkpoint"
_EPOCH_MAX = (1 << 31) - 1  # what a batch has room for
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"  # its name is all that it says
_NUMBER = re.compile(r"-?[0-9]{1,18}")  # within int64, and no digits but ours


def split_name(folder: str) -> tuple[str, int] | None:
    """Topic and partition of a folder's name, or None when it is not a partition's."""
    topic, dash, index = folder.rpartition("-")
    if not dash or not topic or not (index.isascii() and index.isdigit()):
        return None
    if len(index) > 10 or str(int(index)) != index:  # int32, and one way to write it
        return None
    return topic, int(index)


def leader_epochs(files: Files, directory: str) -> list[tuple[int, Offset]]:
    """Each leader epoch of a partition and where it begins; empty when nothing is known."""
    rows = _rows(files, directory, LEADER_EPOCHS, columns=2)
    epochs = [(int(epoch), Offset(int(offset))) for epoch, offset in rows]
    for epoch, _ in epochs:
        if epoch > _EPOCH_MAX:
            raise Broken(f"{directory}/{LEADER_EPOCHS}: epoch {epoch}, expected an int32")
    for (epoch, begin), (following, behind) in pairwise(epochs):
        if epoch >= following or begin > behind:
            raise Broken(
                f"{directory}/{LEADER_EPOCHS}: epoch {epoch} from offset {begin} is followed by "
                f"epoch {following} from offset {behind}, expected both to rise"
            )
    return epochs


def write_leader_epochs(files: Files, directory: str, epochs: list[tuple[int, Offset]]) -> None:
    lines = [f"{epoch} {offset}" for epoch, offset in epochs]
    _write_rows(files, directory, LEADER_EPOCHS, lines)


def start_offsets(files: Files, directory: str) -> dict[tuple[str, int], Offset]:
    """Where partitions begin, for those that begin behind their first file's name."""
    return _offsets(files, directory, START_OFFSETS)


def recovery_points(files: Files, directory: str) -> dict[tuple[str, int], Offset]:
    """Up to which offset each partition has been synced, as far as that was noted."""
    return _offsets(files, directory, RECOVERY_POINTS)


def write_recovery_points(
    files: Files, directory: str, points: Mapping[tuple[str, int], Offset]
) -> None:
    _write_offsets(files, directory, RECOVERY_POINTS, points)


def holes(files: Files, directory: str) -> dict[tuple[Offset, Offset], None]:
    """The offsets that are missing between segments, and may be: first, and the one behind."""
    rows = _rows(files, directory, HOLES, columns=2)
    return {(Offset(int(first)), Offset(int(behind))): None for first, behind in rows}


def write_holes(files: Files, directory: str, known: Iterable[tuple[Offset, Offset]]) -> None:
    lines = [f"{first} {behind}" for first, behind in known]
    _write_rows(files, directory, HOLES, lines)


def move_start_offsets(
    files: Files,
    directory: str,
    before: Mapping[tuple[str, int], Offset],
    starts: Mapping[tuple[str, int], Offset],
) -> None:
    """Let logs begin at `starts`, where they have begun at `before`. Raises StorageError, and then
    a restart finds the former starts, also behind a loss of power; or UnsettledError where it may
    find either, as the disk has taken both names and vouches for none.
    """
    reason = f"{directory}/{START_OFFSETS}: starts not moved"
    try:
        write_start_offsets(files, directory, starts)
    except UnsyncedError as error:
        try:
            write_start_offsets(files, directory, before)
        except OSError as worse:
            raise UnsettledError(f"{reason}: {error}; nor moved back: {worse}") from worse
        raise StorageError(f"{reason}: {error}") from error
    except OSError as error:
        raise StorageError(f"{reason}: {error}") from error


def write_start_offsets(
    files: Files, directory: str, starts: Mapping[tuple[str, int], Offset]
) -> None:
    """Beside a partition's segments, or once for the logs of a directory."""
    _write_offsets(files, directory, START_OFFSETS, starts)


def topic_id(files: Files, directory: str) -> TopicId | None:
    """The topic that a partition's folder belongs to, or None when the file is not there."""
    content = read_whole(files, directory, PARTITION_METADATA)
    if not content:  # a crash of Kafka may leave it empty
        return None
    try:
        fields = dict(line.partition(": ")[::2] for line in content.decode().splitlines())
        return TopicId(uuid_bytes(fields["topic_id"]))
    except (KeyError, ValueError) as error:
        raise Broken(f"{directory}/{PARTITION_METADATA}: no topic id: {content!r}") from error


def write_topic_id(files: Files, directory: str, topic: TopicId) -> None:
    content = f"version: 0\ntopic_id: {uuid_text(topic)}"
    replace_whole(files, directory, PARTITION_METADATA, content.encode())


def _offsets(files: Files, directory: str, name: str) -> dict[tuple[str, int], Offset]:
    rows = _rows(files, directory, name, columns=3)
    return {(topic, int(index)): Offset(int(offset)) for topic, index, offset in rows}


def _write_offsets(
    files: Files, directory: str, name: str, offsets: Mapping[tuple[str, int], Offset]
) -> None:
    lines = [f"{topic} {index} {offset}" for (topic, index), offset in offsets.items()]
    _write_rows(files, directory, name, lines)


def _rows(files: Files, directory: str, name: str, columns: int) -> list[list[str]]:
    content = read_whole(files, directory, name)
    if content is None:
        return []
    lines = content.decode("utf-8", "replace").split("\n")
    rows = [line.split(" ") for line in lines[2:] if line]
    right = (
        lines[0] == "0"
        and lines[1:2] == [str(len(rows))]
        and all(
            len(row) == columns and all(_is_number(field) for field in row[columns - 2 :])
            for row in rows
        )
    )
    if not right:
        raise Broken(f"{directory}/{name}: not a checkpoint file: {content[:200]!r}")
    return rows


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _write_rows(files: Files, directory: str, name: str, lines: list[str]) -> None:
    content = "\n".join(["0", str(len(lines)), *lines, ""])
    replace_whole(files, directory, name, content.encode())
