# SPDX-License-Identifier: Apache-2.0
"""The script of the charts is put together once, and kept where what can be made anew is kept."""

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("vl_convert")

import vl_convert

from kohort.pipeline.report import library as module
from kohort.pipeline.report.library import library
from kohort.pipeline.stores.cache import cache_directory

SCRIPT = "draw('</script><!-- é')"
ON_A_PAGE = "draw('<\\/script><\\!-- é')"


@pytest.fixture
def made(tmp_path, monkeypatch):
    """How often it has been put together."""
    calls = []

    def bundle():
        calls.append(1)
        return SCRIPT

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    yield calls
    library.cache_clear()


def afresh():
    library.cache_clear()
    return library()


def kept():
    return [*cache_directory().iterdir()]


def test_it_is_made_once(made):
    assert [afresh(), afresh()] == [ON_A_PAGE] * 2
    assert len(made) == 1
    assert len(kept()) == 1


def test_a_damaged_one_is_made_anew(made):
    assert afresh() == ON_A_PAGE
    (file,) = kept()
    file.write_bytes(file.read_bytes()[:-1])

    assert [afresh(), afresh()] == [ON_A_PAGE] * 2
    assert len(made) == 2
    assert file.read_text(encoding="utf-8") == SCRIPT


def test_that_of_another_version_is_left_alone(made, monkeypatch):
    afresh()
    monkeypatch.setattr(module, "version", lambda _: "0")
    afresh()
    assert len(made) == len(kept()) == 2


def test_where_nothing_can_be_kept_it_is_made_each_time(made, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert [afresh(), afresh()] == [ON_A_PAGE] * 2
    assert len(made) == 2
