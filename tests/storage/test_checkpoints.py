# SPDX-License-Identifier: Apache-2.0
import pytest
from tests import golden_logs

from kohort.errors import Broken
from kohort.storage import checkpoints
from kohort.storage.files import DiskFiles, replace_whole


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("topic-0", ("topic", 0)),
        ("a-b-12", ("a-b", 12)),
        ("__consumer_offsets-49", ("__consumer_offsets", 49)),
        ("topic", None),
        ("-1", None),
        ("topic-", None),
        ("topic-x", None),
        ("topic-0.00ff-delete", None),
    ],
)
def test_names_of_folders(name, place):
    assert checkpoints.split_name(name) == place


def test_leader_epochs(tmp_path):
    files, folder = DiskFiles(), str(tmp_path)
    assert checkpoints.leader_epochs(files, folder) == []
    checkpoints.write_leader_epochs(files, folder, [(0, 0), (3, 17)])
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n3 17\n"
    assert checkpoints.leader_epochs(files, folder) == [(0, 0), (3, 17)]


def test_start_offsets(tmp_path):
    files = DiskFiles()
    folder = f"{tmp_path}/a-b-3"
    files.make_directory(folder)
    checkpoints.write_start_offsets(files, folder, {("a-b", 3): 12})
    assert (tmp_path / "a-b-3" / checkpoints.START_OFFSETS).read_text() == "0\n1\na-b 3 12\n"
    assert checkpoints.start_offsets(files, folder) == {("a-b", 3): 12}


def test_topic_ids(tmp_path):
    files, folder = DiskFiles(), str(tmp_path)
    assert checkpoints.topic_id(files, folder) is None
    checkpoints.write_topic_id(files, folder, bytes(range(16)))
    text = (tmp_path / "partition.metadata").read_text()
    assert text == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert checkpoints.topic_id(files, folder) == bytes(range(16))


@pytest.mark.parametrize("text", ["1\n0\n", "0\n2\n0 0\n", "0\n1\n0\n", "0\n1\na b\n", "junk", ""])
def test_what_is_no_checkpoint_is_refused(text, tmp_path):
    files = DiskFiles()
    replace_whole(files, str(tmp_path), "leader-epoch-checkpoint", text.encode())
    with pytest.raises(Broken, match="not a checkpoint file"):
        checkpoints.leader_epochs(files, str(tmp_path))


@pytest.mark.parametrize("text", ["version: 0\n", "topic_id: short", "junk"])
def test_what_names_no_topic_is_refused(text, tmp_path):
    files = DiskFiles()
    replace_whole(files, str(tmp_path), "partition.metadata", text.encode())
    with pytest.raises(Broken, match="no topic id"):
        checkpoints.topic_id(files, str(tmp_path))


@pytest.mark.parametrize("name", golden_logs.NAMES)
def test_files_of_a_real_broker(name, tmp_path):
    files = DiskFiles()
    folder = golden_logs.unpack(name, tmp_path)
    assert golden_logs.partitions(folder)
    for path in golden_logs.partitions(folder):
        found = checkpoints.topic_id(files, str(path))
        content = (path / "partition.metadata").read_bytes()
        epochs = checkpoints.leader_epochs(files, str(path))
        written = (path / "leader-epoch-checkpoint").read_bytes()
        checkpoints.write_topic_id(files, str(path), found)
        checkpoints.write_leader_epochs(files, str(path), epochs)
        assert (path / "partition.metadata").read_bytes() == content
        assert (path / "leader-epoch-checkpoint").read_bytes() == written
    assert checkpoints.start_offsets(files, str(folder)) == {}
