# SPDX-License-Identifier: Apache-2.0
"""What another version of the broker has written is read, and goes on to be used."""

import msgspec
import pytest
from tests.sim.older_directories import FOLDER, Archivist, played, restore

from kohort.records import schemas
from kohort.server import catalog
from kohort.sim.run import simulate

ARCHIVES = sorted(FOLDER.glob("*.tar.xz"))
SEEDS = (4, 5, 7)  # without short lifetimes: what is archived must not expire


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.xz"))
@pytest.mark.parametrize("seed", SEEDS)
def test_what_an_older_version_has_left_is_there_after_a_run_with_faults(path, seed):
    kept = {}

    def prepare(world):
        assert "offsets.retention.minutes" not in world.draw.settings
        kept["world"], kept["truth"] = world, restore(path, world.disk)

    outcome = simulate(seed, 0.5, prepare=prepare, without=frozenset({"bit flip"}))
    assert not outcome.broken, outcome.line()
    found = played(kept["world"], Archivist(kept["world"].stage).read())
    assert found["offsets"] == kept["truth"]["offsets"]
    for place, values in kept["truth"]["records"].items():
        if "-keys-" in place:  # cleaned meanwhile: of each key the last one is there
            last = dict(sorted(values.items(), key=lambda item: int(item[0])))
            assert found["records"][place].items() <= last.items()
            assert found["records"][place]
        else:
            assert found["records"][place] == values


def test_there_is_a_directory_of_some_version():
    assert ARCHIVES


CATALOG = {
    "_Content": "version cluster_id checksum next_producer_id topics deleting broker_configs acls"
    " scram_credentials",
    "_Entry": "name topic_id partitions replication_factor configs assignments",
}
CATALOG_VERSION = 2


def test_a_catalog_with_other_fields_has_another_version():
    """An older broker must say that it is newer, and not that it is damaged. Whoever raises the
    version writes down here what it has then, and archives a directory of it.
    """
    fields = {
        name: " ".join(field.name for field in msgspec.structs.fields(getattr(catalog, name)))
        for name in CATALOG
    }
    version = catalog._VERSION
    assert version >= CATALOG_VERSION
    assert fields == CATALOG or version > CATALOG_VERSION


def test_records_of_the_newest_layouts_are_what_an_archive_has():
    """A record with another layout has another version, or another number."""
    layouts = {
        name: " ".join(field.name for field in getattr(schemas, name).__fields__)
        for name in ("OffsetCommitValue", "GroupMetadataValue", "GroupSettingsValue")
    }
    assert layouts == {
        "OffsetCommitValue": "offset leader_epoch metadata commit_timestamp expire_timestamp"
        " topic_id",
        "GroupMetadataValue": "protocol_type generation protocol leader current_state_timestamp"
        " members",
        "GroupSettingsValue": "settings",
    }
