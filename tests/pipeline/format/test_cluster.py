# SPDX-License-Identifier: Apache-2.0
"""What a cluster is called: told once, and kept."""

import pytest

from kohort.pipeline.format.cluster import cluster_of, name
from kohort.pipeline.format.manifest import Manifest, TablesError
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.sources.log_position import Identity


def test_a_name_is_kept_and_another_one_refused(tmp_path):
    with Writer(tmp_path) as writer:
        name(writer, tmp_path, None)
        assert cluster_of(writer.manifest) is None
        name(writer, tmp_path, "west")
        writer.publish(writer.manifest)
    with Writer(tmp_path) as writer:
        name(writer, tmp_path, None)
        name(writer, tmp_path, "west")
        assert cluster_of(writer.manifest) == "west"
        with pytest.raises(TablesError, match="has the tables of cluster west, not of east: write"):
            name(writer, tmp_path, "east")


def test_a_name_says_something(tmp_path):
    with Writer(tmp_path) as writer, pytest.raises(TablesError, match="is ' ', expected some"):
        name(writer, tmp_path, " ")


def test_without_a_name_it_is_the_id():
    manifest = Manifest(identity=Identity("an-id", "t"))
    assert cluster_of(manifest) == "an-id"
    assert cluster_of(manifest.with_(cluster="west")) == "west"
