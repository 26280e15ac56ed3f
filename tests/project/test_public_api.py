# SPDX-License-Identifier: Apache-2.0
"""What breaks users of the public names is in the changelog, and is found: docs/versions.md."""

import subprocess
from pathlib import Path

import pytest
from tools import public_api
from tools.api_changes import Break, breaks, unnamed
from tools.public_api import lines_of, page

import kohort

ROOT = Path(__file__).parents[2]
PAGE = "docs/public-api.txt"
BEFORE = """\
kohort.Client(servers=..., *, timeout=...)
kohort.Client.close(self) async
kohort.Client.delete(self, groups, *, timeout=...)
kohort.Client.node().stop(self, takeover=..., /)
kohort.Client.send(self, /, value, key=..., **more)
kohort.Client.state
kohort.State
kohort.State.EMPTY
"""


def git(*arguments):
    ran = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout if ran.returncode == 0 else None


def test_what_is_exported_now_is_in_the_page():
    """Run `make docs` when this fails, and name in CHANGELOG.md what breaks users."""
    assert (ROOT / PAGE).read_text(encoding="utf-8") == page()


def every_kind(first, /, second, third=3, *others, fourth, fifth=5, **more):
    """It has a parameter of each kind."""


def by_position(first, second=2, /): ...


async def by_name(*, first, second=2): ...


def test_a_line_has_the_kind_of_each_parameter_and_whether_there_is_a_default():
    assert list(lines_of("f", every_kind)) == [
        "f(first, /, second, third=..., *others, fourth, fifth=..., **more)"
    ]
    assert list(lines_of("f", by_position)) == ["f(first, second=..., /)"]
    assert list(lines_of("f", by_name)) == ["f(*, first, second=...) async"]


def test_a_class_has_lines_for_fields_members_of_bases_and_what_syntax_calls():
    found = set(lines_of("kohort.Outcomes", kohort.Outcomes))

    assert "kohort.Outcomes.__getitem__(self, key)" in found  # by syntax
    assert "kohort.Outcomes.complete" in found  # a property of a base
    assert "kohort.Outcomes.all(self)" in found
    assert set(lines_of("State", kohort.GroupType)) == {
        *("State", "State.CLASSIC", "State.CONSUMER", "State.SHARE", "State.STREAMS")
    }
    assert "Record.value" in set(lines_of("Record", kohort.ConsumerRecord))  # a field


def test_every_name_that_is_left_out_or_chosen_is_there(monkeypatch):
    chosen = {f"{of}.{name}" for of, names in public_api.MEMBERS.items() for name in names.split()}
    internal = public_api.INTERNAL
    monkeypatch.setattr(public_api, "INTERNAL", frozenset())
    names = {line.partition("(self")[0].partition("(cls")[0] for line in page().splitlines()}

    assert chosen - names == set()
    assert internal - names == set()


def test_the_changelog_names_what_breaks_users_of_the_last_release():
    release = git("describe", "--tags", "--abbrev=0", "--match", "v*")
    if release is None:
        pytest.skip("there is no release yet: git knows no tag v*")
    before = git("show", f"{release.strip()}:{PAGE}")
    if before is None:
        pytest.skip(f"the release {release.strip()} has no {PAGE}")
    now = (ROOT / PAGE).read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert unnamed(breaks(before, now), changelog, release.strip()) == []


def found(was, becomes):
    assert BEFORE.count(was) == 1
    return [str(one) for one in breaks(BEFORE, BEFORE.replace(was, becomes))]


@pytest.mark.parametrize(
    ("was", "becomes", "why"),
    [
        ("kohort.Client.state\n", "", "state: is gone"),
        ("kohort.State.EMPTY\n", "", "EMPTY: is gone"),
        ("Client.state", "Client.state(self)", "state: was a value, and is called now"),
        ("close(self) async", "close", "close: was called, and is a value now"),
        ("close(self) async", "close(self)", "close: is no longer awaited"),
        ("**more)", "**more) async", "send: is awaited now"),
        ("(servers=...", "(servers", "Client: the parameter servers has lost its default"),
        ("(servers=..., *,", "(*,", "Client: the parameter servers is gone"),
        ("(servers=..., *,", "(*, servers=...,", "servers is taken by name only"),
        ("key=..., **more", "*, key=..., **more", "key is taken by name only"),
        ("/, value,", "value, /,", "value is taken by position only"),
        (", **more", "", "the parameter ** is gone"),
        ("value, key=...", "key=..., value=...", "in another order: self, key, value"),
        ("value, key=...", "value, since=..., key=...", "another order: self, value, since, key"),
        ("groups, *,", "groups, force, *,", "the parameter force is new and has no default"),
        ("timeout=...)\nkohort.Client.c", "timeout)\nkohort.Client.c", "timeout has lost its def"),
        ("takeover=..., /", "/, takeover", "takeover has lost its default"),
    ],
)
def test_what_breaks_users_is_found(was, becomes, why):
    (message,) = found(was, becomes)

    assert why in message


def test_a_new_name_of_a_parameter_is_found_in_both_ways():
    assert found("groups, *,", "group_ids, *,") == [
        "kohort.Client.delete: the parameter groups is gone",
        "kohort.Client.delete: the parameter group_ids is new and has no default",
    ]
    assert found("key=...", "keys=...") == ["kohort.Client.send: the parameter key is gone"]


def test_a_class_that_is_gone_is_named_without_its_members():
    assert found("kohort.State\nkohort.State.EMPTY\n", "") == ["kohort.State: is gone"]


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("kohort.State\n", "kohort.Start\nkohort.State\n"),
        ("groups, *,", "groups=..., *,"),
        ("groups, *, timeout=...", "groups, timeout=..., *, force=..."),
        ("takeover=..., /", "takeover=..., after=..., *more"),
        ("**more", "**settings"),
    ],
)
def test_what_every_call_fits_as_before_breaks_nobody(was, becomes):
    assert found(was, becomes) == []


CHANGELOG = """\
# Changelog

## 0.3.0, unreleased

### Added

- `Client.send` takes `key`.

### Changed

#### Clients

- `Client.delete` takes `group_ids`, which Client.close does not.

### Removed

- `kohort.tables.read` is gone.

### Fixed

- `Client.lag` was wrong.

## 0.2.0, 2026-12-01

- `Client.state` is new.
"""


@pytest.mark.parametrize(
    ("name", "is_named"),
    [
        ("kohort.Client.delete", True),
        ("kohort.tables.read", True),
        ("kohort.Client", False),
        ("kohort.Client.send", False),
        ("kohort.Client.close", False),
        ("kohort.Client.lag", False),
        ("kohort.Client.state", False),
        ("kohort.Client.del", False),
        ("kohort.SyncClient.delete", False),
        ("kohort.lient.delete", False),
    ],
)
def test_only_what_was_changed_or_removed_since_the_release_names_a_break(name, is_named):
    one = Break(name, "is gone")

    assert unnamed([one], CHANGELOG, "v0.2.0") == ([] if is_named else [one])


def test_a_release_that_the_changelog_does_not_have_is_refused():
    with pytest.raises(ValueError, match=r"no line '## 0\.1\.0', expected one for v0\.1\.0"):
        unnamed([], CHANGELOG, "v0.1.0")
