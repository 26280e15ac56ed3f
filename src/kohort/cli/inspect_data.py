# SPDX-License-Identifier: Apache-2.0
"""`kohort inspect data`: whether the logs of a broker are whole, and how to make them so."""

from argparse import ArgumentParser, Namespace
from collections.abc import Container
from typing import TYPE_CHECKING, Any, ClassVar

from kohort.cli.command import FAILED, OK, Command, print_result
from kohort.cli.render import Output
from kohort.errors import Broken, StorageError
from kohort.figures import counted

if TYPE_CHECKING:
    from kohort.storage.files import Files
    from kohort.storage.inspection import Damage, LogInspection
    from kohort.terms import TopicId

_HERE = "."  # the directory itself, as `storage.inspection` names it


class InspectData(Command):
    """`kohort inspect data`."""

    help: ClassVar[str] = "check the logs in a data directory, and mend them"
    notes: ClassVar[str] = (
        "Every batch of every log is read. Without --repair nothing is changed, and a broker may "
        "be running, though what it is writing may look torn. With --repair no broker may be "
        "running: what is damaged is given up, after the file was copied to <name>.damaged. "
        "The exit code is 1 when something is damaged and stays so, or when there are no logs."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort inspect data ./data",
        "kohort inspect data ./data --json",
        "kohort inspect data ./data --repair",
    )

    def configure(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", metavar="DIR", help="the data directory of a broker")
        parser.add_argument(
            "--repair",
            action="store_true",
            help="give up what is damaged, so that the rest is served",
        )
        parser.add_argument(
            "--format",
            choices=("table", "json"),
            default="table",
            help="table for people (default), json for programs",
        )
        parser.add_argument(
            "--json",
            action="store_const",
            const="json",
            dest="format",
            help="the same as --format json",
        )

    def main(self, args: Namespace) -> int:
        def show(output: Output) -> int:
            try:
                return _inspect(args.directory.rstrip("/") or "/", args.repair, output)
            except OSError as error:
                raise StorageError(f"{args.directory} cannot be inspected: {error}") from error

        return print_result(show, args.format)


def _inspect(path: str, mend: bool, output: Output) -> int:  # noqa: FBT001  (as the option says)
    from pathlib import Path

    from kohort.storage.directory import LOCK
    from kohort.storage.files import DiskFiles, ReadOnlyFiles, is_in_use

    if not Path(path).is_dir():
        raise StorageError(f"{path} is no directory")
    if not mend:
        return _show(
            output, *inspect_folders(ReadOnlyFiles(), path), in_use=is_in_use(path), mended=False
        )
    files = DiskFiles()
    try:
        lock = files.lock(f"{path}/{LOCK}")
    except BlockingIOError as error:
        raise StorageError(f"{path} is in use by a broker, expected one that is stopped") from error
    try:
        return _show(output, *inspect_folders(files, path, mend=True), in_use=False, mended=True)
    finally:
        lock.close()


def inspect_folders(
    files: "Files", path: str, *, mend: bool = False
) -> tuple[list["LogInspection"], dict[str, str]]:
    """What was found, and for partitions that could not be looked at or mended why."""
    from kohort.storage.inspection import inspect_all, inspect_directory
    from kohort.storage.repair import repair, repair_directory

    here = inspect_directory(files, path)
    ids, lost = _topics(files, path)
    found = list(inspect_all(files, path, _folders(files, path, ids), ids, ids))
    if not found and not here.damages and not lost:
        raise StorageError(f"{path} holds no logs of partitions")
    failed = {folder.name: folder.error for folder in found if folder.error}
    for folder in found:
        if mend and folder.damages:
            try:
                repair(files, path, folder)
            except OSError as error:
                failed[folder.name] = str(error)
    if mend and here.damages:
        try:
            mended = [
                folder for folder in found if folder.name not in failed and not folder.missing
            ]
            repair_directory(files, path, here, mended)
        except OSError as error:
            failed[here.name] = str(error)
    if lost is not None:
        here.damages.append(lost)
        if mend:
            failed[here.name] = (
                "the catalog of topics has to be brought back from a backup; where both its files "
                "are moved away, topics are taken in from their folders, with default settings"
            )
    return ([here] if here.damages else []) + found, failed


def _folders(files: "Files", path: str, topics: Container[str]) -> list[str]:
    """The names that stand for partitions: of topics of ours, and of what looks like others."""
    from kohort.storage.checkpoints import split_name
    from kohort.storage.directory import KAFKA_METADATA, is_partition

    found = []
    for name in files.names(path):
        place = split_name(name)
        if place is None or place[0] == KAFKA_METADATA:
            continue
        try:
            if place[0] in topics or is_partition(files, path, name):
                found.append(name)
        except OSError:
            found.append(name)  # its inspection says why
    return found


def _topics(files: "Files", path: str) -> "tuple[dict[str, TopicId], Damage | None]":
    """The topics that a broker of ours should find here, and what is wrong where nobody knows."""
    import logging

    from kohort.server.catalog import saved_topics
    from kohort.server.partitions.logs import CATALOG_FILE, DirectoryStore
    from kohort.storage.inspection import Damage
    from kohort.terms import Offset

    store = DirectoryStore(path, files, logging.getLogger("kohort.inspect"))
    try:
        return saved_topics(store.load()), None
    except Broken as error:
        reason = f"no copy of the catalog of topics can be read: {error}"
        return {}, Damage(CATALOG_FILE, 0, 0, Offset(0), Offset(0), 0, reason)


def _show(
    output: Output,
    found: "list[LogInspection]",
    failed: dict[str, str],
    *,
    in_use: bool,
    mended: bool,
) -> int:
    damaged = [folder for folder in found if folder.damages]
    if not output.is_table:
        output.json(
            {
                "in_use": in_use,
                "whole": not damaged and not failed,
                "repaired": mended and not failed,
                "partitions": [_fields(partition, failed) for partition in _partitions(found)],
                "damages": [
                    _damage_fields(damage)
                    for folder in found
                    if folder.name == _HERE
                    for damage in folder.damages
                ],
                "error": failed.get(_HERE),
            }
        )
    else:
        _print(output, found, failed, in_use=in_use, mended=mended)
    return FAILED if failed or (damaged and not mended) else OK


def _print(
    output: Output,
    found: "list[LogInspection]",
    failed: dict[str, str],
    *,
    in_use: bool,
    mended: bool,
) -> None:
    def state(folder: "LogInspection") -> str:
        if folder.error:
            return "unreadable"
        if not folder.damages:
            return "whole"
        return "repaired" if mended and folder.name not in failed else "damaged"

    headers = ("PARTITION", "STATE", "SEGMENTS", "BYTES", "BATCHES", "RECORDS", "START", "END")
    output.table(
        headers,
        [
            (
                partition.name,
                state(partition),
                partition.segments,
                partition.size_bytes,
                partition.batches,
                partition.records,
                partition.start,
                partition.end,
            )
            for partition in _partitions(found)
        ],
    )
    damages = [(folder.name, damage) for folder in found for damage in folder.damages]
    if damages:
        output.line()
        output.table(
            ("PARTITION", "FILE", "BYTE", "BYTES", "BATCHES", "OFFSETS", "REASON"),
            [
                (
                    name,
                    damage.file,
                    damage.position,
                    damage.size_bytes,
                    damage.batches,
                    _offsets(damage),
                    damage.reason,
                )
                for name, damage in damages
            ],
        )
    output.line()
    for folder in found:
        if folder.error:
            output.line(f"{folder.name} {folder.error}")
        elif folder.name in failed:
            output.line(f"{folder.name} is not repaired: {failed[folder.name]}")
    output.line(_summary(found, mended=mended))
    if in_use:
        output.line("A broker is running on this directory: what it is writing may look torn.")


def _partitions(found: "list[LogInspection]") -> "list[LogInspection]":
    return [folder for folder in found if folder.name != _HERE]


def _summary(found: "list[LogInspection]", *, mended: bool) -> str:
    damages = [(folder, damage) for folder in found for damage in folder.damages]
    total = len(_partitions(found))
    unreadable = sum(1 for folder in found if folder.error)
    if not damages and unreadable:
        return (
            f"{unreadable} of {counted(total, 'partition')} cannot be read, the others are whole."
        )
    if not damages:
        return "The one partition is whole." if total == 1 else f"All {total} partitions are whole."
    partitions = sum(1 for partition in _partitions(found) if partition.damages)
    which = f"{partitions} of {counted(total, 'partition')} {'is' if partitions == 1 else 'are'}"
    batches = sum(damage.batches for _, damage in damages)
    offsets = sum(
        max(0, damage.behind - max(damage.first, folder.expected_start))
        for folder, damage in damages
    )
    what = f"{counted(batches, 'batch', 'batches')} and up to {counted(offsets, 'record')}"
    if mended:
        return f"{which} repaired; {what} were given up."
    return f"{which} damaged; --repair would give up {what}, and nothing has been changed."


def _offsets(damage: "Damage") -> str:
    if damage.behind <= damage.first:
        return f"{damage.first}-" if damage.size_bytes else ""
    return f"{damage.first}-{damage.behind - 1}"


def _fields(folder: "LogInspection", failed: dict[str, str]) -> dict[str, Any]:
    return {
        "partition": folder.name,
        "whole": not folder.damages and not folder.error,
        "error": failed.get(folder.name),
        "segments": folder.segments,
        "bytes": folder.size_bytes,
        "batches": folder.batches,
        "records": folder.records,
        "start_offset": folder.start,
        "end_offset": folder.end,
        "synced_offset": folder.synced,
        "damages": [_damage_fields(damage) for damage in folder.damages],
    }


def _damage_fields(damage: "Damage") -> dict[str, Any]:
    return {
        "file": damage.file,
        "position": damage.position,
        "bytes": damage.size_bytes,
        "first_offset": damage.first,
        "next_offset": damage.behind,
        "batches": damage.batches,
        "reason": damage.reason,
    }
