# SPDX-License-Identifier: Apache-2.0
"""`kohort pipeline check`: its exit code, its first line, and what stands in its documents."""

import sys
from datetime import UTC, datetime, timedelta
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from tests.documented import blocks
from tests.tables.published import publish

from kohort.cli.check import OPTIONS
from kohort.spark import jobs
from kohort.tables.thresholds import RULES, Limit, load, of_text


def lag(group, records):
    return {"group_id": group, "level": "group", "lag_records": records, "partitions_unknown": 0}


@pytest.fixture
def check(kohort, tmp_path):
    at = datetime.now(UTC) - timedelta(minutes=1)
    rows = [{**one, "at": at} for one in (lag("a", 0), lag("b", 50), lag("c", None))]
    known = [
        {"group_id": one, "state": "Stable", "complete_from": at - timedelta(days=1)}
        for one in "abc"
    ]
    status = [
        {"group_id": one, "level": "group", "rules": "kohort", "status": "OK", "rule": "progress"}
        for one in "abc"
    ]
    publish(
        tmp_path,
        {"lag": rows, "group_state": known, "rebalances": [], "status": status},
        as_of_ms=int(at.timestamp() * 1000),
    )
    return lambda *argv: kohort("pipeline", "check", "--out", str(tmp_path), *argv)


def test_the_exit_code_and_the_first_line_are_what_nagios_knows(check):
    fine = check()
    warned = check("--lag-records", "50,100")
    critical = check("--lag-records", "10,50")
    unknown = check("--lag-records", "100,200")
    of_group = check("--lag-records", "100,200", "--group", "a")

    assert (fine.code, fine.out) == (0, "OK - 7 ok\n")
    assert [one.code for one in (warned, critical, unknown, of_group)] == [1, 2, 3, 0]
    assert critical.out.splitlines()[0] == (
        "CRITICAL - 1 critical, 1 unknown, 8 ok: lag_records of b, 50 records behind"
    )
    assert [one[:3] for one in critical.rows[1:]] == [
        ["STATE", "RULE", "GROUP"],
        ["CRITICAL", "lag_records", "b"],
        ["UNKNOWN", "lag_records", "c"],
    ]
    assert unknown.out.startswith("UNKNOWN - 1 unknown, 9 ok: lag_records of c, its lag is unkno")
    assert {one.err for one in (fine, warned, critical, unknown)} == {""}


def test_thresholds_of_a_file_and_of_options(check, tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text('[lag_records]\nwarning = 50\n[groups."c"]\nignore = true\n')

    assert check("--rules", str(rules)).code == 1
    assert check("--rules", str(rules), "--lag-records", "60").code == 0
    assert check("--rules", str(rules), "--lag-records", "off").code == 0
    late = check("--age", "1s,30s")
    assert late.code == 2
    assert late.rows[2][-2:] == ["1s", "30s"]
    assert check("--age", "0.5,", "--group", "a").code == 3
    assert check("--age", "90s,", "--lag-records", "50").rows[2][-2:] == ["50", "-"]
    assert check("--status", "off", "--rebalances", "off", "--age", "off").code == 3


def test_the_worst_are_listed_and_the_others_counted(check):
    ran = check("--lag-records", "0,10", "--limit", "1")
    as_json = check("--lag-records", "0,10", "--limit", "1", "--format", "json")

    assert (ran.code, as_json.code) == (2, 2)
    assert len(ran.rows) == 4
    assert ran.out.endswith("\n… and 2 more: --limit N lists N, --format json all\n")
    assert [one["group_id"] for one in as_json.json["findings"]] == ["b"]


def test_a_grace_that_is_no_time_is_refused(check):
    ran = check("--grace", "soon")

    assert ran.code == 3
    assert "--grace is 'soon', expected seconds, or such as \"5m\"" in ran.err


def test_json(check):
    ran = check("--lag-records", "50,100", "--format", "json")

    assert ran.code == 1
    assert {"state": "WARNING", "exit_code": 1}.items() <= ran.json.items()
    assert ran.json["findings"][0] == {
        "state": "WARNING",
        "rule": "lag_records",
        "group_id": "b",
        "value": 50,
        "unit": "records",
        "warning": 50,
        "critical": 100,
        "at_least": 50,
        "at_most": 50,
        "reason": None,
        "why": "50 records behind",
    }
    assert len(ran.json["findings"]) == 10


def test_metrics_for_prometheus(check, tmp_path):
    file = tmp_path / "kohort.prom"

    assert check("--lag-records", "50,100", "--prometheus", str(file)).code == 1
    assert 'kohort_check_state{rule="lag_records",group="b"} 1\n' in file.read_text()
    assert check("--group", "nosuch", "--prometheus", str(file)).code == 3
    assert "kohort_check_worst 3\n" in file.read_text()
    assert "group=" not in file.read_text()
    unwritten = check("--prometheus", str(tmp_path / "no" / "file"))
    assert unwritten.code == 3
    assert "no/file cannot be written: " in unwritten.err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--group", "nosuch"], "no group is called 'nosuch' in "),
        (["--lag-records", "many"], "lag_records.warning is 'many', expected a number"),
        (["--lag-records", "5,1"], "lag_records warns after it is critical"),
        (["--rules", "/nowhere.toml"], "/nowhere.toml cannot be read: No such file"),
        (["--out", "/nowhere"], "/nowhere does not exist: write some with `kohort pipeline run"),
        (["--agee", "1h"], "unrecognized arguments: --agee 1h; did you mean --age?"),
    ],
)
def test_what_cannot_be_judged_is_unknown_and_no_warning(check, argv, words):
    ran = check(*argv)

    assert ran.code == 3
    (line,) = ran.complaints
    assert words in line
    if "--agee" not in argv:
        assert ran.out == f"UNKNOWN - {line.removeprefix('kohort: ')}\n"
        document = check(*argv, "--format", "json").json
        assert (document["state"], document["exit_code"]) == ("UNKNOWN", 3)


def test_a_damaged_file_is_unknown(check, tmp_path):
    (file,) = (tmp_path / "gold" / "status").rglob("*.parquet")
    file.write_bytes(b"nothing")

    ran = check()

    assert ran.code == 3
    assert ran.out.startswith("UNKNOWN - ")
    assert ran.out.count("\n") == 1


def test_every_rule_has_an_option_with_an_example_that_works():
    assert list(OPTIONS) == list(RULES)
    for rule, (example, _) in OPTIONS.items():
        assert of_text(rule, example.partition("|")[0]) is not None


def test_the_rules_of_the_documentation_are_rules(tmp_path):
    (tmp_path / "rules.toml").write_text(blocks("operations.md", "Watching", "toml")[0])

    rules = load(tmp_path / "rules.toml")

    assert set(rules.limits) == set(RULES)
    assert rules.limit_or_none("lag_seconds", "billing-eu") == Limit(60, 300)


def test_the_tasks_of_the_documentation_do_what_they_say(check, tmp_path, monkeypatch):
    """As Airflow would call them, which is not here: it only declares them."""
    declared = {}
    operator = MagicMock(side_effect=lambda **told: declared.update([tuple(told.values())]) or 1)
    python = MagicMock(PythonOperator=operator)
    for name in ("airflow", "airflow.providers", "airflow.providers.standard"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    monkeypatch.setitem(sys.modules, "airflow.providers.standard.operators", MagicMock())
    monkeypatch.setitem(sys.modules, "airflow.providers.standard.operators.python", python)
    monkeypatch.setitem(sys.modules, "airflow.sdk", MagicMock())
    code, *_ = blocks("operations.md", "A schedule", "python")
    code = code.replace("/srv/groups", str(tmp_path))
    ran = []
    monkeypatch.setattr(jobs, "run", lambda *told: ran.append(told) or MagicMock(as_of="now"))

    exec(compile(code, "operations.md", "exec"), {})

    assert list(declared) == ["run", "check"]
    assert declared["run"]() == "now"
    assert ran == [("log:/var/lib/kafka/data", str(tmp_path))]
    assert declared["check"]() is None
    bad = {"group_id": "a", "level": "group", "rules": "kohort", "status": "ERR"}
    publish(tmp_path, {"status": [{**bad, "rule": "stopped"}]})
    with pytest.raises(ValueError, match="a: records wait, and it commits nothing"):
        declared["check"]()


@pytest.fixture
def clusters(kohort, tmp_path):
    """A check of two clusters whose groups have the same name, and one that is damaged."""
    at = datetime.now(UTC) - timedelta(minutes=1)
    for name, records in (("east", 5), ("west", 500)):
        rows = {"lag": [{**lag("g", records), "at": at}, {**lag(name, 0), "at": at}]}
        rows["group_state"] = [{"group_id": "g"}, {"group_id": name}]
        publish(tmp_path / name, rows, cluster=name, as_of_ms=int(at.timestamp() * 1000))
    directories = [f"--out={tmp_path / name}" for name in ("east", "west", "lost")]
    off = ("--status", "off", "--rebalances", "off", "--lag-records", "100,1000")
    return lambda *argv, of=3: kohort("pipeline", "check", *directories[:of], *off, *argv)


def test_several_clusters_are_judged_as_one_and_told_apart(clusters):
    ran = clusters(of=2)

    assert ran.code == 1
    assert ran.out.startswith(
        "WARNING - 1 warning, 5 ok: lag_records of g in west, 500 records behind\n"
    )
    assert ran.rows[1][:4] == ["STATE", "RULE", "GROUP", "CLUSTER"]
    assert ran.rows[2][:4] == ["WARNING", "lag_records", "g", "west"]
    document = clusters("--format", "json", of=2).json
    assert document["clusters"].keys() == {"east", "west"}
    assert {one["cluster"] for one in document["findings"]} == {"east", "west"}
    of_one = clusters("--group", "west", "--format", "json", of=2).json
    assert {one["cluster"] for one in of_one["findings"]} == {"west"}
    assert "no group is called 'nobody'" in clusters("--group", "nobody", of=2).out


def test_a_cluster_that_cannot_be_read_is_unknown_and_the_others_are_judged(clusters, tmp_path):
    ran = clusters("--prometheus", str(tmp_path / "kohort.prom"))

    assert ran.code == 1
    assert ran.out.startswith("WARNING - 1 warning, 1 unknown, 5 ok: ")
    lost = str(tmp_path / "lost")
    assert [one[:3] for one in ran.rows if one[0] == "UNKNOWN"] == [["UNKNOWN", "tables", "-"]]
    assert f"{lost} does not exist" in ran.out
    assert clusters("--lag-records", "off").code == 3
    metrics = (tmp_path / "kohort.prom").read_text()
    assert f'kohort_check_state{{rule="tables",cluster="{lost}"}} 3\n' in metrics
    assert 'kohort_check_value{rule="lag_records",group="g",cluster="west"} 500\n' in metrics
    assert 'kohort_check_tables_as_of_seconds{cluster="east"} ' in metrics
