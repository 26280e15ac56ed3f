# SPDX-License-Identifier: Apache-2.0
"""What a report was made of, as it says itself: a report that is up to date is not drawn again."""

from kohort.pipeline.format.code import code
from kohort.pipeline.format.manifest import Manifest
from kohort.pipeline.stores.places import Folder

FILE = "report.html"
_HEAD_BYTES = 4096


def mark_of(manifest: Manifest) -> str:
    """The mark of a report on all groups; empty where nobody could tell it from another."""
    maker = code()
    if maker is None or manifest.basis is None:
        return ""
    return f"{manifest.number} {manifest.basis.files} {maker}"


def up_to_date_or_none(directory: Folder, manifest: Manifest) -> Folder | None:
    """The report in a directory of tables, if it is of just these tables and of all groups."""
    mark, path = mark_of(manifest), directory / FILE
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return None
    return path if mark and mark.encode() in head else None
