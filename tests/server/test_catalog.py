# SPDX-License-Identifier: Apache-2.0
"""Topics that survive, names that are refused, and who leads what."""

import json
from pathlib import Path

import pytest
from tests.observer import RecordingObserver

from kohort.errors import ApiError, Broken, ErrorCode, StorageError
from kohort.server import catalog as module
from kohort.server.catalog import Catalog, MemoryStore, Topic, check_topic_name
from kohort.server.partitions.logs import CATALOG_COPY, CATALOG_FILE, DirectoryStore
from kohort.server.scram import ScramCredential
from kohort.sim.disk import SimulatedFiles
from kohort.storage.files import replace_whole
from kohort.terms import TopicId


def topic(name="orders", partitions=3, **more):
    return Topic(
        name=name,
        topic_id=more.pop("topic_id", TopicId(name.encode().ljust(16, b"-"))),
        partitions=partitions,
        replication_factor=more.pop("replication_factor", 1),
        **more,
    )


def no_racks(_topic):
    return ()


def opened(store=None):
    return Catalog(store or MemoryStore(), lambda: "cluster-1", RecordingObserver())


def change(catalog, changes):
    """Make changes in a draft, write them down, and let them count."""
    draft = catalog.draft()
    changes(draft)
    catalog.save(draft)
    catalog.become(draft)


def producer_id(catalog):
    """The next id; more are reserved when they are used up."""
    found = catalog.next_producer_id()
    if found is None:
        change(catalog, lambda draft: draft.reserve_producer_ids())
        found = catalog.next_producer_id()
    return found


OLDER = {  # each written by the Kohort of its time, with what it had to write
    "without-checksum": (1, False, False),
    "with-checksum": (2, False, False),
    "rules": (2, True, False),
    "credentials": (2, True, True),
}


@pytest.mark.parametrize("name", OLDER)
def test_a_catalog_of_an_older_kohort_is_read_whole(name):
    version, rules, credentials = OLDER[name]
    text = (Path(__file__).parent / "catalogs" / f"{name}.json").read_bytes()
    assert json.loads(text)["version"] == version
    store = MemoryStore()
    store.content = text

    catalog = opened(store)

    assert catalog.cluster_id == "cluster-1"
    assert {name: topic.partitions for name, topic in catalog.by_name.items()} == {"orders": 3}
    assert catalog.by_name["orders"].configs == {"retention.ms": "1000"}
    assert [one.name for one in catalog.deleting] == ["going"]
    assert bool(catalog.acls) is bool(catalog.broker_configs) is rules
    assert bool(catalog.credentials) is credentials
    catalog.create(topic("more"))
    assert json.loads(store.content)["version"] == 4
    again = opened(store)
    assert (again.acls, again.credentials) == (catalog.acls, catalog.credentials)
    assert list(again.by_name) == ["orders", "more"]


def newer(store, **more):
    """The catalog of a Kohort that is yet to be written."""
    catalog = opened(store)
    catalog.create(topic("a"))
    content = json.loads(store.content) | {"version": 5, "checksum": "of its own"} | more
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    "more", [{}, {"quotas": [1]}, {"topics": {"a": "another shape"}}, {"cluster_id": None}]
)
def test_a_catalog_of_a_newer_kohort_is_refused_in_one_line_and_left_alone(more):
    files = SimulatedFiles()
    files.make_directory("/data")
    store = MemoryStore()
    text = newer(store, **more)
    replace_whole(files, "/data", CATALOG_FILE, text)
    replace_whole(files, "/data", CATALOG_COPY, store.content)  # older, and whole
    before = {path: bytes(file.now) for path, file in files.files.items()}

    with pytest.raises(StorageError) as raised:
        opened(DirectoryStore("/data", files, RecordingObserver()))

    assert str(raised.value) == (
        "/data/kohort.catalog.json has version 5, expected 4 at most: a newer Kohort has written "
        "it, and only that one can go on with it"
    )
    assert {path: bytes(file.now) for path, file in files.files.items()} == before


def test_a_version_that_is_a_flipped_bit_is_damage():
    files = SimulatedFiles()
    files.make_directory("/data")
    store = MemoryStore()
    opened(store).create(topic("a"))
    replace_whole(
        files, "/data", CATALOG_FILE, store.content.replace(b'"version": 4', b'"version": 7')
    )
    replace_whole(files, "/data", CATALOG_COPY, store.content)
    told = RecordingObserver()
    catalog = Catalog(DirectoryStore("/data", files, told), lambda: "x", told)
    assert list(catalog.by_name) == ["a"]
    assert "is used instead" in told.warnings[0]


FIELDS_OF_VERSION_4 = {
    "_Content": "version cluster_id checksum next_producer_id topics deleting broker_configs acls "
    "scram_credentials decoy_secret",
    "_Entry": "name topic_id partitions replication_factor configs assignments",
    "Acl": "resource_type resource_name pattern_type principal host operation permission_type",
}


def test_a_field_that_is_added_raises_the_version():
    """An older Kohort calls what it does not know damaged, unless the version tells it."""
    found = {
        name: " ".join(getattr(module, name).__struct_fields__) for name in FIELDS_OF_VERSION_4
    }
    found["ScramCredential"] = " ".join(ScramCredential.__struct_fields__)
    assert module._VERSION == 4
    assert found == FIELDS_OF_VERSION_4 | {
        "ScramCredential": "user mechanism iterations salt stored_key server_key"
    }


def test_what_was_changed_is_there_after_a_restart():
    store = MemoryStore()
    catalog = opened(store)
    catalog.create(topic("a", configs={"retention.ms": "1"}, assignments={0: [2, 1]}))
    catalog.create(topic("b"))
    change(catalog, lambda draft: draft.put(topic("b", partitions=9)))

    again = Catalog(store, lambda: "another", RecordingObserver())

    assert again.cluster_id == "cluster-1"
    assert again.by_name == catalog.by_name
    assert list(again.by_name) == ["a", "b"]
    assert again.by_name["b"].partitions == 9
    assert again.by_id[topic("a").topic_id].configs == {"retention.ms": "1"}


def test_a_topic_is_remembered_until_its_logs_are_gone():
    """A crash between the two must not bring old records back under a new topic of the name."""
    store = MemoryStore()
    catalog = opened(store)
    catalog.create(topic("a"))
    change(catalog, lambda draft: draft.delete(topic("a")))

    assert not catalog.by_name
    assert [one.name for one in opened(store).deleting] == ["a"]
    change(catalog, lambda draft: draft.deleted(topic("a")))
    assert not opened(store).deleting


def test_the_image_changes_only_with_the_topics():
    catalog = opened()
    before = catalog.image(no_racks)
    assert catalog.image(no_racks) is before

    catalog.create(topic("a", partitions=2))

    assert catalog.image(no_racks) is not before
    assert catalog.image(no_racks).by_name["a"].partitions == 2
    assert catalog.image(no_racks).by_id[topic("a").topic_id].name == "a"


class FullStore(MemoryStore):
    full = False

    def save(self, content):
        if self.full:
            raise StorageError("no space left")
        super().save(content)


def test_a_change_that_cannot_be_stored_did_not_happen():
    store = FullStore()
    catalog = opened(store)
    catalog.create(topic("a"))
    given = producer_id(catalog)
    store.full = True

    with pytest.raises(StorageError):
        catalog.create(topic("b"))
    with pytest.raises(StorageError):
        change(catalog, lambda draft: draft.delete(topic("a")))

    assert list(catalog.by_name) == ["a"]
    assert not catalog.deleting
    assert catalog.next_producer_id() == given + 1


def test_producer_ids_are_never_given_twice():
    store = FullStore()
    catalog = opened(store)
    first = [producer_id(catalog) for _ in range(1001)]
    after_a_crash = producer_id(opened(store))

    assert first == list(range(1001))
    assert after_a_crash == 2000


def test_a_block_that_cannot_be_reserved_gives_no_id():
    store = FullStore()
    catalog = opened(store)
    store.full = True

    with pytest.raises(StorageError):
        producer_id(catalog)
    store.full = False
    assert producer_id(catalog) == 0


@pytest.mark.parametrize("content", [b"", b"{}", b'{"version": 4, "cluster_id": "x"}', b"\xff"])
def test_a_damaged_catalog_is_an_error(content):
    store = MemoryStore()
    store.content = content

    with pytest.raises(Broken, match="catalog of topics"):
        opened(store)


def test_ids_that_a_log_holds_are_not_given_out():
    store = MemoryStore()
    catalog = opened(store)
    catalog.note_producer_id(4711)
    catalog.note_producer_id(7)
    catalog.note_producer_id(1 << 62)  # some client's invention
    assert producer_id(catalog) == 4712
    assert producer_id(opened(store)) == 5712


@pytest.fixture
def kept():
    """A catalog on a disk; opening it again is a restart."""
    disk = SimulatedFiles()
    disk.make_directory("/data")

    def open_one():
        told = RecordingObserver()
        return Catalog(DirectoryStore("/data", disk, told), lambda: "cluster-1", told), told

    catalog, _ = open_one()
    catalog.create(topic("a", configs={"cleanup.policy": "compact"}))
    assert producer_id(catalog) == 0
    return disk, open_one


def test_every_flipped_bit_of_the_catalog_is_seen(kept):
    disk, open_one = kept
    before, _ = open_one()
    whole = bytes(disk.files[f"/data/{CATALOG_FILE}"].now)
    for position in range(len(whole)):
        disk.flip(f"/data/{CATALOG_FILE}", position, bit=position % 7)
        catalog, told = open_one()
        assert catalog.by_name == before.by_name
        assert catalog.cluster_id == before.cluster_id
        if whole[position : position + 1].strip():
            assert len(told.warnings) == 1, position
            assert f"/data/{CATALOG_FILE}" in told.warnings[0]
            assert f"/data/{CATALOG_COPY} is used instead" in told.warnings[0]
        replace_whole(disk, "/data", CATALOG_FILE, whole)
        replace_whole(disk, "/data", CATALOG_COPY, whole)


def test_the_copy_stands_in_for_a_catalog_that_is_gone(kept):
    disk, open_one = kept
    disk.unlink(f"/data/{CATALOG_FILE}")
    catalog, told = open_one()
    assert catalog.by_name["a"].configs == {"cleanup.policy": "compact"}
    assert told.warnings[0].startswith(f"/data/{CATALOG_FILE} is missing; /data/{CATALOG_COPY} is")
    assert producer_id(catalog) > 2000, "the copy may be older than what was given out last"
    _, told = open_one()
    assert not told.warnings


def test_what_is_damaged_is_set_aside(kept):
    disk, open_one = kept
    replace_whole(disk, "/data", CATALOG_FILE, b"{}")
    open_one()
    assert bytes(disk.files[f"/data/{CATALOG_FILE}.damaged"].now) == b"{}"


def test_without_any_copy_the_error_names_the_files(kept):
    disk, open_one = kept
    for name in (CATALOG_FILE, CATALOG_COPY):
        replace_whole(disk, "/data", name, b"{}")
    with pytest.raises(Broken) as caught:
        open_one()
    assert f"/data/{CATALOG_FILE} cannot be read" in str(caught.value)
    assert f"/data/{CATALOG_COPY} cannot be read" in str(caught.value)


def test_a_catalog_without_checksum_or_copy_is_taken_and_gets_both(kept):
    disk, open_one = kept
    text = bytes(disk.files[f"/data/{CATALOG_FILE}"].now).decode()
    older = "\n".join(line for line in text.splitlines() if "checksum" not in line)
    older = older.replace('"version": 4', '"version": 1')
    replace_whole(disk, "/data", CATALOG_FILE, older.encode())
    disk.unlink(f"/data/{CATALOG_COPY}")
    catalog, told = open_one()
    assert list(catalog.by_name) == ["a"]
    assert not told.warnings
    assert "checksum" in text
    assert disk.files[f"/data/{CATALOG_COPY}"].now == disk.files[f"/data/{CATALOG_FILE}"].now


def test_a_copy_that_cannot_be_written_is_told_and_hinders_nothing(kept):
    disk, open_one = kept
    catalog, told = open_one()
    disk.faults["open", f"/data/{CATALOG_COPY}"] = 28
    catalog.create(topic("b"))
    assert "is older now" in told.warnings[0]
    again, _ = open_one()
    assert list(again.by_name) == ["a", "b"]


def test_to_make_a_topic_of_a_name_that_is_taken_is_a_bug():
    catalog = opened()
    catalog.create(topic("a"))
    with pytest.raises(Broken):
        catalog.draft().put(topic("a", topic_id=TopicId(bytes(16))))


def test_a_draft_counts_partitions_and_knows_whether_it_differs():
    draft = opened().draft()
    assert (draft.partitions, draft.changed) == (0, False)
    draft.put(topic("a", partitions=3))
    draft.put(topic("a", partitions=5))
    draft.put(topic("b"))
    scratch = draft.scratch()
    scratch.delete(scratch.by_name["b"])
    assert (scratch.partitions, draft.partitions, draft.changed) == (5, 8, True)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "__consumer_offsets", "x" * 249, "..."])
def test_names_that_topics_may_have(name):
    check_topic_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "x" * 250, "a b", "größe", "a/b", "a\n", "__cluster_metadata"]
)
def test_names_that_topics_may_not_have(name):
    with pytest.raises(ApiError) as caught:
        check_topic_name(name)

    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("a.b", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("a_b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_names_that_are_taken(name, code):
    catalog = opened()
    catalog.create(topic("a.b"))

    with pytest.raises(ApiError) as caught:
        catalog.draft().refuse_name(name)
    assert caught.value.code is code


def test_leaders_are_spread_and_stay():
    nodes = (1, 2, 3)
    one = topic("orders", partitions=6, replication_factor=2)

    leaders = [one.leader(index, nodes) for index in range(6)]

    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]
    for index in range(6):
        replicas = one.replicas(index, nodes)
        assert replicas[0] == leaders[index]
        assert len(set(replicas)) == 2


def test_replicas_that_somebody_chose_count_while_their_nodes_exist():
    one = topic("orders", assignments={0: [3, 1]}, replication_factor=2)

    assert one.replicas(0, (1, 2, 3)) == [3, 1]
    assert one.replicas(0, (1,)) == [1]
    assert one.leader(0, (1,)) == 1


def test_internal_topics_are_known_by_name():
    assert topic("__consumer_offsets").is_internal
    assert not topic("orders").is_internal
