# SPDX-License-Identifier: Apache-2.0
"""Samples of the ends of user topics as parts of the directory of tables: added without Spark."""

from collections.abc import Iterable, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from kohort.pipeline.format.manifest import Manifest, Part, to_join
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.rollup.batch_fold import folded
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.schemas.rollup_tiers import ONE_MOMENT
from kohort.pipeline.sources.samples import NOTHING, Since, last_seen, newest
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.layout import END
from kohort.pipeline.stores.places import Folder

MOST_PARTS = 20
"""So many small files of end offsets become one."""

SAMPLE = ["sampled_at", "topic", "topic_partition", "end_offset", "origin"]
"""What makes a sample: rows that are equal in these are the same one."""


def new_samples(writer: Writer, manifest: Manifest, samples: pa.Table) -> tuple[Part, ...]:
    """The samples that are not there yet, as a part; none where nothing new is known. What was left
    out as it got old is not there (see
    `sample_rollup.without_known_samples`).
    """
    fresh = samples
    if manifest.end_offsets and samples.num_rows:
        files = _files(writer.directory, manifest)
        times = pc.min_max(samples["sampled_at"]).as_py()
        at = pc.field("sampled_at")
        near = (at >= times["min"]) & (at <= times["max"])
        there = parquet.dataset(files, END_OFFSETS.arrow).to_table(SAMPLE, filter=near)
        fresh = samples.join(there, SAMPLE, join_type="left anti")
    others = [name for name in END_OFFSETS.names if name not in SAMPLE]
    once = fresh.group_by(SAMPLE, use_threads=False).aggregate(
        [(column, "first") for column in others]
    )
    if not once.num_rows:
        return ()
    columns = [
        once.column(name if name in SAMPLE else f"{name}_first") for name in END_OFFSETS.names
    ]
    return (merge_samples_into_part(writer, (), pa.table(columns, schema=END_OFFSETS.arrow)),)


def walk_positions(directory: Folder, manifest: Manifest) -> Since:
    """How far the folders of user topics were walked."""
    if not manifest.end_offsets:
        return NOTHING
    samples = parquet.dataset(_files(directory, manifest), END_OFFSETS.arrow)
    batches = samples.to_batches(filter=pc.field("origin") == "log")
    return last_seen(folded(batches, END_OFFSETS.arrow, newest))


def _files(directory: Folder, manifest: Manifest) -> list[str]:
    folders = [directory / part.path for part in manifest.end_offsets]
    return [str(file) for folder in folders for file in sorted(folder.glob("*.parquet"))]


def append_samples(writer: Writer, samples: pa.Table) -> None:
    """Add samples of end offsets, and flip; merges the small files once there are many."""
    manifest = writer.manifest
    small = small_parts(manifest)
    known = known_to_gold(manifest)
    manifest = with_samples_merged(writer, manifest, [part for part in small if part.path in known])
    merged = [part for part in small if part.path not in known]
    kept = tuple(old for old in manifest.end_offsets if old not in merged)
    part = merge_samples_into_part(writer, merged, samples)
    writer.publish(manifest.with_(end_offsets=(*kept, part)))


def merge_samples(writer: Writer) -> None:
    """Merge the small files of samples once there are many, and flip."""
    manifest = writer.manifest
    small = small_parts(manifest)
    known = known_to_gold(manifest)
    for is_known in (True, False):
        some = [part for part in small if (part.path in known) is is_known]
        manifest = with_samples_merged(writer, manifest, some)
    if manifest is not writer.manifest:
        writer.publish(manifest)


def known_to_gold(manifest: Manifest) -> set[str]:
    """The parts of samples that gold was computed from. Those that were added since stay apart from
    them: who computes gold again for the same moment has to do without.
    """
    return set() if manifest.progress is None else {*manifest.progress.samples}


def with_samples_merged(writer: Writer, manifest: Manifest, parts: Sequence[Part]) -> Manifest:
    """The manifest with one part in place of these, of which gold knows all or none."""
    if len(parts) < 2:
        return manifest
    part = merge_samples_into_part(writer, parts)
    gone = {old.path for old in parts}
    kept = tuple(old for old in manifest.end_offsets if old.path not in gone)
    progress = manifest.progress
    if progress is not None and gone <= {*progress.samples}:
        samples = (*(path for path in progress.samples if path not in gone), part.path)
        progress = msgspec.structs.replace(progress, samples=samples)
    return manifest.with_(end_offsets=(*kept, part), progress=progress)


def small_parts(manifest: Manifest) -> list[Part]:
    """Small files of samples that are not downsampled, where there are many."""
    dense = [part for part in manifest.end_offsets if part.step_us == ONE_MOMENT]
    return to_join(dense, MOST_PARTS)


def merge_samples_into_part(writer: Writer, parts: Iterable[Part], *more: pa.Table) -> Part:
    there = (
        parquet.folder_dataset(writer.directory / part.path, END_OFFSETS.arrow) for part in parts
    )
    whole = pa.concat_tables([*(samples.to_table() for samples in there), *more])
    name = f"{END}/{writer.new_name('')}"
    path = writer.directory / name
    path.mkdir(parents=True)
    parquet.write(whole, path / "samples.parquet", compression="zstd")
    return Part(path=name, rows=whole.num_rows)
