# SPDX-License-Identifier: Apache-2.0
"""Several clusters asked as one: one of them that is damaged is named, and the others answer."""

import shutil

import pytest

pytest.importorskip("pyspark")

from tests.tables.published import publish

import kohort.tables
from kohort.pipeline.format.arrow_reader import GoneError
from kohort.pipeline.format.manifest import TablesError
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.stores.layout import MANIFEST
from kohort.tables.walking import TRIES, answered


@pytest.fixture
def several(tmp_path):
    for name in ("east", "north", "west"):
        publish(tmp_path / name, {"lag": [{"group_id": name}]}, cluster=name)
    return [tmp_path / name for name in ("east", "north", "west")]


def groups(found):
    return found.scan("lag", columns=["cluster", "group_id"]).read_all().to_pylist()


def asked(directories, ask=groups):
    rows, lost = answered(directories, ask, kohort.tables.snapshot)
    return [row["group_id"] for row in rows], lost


def spoil(directory):
    (file,) = (directory / "gold" / "lag").rglob("*.parquet")
    file.write_bytes(b"nothing")


def test_all_answer_as_one(several):
    assert asked(several) == (["east", "north", "west"], [])


def forget_lag(directory):
    with Writer(directory) as writer:
        writer.publish(writer.manifest.with_(gold={}))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (spoil, "parquet cannot be read: "),
        (lambda at: (at / MANIFEST).write_text("{"), MANIFEST),
        (lambda at: shutil.rmtree(at / "gold" / "lag"), "is gone"),
        (lambda at: at.rename(at.with_name("elsewhere")), "does not exist"),
        (lambda at: publish(at, {}, cluster=None), "does not know of which cluster it is"),
        (lambda at: publish(at, {}, cluster="east"), "are both of cluster east"),
        (forget_lag, "has no table lag yet"),
    ],
)
def test_one_that_cannot_be_read_is_named_and_takes_no_other_down(several, damage, words):
    damage(several[1])

    found, lost = asked(several)

    assert found == ["east", "west"]
    assert [one.directory for one in lost] == [str(several[1])]
    assert words in lost[0].why
    assert str(several[1]) in lost[0].why


def test_a_wrong_question_is_not_the_fault_of_a_directory(several):
    with pytest.raises(TablesError, match=r"^no table is called 'lagg': did you mean lag?"):
        asked(several, lambda found: found.scan("lagg"))
    with pytest.raises(TablesError, match=r"^no group is called 'nobody'"):
        asked(several, lambda found: found.scan("lag", group="nobody"))
    with pytest.raises(TablesError, match=r"^table lag has no column 'x'"):
        asked(several, lambda found: found.scan("lag", columns=["x"]))


def test_where_none_can_be_read_all_are_named(several):
    for one in several:
        spoil(one)
    with pytest.raises(TablesError) as error:
        asked(several)
    assert all(str(one) in str(error.value) for one in several)
    with pytest.raises(TablesError, match=r"^\S+parquet cannot be read: "):
        asked(several[:1])


def test_files_that_go_while_they_are_read_are_asked_for_again(several):
    tries = []

    def ask(found):
        tries.append(len(found.members))
        if len(tries) < TRIES:
            error = GoneError("gone")
            error.directory = found.members[0].directory
            raise error
        return groups(found)

    assert asked(several, ask) == (["east", "north", "west"], [])
    assert tries == [3] * TRIES
