# SPDX-License-Identifier: Apache-2.0
"""The names that a shell was offered lately: how long they are kept, and who can read them."""

import os

import pytest

from kohort.cli.completion_cache import CompletionCache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "kohort" / "completion"


def test_keeps_names_for_their_key_alone(folder):
    CompletionCache.of_user("groups", "one:9092").write(["a", "b\n", "\u00e9"])
    assert CompletionCache.of_user("groups", "one:9092").read() == ["a", "b\n", "\u00e9"]
    assert CompletionCache.of_user("groups", "two:9092").read() is None
    assert CompletionCache.of_user("topics", "one:9092").read() is None
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.stat().st_mode & 0o777 for file in folder.iterdir()] == [0o600]


@pytest.mark.parametrize("seconds", [61, -3600])
def test_forgets_what_is_old_or_of_a_clock_that_was_wrong(folder, seconds):
    cache = CompletionCache.of_user("groups")
    cache.write(["a"])
    (file,) = folder.iterdir()
    then = file.stat().st_mtime - seconds
    os.utime(file, (then, then))
    assert cache.read() is None
    CompletionCache.of_user("topics").write(["t"])
    assert not file.exists()


@pytest.mark.parametrize("text", ["", "[", "{}", "[1]", "\xff"])
def test_what_is_damaged_is_as_if_it_were_not_there(folder, text):
    cache = CompletionCache.of_user("groups")
    cache.write(["a"])
    (file,) = folder.iterdir()
    file.write_bytes(text.encode("latin-1"))
    assert cache.read() is None
    cache.write(["b"])
    assert cache.read() == ["b"]


def test_a_folder_that_others_can_write_to_is_not_believed(folder):
    cache = CompletionCache.of_user("groups")
    cache.write(["a"])
    folder.chmod(0o777)
    assert cache.read() is None
    cache.write(["b"])
    folder.chmod(0o700)
    assert cache.read() == ["a"]


def test_a_cache_that_cannot_be_written_is_none(tmp_path, monkeypatch):
    (tmp_path / "kohort").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = CompletionCache.of_user("groups")
    cache.write(["a"])
    assert cache.read() is None
