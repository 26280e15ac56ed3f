# SPDX-License-Identifier: Apache-2.0
"""A swap on HDFS counts once and as a whole: of many at once, after a crash or a lost answer at any
request, and where an answer comes late.
"""

import errno
import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest
from tests.pipeline.stores.faulty import Faulty, keys, once

from kohort.pipeline.format.manifest import TablesError, load_or_none
from kohort.pipeline.stores.failures import ConflictError, MissingError, StoreError
from kohort.pipeline.stores.hdfs import Hdfs
from kohort.pipeline.stores.name_node import NameNode
from kohort.pipeline.stores.places import place_of

pytestmark = [pytest.mark.java, pytest.mark.parametrize("server", ["hdfs"], indirect=True)]
MOST = 40  # requests that a swap may take


class Killed(BaseException):
    pass


def names(objects, folder):
    return sorted(one.path_suffix for one in objects.node.listing(folder).entries)


def at(number, fault):
    """A fault at the request of this number; and how many were asked."""
    asked = []

    def told(*_):
        asked.append(None)
        return fault if len(asked) == number + 1 else None

    return told, asked


def is_tidy(objects, key):
    """Nothing is there but what counts."""
    tag = objects.current(key).tag
    folder, _, name = key.rpartition("/")
    beside = [one for one in names(objects, folder) if one.startswith(f"{name}.")]
    return (names(objects, key), beside) == ([tag, f"current-{tag}"], [])


@contextmanager
def killed(request, *, done):
    """A process ends at a request, which the store has done or has not heard of."""
    left = itertools.count()
    tried = NameNode._tried

    def call(self, path, ask):
        if next(left) != request:
            return tried(self, path, ask)
        if done:
            with suppress(StoreError):
                tried(self, path, ask)
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NameNode, "_tried", call)
        yield


def swapped(objects, key, data):
    """By who has seen the newest."""
    try:
        tag = objects.current(key).tag
    except MissingError:
        tag = None
    return objects.swap(key, data, tag)


# One of each kind in every run of the tests, all in `make prove`.
SWAPPED = [
    pytest.param(False, marks=pytest.mark.prove, id="first"),
    pytest.param(True, id="later"),
]
FAULTS = [
    "lost",
    pytest.param("away", marks=pytest.mark.prove),
    pytest.param("cut", marks=pytest.mark.prove),
]


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("known", SWAPPED)
def test_killed_at_each_request(objects, key, known, done):
    for request in range(MOST):
        one = f"{key}-{request}"
        if known:
            objects.swap(one, b"before", None)
        tag = objects.current(one).tag if known else None
        ended = False
        with killed(request, done=done), suppress(Killed):
            objects.swap(one, b"mine", tag)
            ended = True
        try:
            found = objects.current(one).data
        except MissingError:
            found = None
        assert found in (b"mine", b"before" if known else None)
        assert found == b"mine" or not ended
        swapped(objects, one, b"next")
        assert objects.current(one).data == b"next"
        assert is_tidy(objects, one)
        if ended:
            break
    assert ended
    assert request >= 4


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("known", SWAPPED)
def test_each_answer_is_lost(server, objects, key, known, fault, quick):
    for request in range(MOST):
        one = f"{key}-{request}"
        tag = objects.swap(one, b"before", None) if known else None
        wrong, asked = at(request, fault)
        with server.failing(wrong):
            after = objects.swap(one, b"mine", tag)
        there = objects.current(one)
        assert (there.data, there.tag) == (b"mine", after)
        assert swapped(objects, one, b"next") == objects.current(one).tag
        assert is_tidy(objects, one)
        if len(asked) <= request:
            break
    assert request > 4


@pytest.mark.parametrize("fault", FAULTS)
def test_each_answer_is_lost_when_a_file_is_put(server, objects, key, fault, quick, tmp_path):
    (tmp_path / "data").write_bytes(b"0123456789" * 1000)
    for request in range(MOST):
        one = f"{key}-{request}/x"
        wrong, asked = at(request, fault)
        with (tmp_path / "data").open("rb") as data, server.failing(wrong):
            objects.put(one, data)
        assert objects.read_end(one, 1) == (10_000, b"9")
        if len(asked) <= request:
            break
    assert request > 1


@pytest.mark.parametrize(
    ("what", "fault"),
    [
        *itertools.product(["LISTSTATUS", "GETFILESTATUS", "data OPEN"], ["away", "cut", "half"]),
        *itertools.product(["OPEN"], ["away", "cut"]),  # its answer has no body
    ],
)
def test_an_answer_is_lost_when_it_is_read(server, objects, key, what, fault, quick):
    objects.swap(key, b"0123456789", None)
    objects.put(f"{key}-x", b"0123456789")
    with server.failing(once(what, fault)):
        there = [objects.current(key).data, objects.read_end(f"{key}-x", 4)]
    assert there == [b"0123456789", (10, b"6789")]


def test_of_many_at_once_each_that_is_told_so_has_swapped(objects, key):
    def add(thread):
        told = 0
        for _ in range(10):
            with suppress(ConflictError):
                there = objects.current(key)
                value = int(there.data.split()[0])
                objects.swap(key, f"{value + 1} by {thread}".encode(), there.tag)
                told += 1
        return told

    objects.swap(key, b"0", None)
    with ThreadPoolExecutor(4) as pool:
        told = sum(pool.map(add, range(4)))
    assert int(objects.current(key).data.split()[0]) == told > 0
    assert is_tidy(objects, key)


def test_of_many_that_begin_at_once_one_does(objects, key):
    def begin(number):
        with suppress(ConflictError):
            return objects.swap(key, str(number).encode(), None)

    with ThreadPoolExecutor(6) as pool:
        (tag,) = (one for one in pool.map(begin, range(6)) if one is not None)
    assert objects.current(key).tag == tag
    assert is_tidy(objects, key)


def test_who_begins_a_moment_too_late_changes_nothing(objects, key, monkeypatch):
    """A rename to where a folder is moves into it."""
    objects.swap(key, b"1", None)
    there = iter([False])
    asked = Hdfs._is_there
    is_there = lambda self, path: next(there, True) if path == key else asked(self, path)  # noqa: E731
    monkeypatch.setattr(Hdfs, "_is_there", is_there)
    with pytest.raises(ConflictError):
        objects.swap(key, b"other", None)
    assert objects.current(key).data == b"1"
    assert is_tidy(objects, key)


def test_what_comes_late_counts_for_nothing(objects, key):
    """A try whose answer was lost may still write."""
    first = objects.swap(key, b"1", None)
    second = objects.swap(key, b"2", first)
    objects.node.write(f"{key}/000002-", b"late")
    assert not objects.node.rename(f"{key}/current-{first}", f"{key}/current-000002-0a1b2c3d")
    assert objects.current(key).data == b"2"
    objects.swap(key, b"3", second)
    assert objects.current(key).data == b"3"
    assert is_tidy(objects, key)


def test_what_another_is_about_to_swap_stays(objects, key):
    first = objects.swap(key, b"1", None)
    second = objects.swap(key, b"2", first)
    aside = objects.node.write(f"{key}/000003-", b"3")
    objects._tidy(key, second)
    assert objects.node.read(aside) == b"3"


def test_who_reads_while_it_is_swapped_reads_again(objects, key, monkeypatch):
    tags = [objects.swap(key, b"1", None)]
    listing = NameNode.listing

    def listed(self, path):
        found = listing(self, path)
        if len(tags) == 1:
            tags.append(None)
            tags.append(objects.swap(key, b"2", tags[0]))
        return found

    monkeypatch.setattr(NameNode, "listing", listed)
    there = objects.current(key)
    assert (there.data, there.tag) == (b"2", tags[-1])


def test_folders_without_files_go_and_no_others(place, objects):
    for name in ("gold/lag/1/a", "gold/lag/1/b", "gold/lag/2/c", "gold/mine/x"):
        objects.put(f"{place.key}/{name}", b"x")
    objects.delete([f"{place.key}/gold/lag/1/{one}" for one in "abz"], place.key)
    assert names(objects, f"{place.key}/gold/lag") == ["2"]
    objects.delete([f"{place.key}/gold/lag/2/c"], place.key)
    assert names(objects, f"{place.key}/gold") == ["mine"]
    objects.delete([f"{place.key}/gold/mine/x"], place.key)
    assert names(objects, place.key) == []
    assert keys(place) == set()


def told(kind, text="why", status="403 Forbidden"):
    body = {"RemoteException": {"exception": kind, "message": f"{text}\nat x.java"}}
    return status, json.dumps(body).encode()


def test_which_of_the_name_nodes_is_active_is_found_and_remembered(server, place, quick):
    standby = Faulty(None)
    standby.told = lambda environ: (environ["PATH_INFO"], "")
    standby.fault = lambda *_: told("StandbyException")
    there = place_of(f"webhdfs://{standby.address},{server.address}/{place.key}")
    there.root.objects.put(f"{place.key}/x", b"1")
    assert place.root.objects.read(f"{place.key}/x") == b"1"
    there.root.objects.read(f"{place.key}/x")
    assert len(standby.asked) == 1
    assert str(there) == f"webhdfs://{standby.address},{server.address}/{place.key}"
    standby.close()


@pytest.mark.parametrize(
    ("answer", "words", "number"),
    [
        (("401 Unauthorized", b""), "wants Kerberos, which is not supported", errno.EACCES),
        (told("AccessControlException"), "AccessControlException: why$", errno.EACCES),
        (told("DSQuotaExceededException"), "DSQuotaExceededException: why$", errno.EIO),
        (told("SafeModeException"), "SafeModeException: why$", errno.EIO),
        (("404 Not Found", b"<html>"), "answered 404: Not Found", errno.EIO),
        (("200 OK", b"<html>"), "does not speak WebHDFS", errno.EIO),
    ],
)
def test_what_is_refused_is_told(server, place, objects, key, quick, answer, words, number):
    """And never taken for that there are no tables."""
    with server.failing(lambda *_: answer):
        with pytest.raises(StoreError, match=words) as raised:
            objects.swap(key, b"1", None)
        assert raised.value.errno == number
        assert str(raised.value).startswith(f"{server.start}{key}")
        with pytest.raises(TablesError, match="cannot be read"):
            load_or_none(place)


def test_who_one_is(objects, key, monkeypatch):
    objects.put(key, b"1")
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")
    assert objects.read(key) == b"1"
    with pytest.raises(StoreError, match="Permission denied: user=alice") as raised:
        objects.put(key, b"2")
    assert raised.value.errno == errno.EACCES


def test_a_safe_mode_ends(server, objects, key, quick):
    with server.failing(once("GETFILESTATUS", told("SafeModeException"))):
        objects.swap(key, b"1", None)
    assert objects.current(key).data == b"1"


def test_nobody_there(server, quick):
    with pytest.raises(TablesError, match=r"127\.0\.0\.1:1 does not answer: Connection refused"):
        load_or_none(place_of("webhdfs://127.0.0.1:1/tables"))


def test_tables_that_were_copied_there_are_not_taken_for_none(place, objects):
    objects.put(f"{place.key}/manifest.json", b"{}")
    with pytest.raises(TablesError, match="it is a file, expected a folder"):
        load_or_none(place)
    objects.put(f"{place.key}/other/manifest.json/x", b"{}")
    with pytest.raises(TablesError, match="a folder without a file current-"):
        load_or_none(place_of(f"{place}/other"))
