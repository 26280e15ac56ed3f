# SPDX-License-Identifier: Apache-2.0
"""Tables in a store without Spark: who writes, who is told, what counts, and what is removed."""

import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from tests.pipeline.stores.faulty import keys
from tests.tables.published import write

from kohort.pipeline.format.arrow_reader import GoneError, Tables
from kohort.pipeline.format.catalog import known_tables
from kohort.pipeline.format.manifest import Gold, TablesError, load, load_or_none
from kohort.pipeline.format.writer import BusyError, Writer
from kohort.pipeline.stores import lease, parquet
from kohort.pipeline.stores.places import place_of
from kohort.spark.streaming import MicroBatch
from kohort.spark.tables.ingest import Options

STATES = known_tables()["group_state"]
PROGRAM = (
    "import sys; from kohort.pipeline.format.writer import Writer\n"
    "with Writer(sys.argv[1]): print('locked', flush=True); sys.stdin.read()"
)


def rows(*groups):
    return [{"partition": 0, "group_id": group} for group in groups]


def flip(writer, *groups):
    part = write(writer, STATES, rows(*groups))
    gold = {STATES.name: Gold(columns="", parts=(part,))}
    writer.publish(writer.manifest.with_(gold=gold))
    return part


def groups(place):
    return Tables(str(place)).table(STATES.name).column("group_id").to_pylist()


def put(place, name, data=b"x"):
    place.root.objects.put(f"{place.key}/{name}", data)


def other_process(place):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def silent(monkeypatch):
    """As if every writer had been silent for long."""
    monkeypatch.setattr(lease, "LEASE_S", -1)


def test_what_is_flipped_counts_and_nothing_else(place):
    with Writer(place) as writer:
        write(writer, STATES, rows("never"))
        assert load_or_none(place) is None
        flip(writer, "a", "b")
        assert groups(place) == ["a", "b"]
        write(writer, STATES, rows("not yet"))
        assert groups(place) == ["a", "b"]


def test_nothing_is_listed_to_read(server, place):
    with Writer(place) as writer:
        part = flip(writer, "a")
    put(place, f"{part.path}/stray.parquet", b"of a task that was given up")
    del server.asked[:]
    assert groups(place) == ["a"]
    assert server.asked
    assert not [one for one in server.asked if server.is_listing(*one)]


def test_one_writes_at_a_time_and_others_are_told_who(place):
    with other_process(place) as other:
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(BusyError, match=rf"is being written by pid {other.pid} on \S+ since"):
            Writer(place)
        other.kill()
        other.wait()
        with Writer(place) as writer:  # a dead process of this machine is not waited for
            with pytest.raises(BusyError, match=f"pid {os.getpid()} "):
                Writer(place)
            flip(writer, "a")
    with Writer(place):
        pass
    with pytest.raises(TablesError, match="is not written any more"):
        writer.publish(writer.manifest)


def test_who_acts_for_a_writer_may_not_once_another_has_taken_over(place, monkeypatch):
    """A stream over Spark Connect goes on in the server when its client is gone."""
    first = Writer(place)
    acts_for = first.holder
    with Writer(place_of(str(place)), locked=False, acts_for=acts_for) as deputy:
        flip(deputy, "a")
    silent(monkeypatch)
    with Writer(place) as second:
        monkeypatch.undo()
        with pytest.raises(BusyError, match=rf"is being written by pid {os.getpid()} on \S+ since"):
            Writer(place_of(str(place)), locked=False, acts_for=acts_for)
        flip(second, "b")
    assert groups(place) == ["b"]
    with pytest.raises(BusyError):
        Writer(place_of(str(place)), locked=False, acts_for=acts_for)
    first.close()


def test_the_same_on_a_disk(tmp_path):
    with Writer(tmp_path) as first:
        acts_for = first.holder
        with Writer(tmp_path, locked=False, acts_for=acts_for) as deputy:
            flip(deputy, "a")
    with other_process(tmp_path) as other:
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(BusyError, match=rf"is being written by pid {other.pid} on"):
            Writer(tmp_path, locked=False, acts_for=acts_for)
        other.kill()
        other.wait()


def test_a_micro_batch_goes_to_the_server_with_whom_it_acts_for(place):
    with Writer(place) as writer:
        batch = pickle.loads(pickle.dumps(MicroBatch(writer, None, Options(), None)))
        assert batch._holder == writer.holder
        flip(writer, "a")
        with Writer(batch._directory, locked=False, acts_for=batch._holder) as deputy:
            flip(deputy, "b")
    assert groups(place) == ["b"]


def test_of_many_that_begin_at_once_one_writes(place):
    def begin(_):
        try:
            return Writer(place_of(str(place)))
        except BusyError as error:
            return str(error)

    with ThreadPoolExecutor(8) as pool:
        begun = list(pool.map(begin, range(8)))
    (winner,) = (one for one in begun if isinstance(one, Writer))
    assert all(f"pid {os.getpid()} on" in one for one in begun if one is not winner)
    flip(winner, "a")
    winner.close()
    assert groups(place) == ["a"]


def test_of_two_that_flip_the_same_tables_one_is_refused(place):
    """Without a lease, as processes are that act for its holder."""
    with Writer(place) as writer:
        flip(writer, "before")
    first, second = (Writer(place_of(str(place)), locked=False) for _ in range(2))
    flip(first, "first")
    part = write(second, STATES, rows("second"))
    gold = {STATES.name: Gold(columns="", parts=(part,))}
    following = second.manifest.with_(gold=gold, number=second.manifest.number + 1)
    with pytest.raises(TablesError, match="by somebody else meanwhile: manifest 2 is there"):
        second.publish(second.manifest.with_(gold=gold))
    with pytest.raises(TablesError, match="by somebody else meanwhile, and is as that one left it"):
        second._flip(following)  # had it looked a moment earlier
    assert groups(place) == ["first"]


def test_another_machine_is_waited_for(place, monkeypatch):
    with other_process(place) as other:
        other.stdout.readline()
        other.kill()
        other.wait()
    monkeypatch.setattr(lease, "_machine", lambda: "another")
    with pytest.raises(BusyError, match=rf"pid {other.pid} on \S+ since"):
        Writer(place)
    silent(monkeypatch)
    with Writer(place) as writer:
        flip(writer, "a")
    assert groups(place) == ["a"]


@pytest.mark.parametrize("known", [True, False], ids=["tables there", "none yet"])
def test_who_was_silent_and_wakes_up_flips_nothing(place, monkeypatch, known):
    """Its files are gone: tables that named them would be lost."""
    if known:
        with Writer(place) as writer:
            flip(writer, "before")
    sleeper = Writer(place)
    part = write(sleeper, STATES, rows("late"))
    gold = {STATES.name: Gold(columns="", parts=(part,))}
    silent(monkeypatch)

    with Writer(place) as writer:
        assert not any(one.startswith(part.path) for one in keys(place))
        with pytest.raises(TablesError, match="was written by somebody else meanwhile"):
            sleeper.publish(sleeper.manifest.with_(gold=gold))
        flip(writer, "next")

    sleeper.close()
    assert groups(place) == ["next"]


def test_a_writer_learns_that_it_was_replaced(place, monkeypatch):
    monkeypatch.setattr(lease, "BEAT_S", 600)
    sleeper = Writer(place)
    silent(monkeypatch)
    with Writer(place_of(str(place))) as writer:
        monkeypatch.setattr(lease, "BEAT_S", 0.01)
        sleeper._store._lease._renew()  # as its thread would
        assert sleeper._store._lease._lost
        sleeper.close()
        flip(writer, "a")
    assert groups(place) == ["a"]


def test_a_lease_is_renewed(place, monkeypatch):
    monkeypatch.setattr(lease, "BEAT_S", 0.01)
    with Writer(place) as writer:
        held = writer._store._lease
        while held._holder.beats < 3:
            held._thread.join(0.01)
        flip(writer, "a")
    assert not lease._decoded_or_none(
        place.root.objects.current(f"{place.key}/writer.json").data
    ).held


def test_leftovers_are_removed_and_strangers_stay(place):
    with Writer(place) as writer:
        flip(writer, "a")
        write(writer, STATES, rows("crashed"))
    before = keys(place)
    stray = f"gold/{STATES.name}/000001-0a1b2c3d-1/part.parquet"
    for name in (stray, "report.html", "notes/mine.txt", "goldfish", "gold/sales/x"):
        put(place, name)

    with Writer(place_of(str(place))):
        pass

    there = keys(place)
    assert there - before == {"report.html", "notes/mine.txt", "goldfish", "gold/sales/x"}
    assert len(before - there) == 1
    assert groups(place) == ["a"]


def copied(place, directory):
    """The objects of tables of gold as files."""
    objects, prefix = place.root.objects, place.root.prefix
    for one in objects.listed(f"{prefix}/gold"):
        file = directory / one.key.removeprefix(f"{prefix}/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(objects.read(one.key))
    return directory / "gold" / STATES.name


def test_other_engines_read_what_counts(place, tmp_path, monkeypatch):
    """Also when a log has a checkpoint, and when a writer has died before it has written one."""
    deltalake = pytest.importorskip("deltalake")

    def by_delta(name):
        rows = deltalake.DeltaTable(copied(place, tmp_path / name)).to_pyarrow_table()
        return rows["group_id"].to_pylist()

    with Writer(place) as writer:
        for number in range(11):
            flip(writer, str(number))
        write(writer, STATES, rows("not yet"))
        assert by_delta("a") == ["10"]
        with monkeypatch.context() as patch:
            patch.setattr(Writer, "_follow", lambda *_: None)
            flip(writer, "11")
        assert by_delta("b") == ["10"]
    with Writer(place_of(str(place))):
        pass
    assert by_delta("c") == ["11"]
    assert len(list((tmp_path / "c" / "gold").rglob("*.checkpoint.parquet"))) == 1


def test_a_commit_is_never_written_over(place):
    with Writer(place) as writer:
        flip(writer, "a")
        commit = f"gold/{STATES.name}/_delta_log/{1:020}.json"
        put(place, commit, b"of somebody else")
        with pytest.raises(TablesError, match="it was written meanwhile"):
            flip(writer, "b")
    assert place.root.objects.read(f"{place.key}/{commit}") == b"of somebody else"


def test_what_is_replaced_stays_for_readers_for_a_while(place, monkeypatch):
    with Writer(place) as writer:
        old = flip(writer, "a")
        reader = Tables(str(place))
        flip(writer, "b")
    with Writer(place_of(str(place))) as writer:
        assert [one.path for one in writer.manifest.retired] == [old.path]
        assert reader.table(STATES.name).column("group_id").to_pylist() == ["a"]
        monkeypatch.setattr("kohort.pipeline.format.writer.GRACE_MS", -1)
        writer.publish(writer.manifest)
    assert not any(one.startswith(old.path) for one in keys(place))
    with pytest.raises(GoneError):
        reader.table(STATES.name)
    assert (load(place).retired, groups(place)) == ((), ["b"])


def test_a_file_that_somebody_has_removed_is_missed(place):
    with Writer(place) as writer:
        part = flip(writer, "a")
    (file,) = (one for one in keys(place) if one.startswith(part.path))
    place.root.objects.delete([f"{place.key}/{file}"], "")
    with pytest.raises(GoneError, match=r"no such (object|file)"):
        groups(place)
    with Writer(place_of(str(place))) as writer:
        assert not (writer.directory / part.path).is_whole()
        assert writer._store.file_digest([part.path]) is None


def test_a_store_that_writes_whatever_the_condition_is_refused(server, place):
    with (
        server.failing(lambda *_: "blind"),
        pytest.raises(TablesError, match=r"does not keep to (conditional puts|renames)"),
    ):
        Writer(place)


def test_a_store_that_turns_away_flips_nothing(server, place, quick):
    with Writer(place) as writer:
        flip(writer, "a")
        with (
            server.failing(lambda asked, _: "away" if asked == server.writing else None),
            suppress(OSError),
        ):
            flip(writer, "b")
        part = write(writer, STATES, rows("c"))
        gold = {STATES.name: Gold(columns="", parts=(part,))}
        refused = lambda *asked: "away" if server.is_flip(place, *asked) else None  # noqa: E731
        with (
            server.failing(refused),
            pytest.raises(TablesError, match="cannot be written: the store answered 503"),
        ):
            writer.publish(writer.manifest.with_(gold=gold))
        assert groups(place) == ["a"]
        flip(writer, "d")
    assert groups(place) == ["d"]


def test_large_files_are_read_by_ranges(server, place, monkeypatch):
    monkeypatch.setattr("kohort.pipeline.stores.arrow_files.SMALL_BYTES", 64)
    many = [f"group-{number:06}" for number in range(20_000)]
    with Writer(place) as writer:
        flip(writer, *many)
    assert groups(place) == many
    file = next(place.rglob("*.parquet"))
    assert parquet.footer(file).num_rows == len(many)
    assert parquet.read(file, ["group_id"]).column(0).to_pylist() == many


def test_a_killed_writer_leaves_what_was(place):
    with Writer(place) as writer:
        flip(writer, "a")
    with other_process(place) as other:
        other.stdout.readline()
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert groups(place) == ["a"]
    with Writer(place) as writer:
        assert writer.manifest.fence
        flip(writer, "b")
    assert groups(place) == ["b"]
