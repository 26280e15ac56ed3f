# SPDX-License-Identifier: Apache-2.0
"""Rules of a check: where thresholds come from, and what is no rule."""

from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from kohort.tables.thresholds import (
    DEFAULTS,
    Limit,
    Rules,
    RulesError,
    State,
    load,
    of_text,
    parse,
    seconds,
    worst,
)
from kohort.user_files import SETTINGS_BYTES_MAX


def test_a_value_at_a_threshold_is_beyond_it():
    limit = Limit(10, 20)
    assert [limit.state(one) for one in (9, 10, 19, 20)] == [0, 1, 1, 2]
    below = Limit(20, 10)
    assert [below.state(one, below=True) for one in (21, 20, 11, 10, -1)] == [0, 1, 1, 2, 2]
    assert Limit(critical=5).state(4) is State.OK
    assert Limit().state(1e9) is State.OK


def test_what_is_not_known_is_worse_than_fine_and_better_than_a_warning():
    assert worst([State.OK, State.UNKNOWN]) is State.UNKNOWN
    assert worst([State.UNKNOWN, State.WARNING]) is State.WARNING
    assert worst([State.WARNING, State.CRITICAL, State.UNKNOWN]) is State.CRITICAL
    assert worst([]) is State.OK


def test_a_document_of_rules(tmp_path):
    (tmp_path / "rules.toml").write_text(
        """
        rebalances = { window = "10m", warning = 3 }
        age = false
        [lag_records]
        warning = 1000
        critical = 10_000
        [lag_seconds]
        critical = "1h"
        [expiring]
        warning = "2d"
        critical = 3600
        [status]
        judge = "burrow"
        [groups."test-*"]
        ignore = true
        [groups."billing-eu"]
        lag_seconds = { warning = "1m", critical = "5m" }
        [groups."billing-*"]
        lag_seconds = { warning = "2m" }
        status = false
        """,
        encoding="utf-8",
    )

    rules = load(tmp_path / "rules.toml")

    assert rules.limits == {
        "status": Limit(1, 2),
        "rebalances": Limit(3),
        "lag_records": Limit(1000, 10_000),
        "lag_seconds": Limit(None, 3600),
        "expiring": Limit(172_800, 3600),
    }
    assert (rules.window_s, rules.judge) == (600, "burrow")
    assert rules.limit_or_none("lag_seconds", "billing-eu") == Limit(60, 300)
    assert rules.limit_or_none("lag_seconds", "billing-us") == Limit(120)
    assert rules.limit_or_none("lag_seconds", "mail") == Limit(None, 3600)
    assert rules.limit_or_none("status", "billing-eu") is None
    assert rules.limit_or_none("lag_records", "test-1") is None
    assert rules.limit_or_none("age") is None


def test_an_empty_document_has_the_defaults():
    assert parse({}) == Rules()
    assert parse({"rebalances": {"window": "1d"}}).limits == DEFAULTS
    assert parse({"status": True}).limits["status"] == Limit(1, 2)


def test_options_win_over_a_document():
    rules = parse({"age": {"warning": 1}, "lag_records": {"warning": 1}})
    given = {"age": of_text("age", "off"), "lag_records": of_text("lag_records", ",50")}

    assert "age" not in rules.with_(given).limits
    assert rules.with_(given).limits["lag_records"] == Limit(None, 50)
    assert of_text("lag_seconds", "5m, 1h") == Limit(300, 3600)
    assert of_text("age", "90s") == Limit(90)
    assert of_text("expiring", "2d,12h") == Limit(172_800, 43_200)
    assert of_text("status", "on") == Limit(1, 2)
    assert of_text("status", "off") is None


def test_durations():
    assert [seconds("it", one) for one in (5, 1.5, "7", "7s", "2m", "3h", "1d", "250ms")] == [
        *(5, 1.5, 7, 7, 120, 10_800, 86_400, 0.25)
    ]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"lag_record": {}}, "it has 'lag_record': did you mean lag_records?"),
        ({"xyzzy": {}}, "it has 'xyzzy', expected one of lag_records, lag_seconds, status, "),
        ({"age": {"warn": 1}}, "age has 'warn': did you mean warning?"),
        ({"age": 5}, "age is 5, expected a table with warning and critical"),
        ({"age": {"warning": "soon"}}, "age.warning is 'soon', expected seconds, or such as"),
        ({"age": {"warning": True}}, "age.warning is True, expected seconds"),
        ({"lag_records": {"warning": "5m"}}, "lag_records.warning is '5m', expected a number"),
        ({"lag_records": {"warning": -1}}, "lag_records.warning is -1, expected a number"),
        ({"age": {"warning": 2, "critical": 1}}, "age warns after it is critical, expected a w"),
        ({"expiring": {"warning": 1, "critical": 2}}, "expiring warns after it is critical"),
        ({"rebalances": {"window": "x"}}, "rebalances.window is 'x', expected seconds"),
        ({"status": {"judge": "me"}}, "status.judge is 'me', expected kohort or burrow"),
        ({"status": {"warning": 1}}, "status has 'warning', expected one of judge"),
        ({"groups": 1}, 'groups is 1, expected a table such as [groups."billing-*"]'),
        ({"groups": {"a": 1}}, 'groups."a" is 1, expected a table of rules'),
        ({"groups": {"a": {"ignore": 1}}}, 'groups."a".ignore is 1, expected true or false'),
        ({"groups": {"a": {"age": {}}}}, "groups.\"a\" has 'age'"),
        ({"groups": {"a": {"rebalances": {"window": 1}}}}, "\"a\".rebalances has 'window'"),
    ],
)
def test_what_is_no_rule_is_told_with_its_place(told, words):
    with pytest.raises(RulesError) as error:
        parse(told)
    assert words in str(error.value)


def test_files_and_options_that_are_none(tmp_path):
    with pytest.raises(RulesError, match=r"rules\.toml cannot be read: No such file"):
        load(tmp_path / "rules.toml")
    (tmp_path / "rules.toml").write_text("a = ")
    with pytest.raises(RulesError, match=r"rules\.toml is not TOML: "):
        load(tmp_path / "rules.toml")
    with pytest.raises(RulesError, match="/dev/zero cannot be read: it is a device, expected a"):
        load(Path("/dev/zero"))
    with (tmp_path / "long.toml").open("wb") as file:
        file.truncate(SETTINGS_BYTES_MAX + 1)
    with pytest.raises(RulesError, match=r"long\.toml cannot be read: it has 1,048,577 bytes"):
        load(tmp_path / "long.toml")
    (tmp_path / "rules.toml").write_text("agee = 1")
    with pytest.raises(RulesError, match=r"rules\.toml: it has 'agee': did you mean age\?"):
        load(tmp_path / "rules.toml")
    for rule, text in (("status", "1,2"), ("age", ","), ("age", "x"), ("lag_records", "1m")):
        with pytest.raises(RulesError, match=rf"^{rule}"):
            of_text(rule, text)
