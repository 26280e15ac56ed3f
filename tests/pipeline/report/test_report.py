# SPDX-License-Identifier: Apache-2.0
"""The report: one file that opens anywhere, whatever groups are called, and whose charts draw."""

import errno
import json
import os
import re
import shutil
import struct
import subprocess
import unicodedata
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.pipeline.report import report_tables
from tests.pipeline.report.report_tables import BEGIN, END, HOSTILE, NAMES
from tests.tables.published import publish
from tests.waiting import SOON_S

from kohort.errors import KohortError
from kohort.pipeline import report
from kohort.pipeline.format.catalog import known_tables
from kohort.pipeline.report import charts, groups, lag, members, owners, page, picks, rebalances
from kohort.pipeline.rollup import lag_downsampling

SECTIONS = ("status", "lag", "rebalances", "owners", "members", "groups", "stale")
CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
needs_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is on the PATH")


class Read(HTMLParser):
    """A page as a browser takes it apart: tags, and the text outside of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags = Counter()
        self.attributes = []
        self.text = []
        self.scripts = []
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, *one) for one in attrs]
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text.append(data)


def written(tmp_path, tables, **options):
    path = report.write(tables.__getitem__, tmp_path / "report.html", **options)
    assert path == tmp_path / "report.html"
    assert list(tmp_path.iterdir()) == [path]
    return path.read_text(encoding="utf-8")


def figures(text):
    return re.findall(r'<figure id="([^"]+)">', text)


def test_the_page_is_one_file_that_loads_nothing(tmp_path):
    text = written(tmp_path, report_tables.day())
    read = Read(text)

    for tag, name, value in read.attributes:
        assert name not in {"src", "srcset", "data", "onerror"}, (tag, name, value)
        assert name != "href" or value.startswith("#"), value
    assert not {"link", "img", "iframe", "base", "object"} & set(read.tags)
    assert "@import" not in text
    assert "url(" not in text.partition("</style>")[0]
    assert read.tags["script"] == len(figures(text)) + 2
    assert {value for _, name, value in read.attributes if name == "id"} >= set(SECTIONS)
    assert ("meta", "name", "viewport") in read.attributes


def test_no_name_becomes_markup(tmp_path):
    text = written(tmp_path, report_tables.day(groups=6), title=HOSTILE)
    read = Read(text)

    assert read.text.count(HOSTILE) >= 3  # the title, twice, and a cell of a table
    assert all(escape(name) in text for name in NAMES)
    assert read.tags["img"] == 0
    specs = [one for one in read.scripts if one.startswith("{")]
    assert any("\\u003c/script>" in one for one in specs)
    assert not any("<" in one for one in specs)
    assert page.json_of("<\u2028\u2029") == '"\\u003c\\\\u2028\\\\u2029"'


ORDER = "pay\u202enimda\u200b\x1b[2J\u2066"  # overrides the order of letters, and hides some


def test_no_name_hides_a_character_or_turns_what_stands_beside_it(tmp_path):
    tables = report_tables.day(groups=3)
    tables = {
        name: pa.Table.from_pylist(
            [
                {key: ORDER if value == "checkout" else value for key, value in row.items()}
                for row in table.to_pylist()
            ],
            schema=table.schema,
        )
        for name, table in tables.items()
    }
    text = written(tmp_path, tables, title=ORDER)
    assert not [one for one in text if unicodedata.category(one) in {"Cf", "Cs", "Zl", "Zp"}]
    assert "\x1b" not in text
    assert r"pay\u202enimda\u200b\x1b[2J\u2066" in "".join(Read(text).text)
    specs = "".join(one for one in Read(text).scripts if one.startswith("{"))
    assert r"pay\\u202enimda\\u200b" in specs
    assert page.escape("größe\u202f☃ 日本\u00a0") == "größe\u202f☃ 日本\u00a0"


def test_the_page_stays_small(tmp_path):
    tables = report_tables.day(groups=7, rebalances=500, partitions=50)
    assert tables["assignments"].num_rows > 50_000

    text = written(tmp_path, tables)

    assert len(text.encode()) < 3_000_000
    assert "(40 of 50 partitions, those that moved most) (the latest 500 of" in text
    assert "the latest 1000 are drawn." in text


def test_what_is_empty_says_so(tmp_path):
    text = written(tmp_path, report_tables.empty())

    assert figures(text) == []
    assert text.count('<p class="empty">') == len(SECTIONS)
    assert "<footer>Kohort.</footer>" in text


def test_only_the_wanted_groups_are_shown(tmp_path):
    text = written(tmp_path, report_tables.day(), groups=["mail", "nobody", "checkout", "mail"])

    assert "group-5" not in text
    assert re.findall("<figcaption>([^<]+)</figcaption>", text)[-3:] == [
        "mail",
        "checkout",
        "Members",
    ]
    assert "<b>2</b><span>groups: 2 Stable</span>" in text


def test_files_are_read_as_tables_are(tmp_path):
    tables = report_tables.day(groups=5)
    files = tmp_path / "files"
    files.mkdir()
    for name, table in tables.items():
        pq.write_table(table, files / f"{name}.parquet")

    def read(name):
        return ds.dataset(files / f"{name}.parquet", tables[name].schema)

    path = report.write(read, tmp_path / "from-files.html")

    assert path.read_text() == report.write(tables.__getitem__, tmp_path / "t.html").read_text()


def test_lag_that_is_not_known_has_its_reason(tmp_path):
    tables = report_tables.day(groups=1)
    table = tables["lag"]
    nothing = pa.nulls(table.num_rows, pa.int64())
    for name, values in {
        "lag_records": nothing,
        "lag_seconds": nothing.cast(pa.float64()),
        "reason": pa.array(["no_end_offset"] * table.num_rows),
    }.items():
        table = table.set_column(table.schema.get_field_index(name), name, values)

    section = lag.section((tables | {"lag": table}).__getitem__, None)

    assert "No end offsets are known, so no lag is. Reason: no_end_offset." in section.content[1]
    assert len(section.content) == 3


def test_of_the_past_the_largest_lag_is_drawn():
    """Yesterday's rows stand for five minutes each; today's are those of `lag`, each once."""
    tables = report_tables.day(groups=2)
    now = tables["lag"].filter(pc.field("level") == "group")
    today = lag_downsampling.of_moments(now.filter(pc.field("at") > BEGIN + timedelta(hours=4)))
    yesterday = [
        {**row, "at": row["at"] - timedelta(days=1), "lag_records": 1, "lag_records_max": 77_777}
        for row in today.to_pylist()[:3]
    ]
    yesterday = pa.Table.from_pylist(
        [{**row, "moments": 9, "lag_seconds_max": 4321.5} for row in yesterday], today.schema
    )
    tomorrow = today.slice(0, 1).set_column(
        today.schema.get_field_index("at"),
        "at",
        pa.array([END + timedelta(days=1)], today.schema.field("at").type),
    )
    tables["lag_history"] = pa.concat_tables([yesterday, today, tomorrow])

    section = lag.section(tables.__getitem__, None)

    records, seconds = (json.loads(unescape(one.split('"application/json">')[1].split("</")[0]))
                        for one in section.content[1:])  # fmt: skip
    rows = records["data"]["values"]
    old = [row for row in rows if row["at"] < picks.milliseconds(BEGIN)]
    assert [(row["records"], row["seconds"]) for row in old] == [(77_777, 4321.5)] * 3
    assert all(row.get("low") is None for row in old)
    assert max(row["at"] for row in rows) == picks.milliseconds(END)
    places = [(row["group"], row["at"]) for row in rows]
    assert len(places) == len(set(places)) == 3 + now.num_rows
    assert rows == seconds["data"]["values"]


def judged(tables, *statuses):
    """The tables, with these statuses of as many groups."""
    rows = [
        {"group_id": f"g{number}", "rules": "kohort", "level": "group", "at": END, "status": one}
        for number, one in enumerate(statuses)
    ]
    return tables | {"status": pa.Table.from_pylist(rows, schema=tables["status"].schema)}


@pytest.mark.parametrize(
    ("statuses", "tile"),
    [
        (["OK", "OK"], '<div class="tile good"><b>0</b><span>groups behind or stuck</span>'),
        (
            ["OK", "UNKNOWN"],
            '<div class="tile "><b>0</b><span>groups behind or stuck; 1 cannot be judged</span>',
        ),
        (
            ["ERR", "UNKNOWN", "UNKNOWN"],
            '<div class="tile bad"><b>1</b><span>group behind or stuck: 1 ERR; 2 cannot be judged<',
        ),
        (
            ["UNKNOWN"],
            '<div class="tile "><b>\u2013</b><span>no group can be judged: no end offsets are',
        ),
    ],
)
def test_only_groups_that_can_be_judged_are_fine(tmp_path, statuses, tile):
    assert tile in written(tmp_path, judged(report_tables.day(groups=2), *statuses))


def test_charts_of_an_old_copy_end_where_its_log_ends(tmp_path):
    """Read a month later, everything that it tells would be one point at the left edge."""
    tables = report_tables.day(groups=3)
    much_later = END + timedelta(days=30)
    moments = [{**row, "at": much_later} for row in tables["lag"].to_pylist() if row["at"] == END]
    late = pa.Table.from_pylist(moments, schema=tables["lag"].schema)
    tables["lag"] = pa.concat_tables([tables["lag"], late])

    squeezed = report.write(tables.__getitem__, tmp_path / "a.html").read_text()
    text = report.write(tables.__getitem__, tmp_path / "b.html", log_end=END).read_text()

    edge = str(picks.milliseconds(much_later))
    drawn, less = (one.split('type="application/json">')[1:] for one in (squeezed, text))
    assert edge in "".join(drawn)
    assert edge not in "".join(less)
    assert "The log ends at 2026-11-20 20:00:00 UTC, 30 d before the moment of this" in text


def test_the_page_says_which_tables_are_of_a_later_moment_than_lag(tmp_path):
    tables = report_tables.day(groups=3)

    later = END + timedelta(hours=1)
    text = report.write(tables.__getitem__, tmp_path / "a.html", later_end=later).read_text()

    assert "Lag and status are those of 2026-11-20 20:00:00 UTC. The log was read on, so" in text
    assert "their members and their offsets are those of 2026-11-20 21:00:00 UTC." in text


def test_gaps_of_compaction_are_told(tmp_path):
    tables = report_tables.day(groups=2)
    assert "The history is complete from 2026-11-20 08:00:00 UTC on." in written(tmp_path, tables)

    table = tables["members"]
    late = pa.array([BEGIN + timedelta(hours=6)] * table.num_rows, table.schema[-1].type)
    tables["members"] = table.set_column(table.num_columns - 1, "complete_from", late)

    text = written(tmp_path, tables)
    assert '<p class="note">The history is complete from 2026-11-20 14:00:00 UTC on. What' in text


@pytest.mark.parametrize(
    ("row", "took"),
    [
        ({"seconds": 0.0421}, "42 ms"),
        ({"seconds": None, "seconds_at_least": 2.0, "seconds_at_most": 75.0}, "2 s to 1 min 15 s"),
        ({"seconds": None, "seconds_at_least": 0.0, "seconds_at_most": None}, "at least 0 s"),
        ({"seconds": None, "seconds_at_least": None, "outcome": "superseded"}, "superseded"),
    ],
)
def test_how_long_a_rebalance_took_is_told_as_well_as_it_is_known(row, took):
    assert rebalances.took({"seconds_at_most": None, **row}) == took


def test_who_caused_a_rebalance_is_told_by_names_that_people_know():
    def one(number, client=None, instance=None):
        return {
            "member_id": f"m-{number}",
            "client_id": client,
            "group_instance_id": instance,
        }

    row = {
        "joined": [one(1, "web"), one(2, "web"), one(3, "web", "web-3")],
        "gone": [one(4)],
        "changed": [one(number, f"c{number}") for number in range(9)],
    }

    assert rebalances.who(row) == (
        "joined web \u00d72, web-3; gone m-4; changed c0, c1, c2, c3, 5 more"
    )


def test_what_nobody_read_for_longest_is_the_costliest(tmp_path):
    """Though the coordinator had noticed nothing: the dead had not been read for seconds."""
    tables = report_tables.day(groups=1, rebalances=3)
    names = ("quick", "killed", "idle")
    told = {
        "quick": {"unread_seconds": 0.5, "longest_unread_seconds": 0.5},
        "killed": {"unread_seconds": 17.5, "longest_unread_seconds": 8.75, "unowned": []},
        "idle": {"unread_seconds": None, "longest_unread_seconds": None},
    }
    rows = tables["rebalances"].to_pylist()
    assert len(rows) == len(names)
    likely = [{"likely": "went silent"}, {"likely": None}, {"likely": "went silent"}]
    for name, row in zip(names, rows, strict=True):
        row.update(told[name] | {"gone": [{"client_id": name}], "joined": [], "possible": []})
        row.update({"trigger": "unknown", "likely": likely if name == "killed" else []})
    tables["rebalances"] = pa.Table.from_pylist(rows, tables["rebalances"].schema)

    text = " ".join(Read(written(tmp_path, tables)).text)

    table = text[text.index("The costliest") :]
    assert sorted(names, key=lambda name: table.index(f"gone {name}")) == [
        "killed",
        "quick",
        "idle",
    ]
    assert "unknown (likely went silent \u00d72)" in table
    assert "17.5 s" in table
    assert "8.75 s" in table


def test_where_nobody_read_is_drawn_over_the_owners():
    tables = report_tables.day(groups=1, rebalances=3)
    (silent,) = owners._unread(tables.__getitem__, pc.field("group_id").is_valid()).values()
    assert len(silent) == 3
    drawn = owners._silence(silent[0])
    assert drawn["place"] == "orders-0"
    assert drawn["from"] < drawn["to"]
    assert drawn["unread"] == picks.duration_text(silent[0]["seconds"])


def test_where_nobody_read_is_said_why_of_its_own_owner():
    tables = report_tables.day(groups=1, rebalances=40)
    (silent,) = owners._unread(tables.__getitem__, pc.field("group_id").is_valid()).values()
    told = {one["why"] for one in silent}
    assert "session timeout (likely went silent)" in told
    assert not any("left at work" in one for one in told)


def test_members_are_counted_at_each_change():
    def valid(start, end):
        return {
            "valid_from": BEGIN + timedelta(minutes=start),
            "valid_to": None if end is None else BEGIN + timedelta(minutes=end),
        }

    # The second row of a member begins where the first ends: no change of their number.
    steps = members.steps("g", [valid(0, 10), valid(10, None), valid(5, 20)], END)

    assert [(step["when"][11:16], step["members"]) for step in steps] == [
        ("08:00", 1),
        ("08:05", 2),
        ("08:10", 2),
        ("08:20", 1),
        ("20:00", 1),
    ]


@pytest.mark.parametrize(
    ("axis", "most", "ticks"),
    [
        (charts.amounts, 0, [0, 1]),
        (charts.amounts, 1, [0, 1, 2]),
        (charts.amounts, 12, [0, 2, 4, 6, 8, 10, 12, 14]),
        (charts.amounts, 10**12, [one * 2 * 10**11 for one in range(7)]),
        (charts.durations, 40, [0, 10, 20, 30, 40, 50]),
        (charts.durations, 1890, [0, 600, 1200, 1800, 2400]),
        (charts.durations, 10**9, [one * 166_666_667 for one in range(7)]),
    ],
)
def test_ticks_are_few_and_round(axis, most, ticks):
    assert axis(most).values == ticks


def test_a_long_series_keeps_its_peaks_and_its_end():
    series = [0] * 5000
    series[1234], series[-1] = 99, 7

    kept = picks.downsample(series, 100, float)

    assert len(kept) <= 100
    assert (max(kept), kept[-1]) == (99, 7)
    assert picks.downsample(series[:100], 100, float) == series[:100]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0, "0 s"),
        (0.04, "40 ms"),
        (59.94, "59.9 s"),
        (60, "1 min"),
        (3725, "1 h 2 min"),
        (86400 * 3 + 7200, "3 d 2 h"),
    ],
)
def test_durations_are_written_as_people_read_them(seconds, text):
    assert picks.duration_text(seconds) == text


# The page in a frame as wide as a phone (a window cannot be), which then takes the frame's place.
FRAME = """<!DOCTYPE html><html><body><iframe srcdoc="{page}" style="width: {width}px"></iframe>
<script>
setTimeout(() => {{
  const inside = document.querySelector("iframe").contentDocument;
  const root = inside.documentElement;
  const charts = [...inside.querySelectorAll(".chart svg")].map((one) => one.clientWidth);
  inside.body.dataset.overflow = root.scrollWidth - root.clientWidth;
  inside.body.dataset.narrowest = Math.min(...charts);
  inside.body.dataset.cut = [...inside.querySelectorAll(".scroll, .chart")].filter((one) =>
    one.scrollWidth > one.clientWidth + 1).length;
  root.removeChild(root.querySelector("head"));
  document.documentElement.innerHTML = root.innerHTML;
}}, 4000);
</script></body></html>
"""


def browse(tmp_path, *flags, width=1400, height=1000):
    return subprocess.run(
        [
            CHROMIUM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            f"--user-data-dir={tmp_path / 'browser'}",
            "--virtual-time-budget=8000",
            f"--window-size={width},{height}",
            *flags,
            (tmp_path / "seen.html").as_uri(),
        ],
        capture_output=True,
        timeout=SOON_S,
        check=True,
        encoding="utf-8",
        errors="replace",
    ).stdout


def test_members_of_one_name_have_names_of_their_own_in_the_legend():
    bars = [
        {"member": member, "client": client, "from": at}
        for at, (member, client) in enumerate(
            [("c-000002", "worker"), ("a-000001", "worker"), ("b", "other"), ("x-000001", "worker")]
        )
    ]
    assert owners._owners(bars[::-1]) == {
        "c-000002": "worker 000002",
        "a-000001": "worker 000001",
        "b": "other",
        "x-000001": "worker x-000001",
    }


def test_members_are_drawn_from_change_to_change_and_not_where_there_are_none():
    points = [{"at": at, "members": number} for at, number in ((0, 1), (10, 2), (20, 0), (30, 1))]
    found = members._spans(points, BEGIN)
    end = picks.milliseconds(BEGIN)
    assert [(one["at"], one["to"], one["members"]) for one in found] == [
        (0, 10, 1),
        (10, 20, 2),
        (30, end, 1),
    ]


def test_the_page_says_where_it_comes_from_and_how_old_it_is(tmp_path):
    text = written(tmp_path, report_tables.day(), source="log:/a<b")
    assert "Read from log:/a&lt;b, as of 2026-11-20 20:00:00 UTC<span" in text
    assert f'class="age" data-at="{picks.milliseconds(END)}"' in text


def test_rebalances_stand_in_the_order_of_time(tmp_path):
    text = written(tmp_path, report_tables.day(groups=1, rebalances=300))
    told, _, rest = text.partition("In the order of time")[2].partition("</summary>")
    times = re.findall(r'data-label="began \(UTC\)">([^<]+)', rest.partition("</details>")[0])
    assert told == ", the latest first: 300 rebalances, of which the latest 200 are here"
    assert len(times) == 200
    assert times == sorted(times, reverse=True)


def test_each_group_has_a_fold(tmp_path):
    tables = report_tables.day(groups=5)
    text = written(tmp_path, tables).partition('<section id="groups">')[2].partition("<section")[0]
    folds = text.split("<details>")[1:]
    assert len(folds) == 5
    for fold in folds:
        group = unescape(fold.partition("<summary>")[2].partition(": ")[0])
        alone = pc.equal(tables["rebalances"].column("group_id"), group)
        assert f"{pc.sum(alone).as_py()} rebalance" in fold.partition("</summary>")[0]
        now = [
            row["topic_partition"]
            for row in tables["assignments"].to_pylist()
            if row["group_id"] == group and row["valid_to"] is None
        ]
        counts = re.findall(r'data-label="partitions">(\d+)', fold)
        assert sum(map(int, counts)) == len(now) > 0


def test_a_chart_of_one_moment_is_a_line_of_text_that_says_what_to_do(tmp_path):
    tables = report_tables.day()
    newest = pc.max(tables["lag"]["at"])
    tables["lag"] = tables["lag"].filter(pc.equal(tables["lag"]["at"], newest))
    tables["lag_history"] = tables["lag_history"].slice(0, 0)
    text = written(tmp_path, tables)
    assert not [one for one in figures(text) if one.startswith("lag-")]
    assert f"Lag in records is known of one moment only, {picks.when(newest.as_py())}." in text
    assert "kohort pipeline snapshot --every 30s" in text


def test_partitions_in_a_row_are_told_as_a_range():
    assert groups._ranges([7, 0, 1, 2, 9, 10]) == "0-2, 7, 9-10"


@needs_a_browser
def test_a_part_of_the_time_can_be_shown(tmp_path):
    """The last hour of a day, in every chart of time and in no other."""
    text = written(tmp_path, report_tables.day())
    press = "document.querySelector('#range button[data-seconds=\"3600\"]').click()"
    head, _, tail = text.rpartition("</body>")
    (tmp_path / "seen.html").write_text(f"{head}<script>{press}</script></body>{tail}", "utf-8")

    dom = browse(tmp_path, "--dump-dom")

    assert 'data-seconds="3600" aria-pressed="true"' in dom
    assert dom.count('data-drawn="yes"') == len(figures(text))
    for one in dom.split("<figure ")[1:]:
        place = one.partition("</figure>")[0].partition("<script")[0]
        clock = re.findall(r">(\d\d:\d\d)<", place)
        if one.startswith('id="rebalance-causes"'):
            assert not clock
        else:
            assert clock, place[:300]
            assert set(clock) <= {f"19:{minute:02}" for minute in range(60)} | {"20:00"}


@needs_a_browser
@pytest.mark.parametrize("width", [1200, 390])
def test_every_chart_draws_on_every_screen(width, tmp_path):
    text = written(tmp_path, report_tables.day())
    framed = FRAME.format(page=escape(text), width=width)
    (tmp_path / "seen.html").write_text(framed, encoding="utf-8")

    dom = browse(tmp_path, "--dump-dom")

    drawn = dom.split("<figure ")[1:]
    assert len(drawn) == len(figures(text)) == 4 + 6 + 1
    for one in drawn:
        place = one.partition("</figure>")[0].partition("<script")[0]
        assert 'data-drawn="yes"' in place, place[:300]
        marks = re.findall(r'<g class="mark-(?:line|rect|area|symbol) role-mark', place)
        shapes = re.findall(r'<path [^>]*d="M[^"]{5,}"', place)
        assert marks, place[:300]
        assert len(shapes) >= 5, place[:300]
    assert 'data-overflow="0"' in dom
    narrowest = int(re.search(r'data-narrowest="(\d+)"', dom)[1])
    assert width * 0.85 < narrowest <= width


@needs_a_browser
def test_the_axes_of_time_stand_one_below_the_other(tmp_path):
    """Who sees a rebalance in one chart looks for it in the next one, straight below."""
    text = written(tmp_path, report_tables.day())
    measure = """<script>setTimeout(() => {
      const lefts = [...document.querySelectorAll("figure")].filter((one) =>
        /"type":"temporal"/.test(one.querySelector("script").textContent)).map((one) =>
        [...one.querySelectorAll(".mark-group > g > path.background")].map((background) =>
          Math.round(background.getBoundingClientRect().left))[0]);
      document.body.dataset.lefts = lefts.join(",");
    }, 4000);</script>"""
    head, _, tail = text.rpartition("</body>")
    (tmp_path / "seen.html").write_text(f"{head}{measure}</body>{tail}", encoding="utf-8")

    dom = browse(tmp_path, "--dump-dom")

    lefts = [*map(int, re.search(r'data-lefts="([\d,]+)"', dom)[1].split(","))]
    assert len(lefts) >= 9
    assert max(lefts) - min(lefts) <= 1, lefts  # a pixel of rounding


@needs_a_browser
def test_nothing_is_cut_on_paper(tmp_path):
    """A sheet of A4 has 190 mm between its margins; what is wider than it is not printed."""
    text = written(tmp_path, report_tables.day(groups=12))
    on_paper = text.replace("@media print {", "@media all {").replace("@page { margin: 12mm; }", "")
    assert on_paper != text
    framed = FRAME.format(page=escape(on_paper), width=718)
    (tmp_path / "seen.html").write_text(framed, encoding="utf-8")

    dom = browse(tmp_path, "--dump-dom")

    assert 'data-overflow="0"' in dom
    assert 'data-cut="0"' in dom
    assert int(re.search(r'data-narrowest="(\d+)"', dom)[1]) > 600


@needs_a_browser
def test_a_group_is_found_among_many(tmp_path):
    text = written(tmp_path, report_tables.day(groups=12))
    typing = """<script>
      const field = document.querySelector("#groups .search input");
      field.value = "GROUP-7"; field.dispatchEvent(new Event("input"));
      const seen = [...document.querySelectorAll("#groups details")].filter((one) => !one.hidden);
      document.body.dataset.seen = seen.map((one) =>
        one.querySelector("summary").textContent.split(":")[0]).join(",");
      field.value = "nobody"; field.dispatchEvent(new Event("input"));
      document.body.dataset.told = document.querySelector("#groups .search span").textContent;
    </script>"""
    head, _, tail = text.rpartition("</body>")
    (tmp_path / "seen.html").write_text(f"{head}{typing}</body>{tail}", encoding="utf-8")

    dom = browse(tmp_path, "--dump-dom")

    assert 'data-seen="group-7"' in dom
    assert 'data-told="not on this page: kohort pipeline report --group NAME' in dom
    assert "find a group" not in written_again(report_tables.day(groups=3))


def written_again(tables):
    return page.document("Few", [], [groups.section(tables.__getitem__, None)], "")


@needs_a_browser
@pytest.mark.parametrize("dark", [False, True])
def test_causes_have_their_colours_on_the_screen(dark, tmp_path):
    section = rebalances.section(report_tables.day(rebalances=40).__getitem__, None)
    narrowed = section._replace(content=section.content[:3])
    text = page.document("Colours", [], [narrowed], "")
    (tmp_path / "seen.html").write_text(text, encoding="utf-8")
    flags = ["--blink-settings=preferredColorScheme=0"] if dark else []

    browse(tmp_path, f"--screenshot={tmp_path / 'seen.png'}", *flags, width=700, height=800)

    colours = pixels((tmp_path / "seen.png").read_bytes())
    (background, most), *_ = colours.most_common(1)
    assert background == (bytes.fromhex("12161c") if dark else b"\xff\xff\xff")
    assert most < 700 * 800
    for trigger, colour in rebalances.COLOURS.items():
        assert colours[bytes.fromhex(colour[1:])] > 200, trigger


def pixels(png):
    """How often each colour is in a picture, as 3 bytes. Not interlaced, 8 bits: a screenshot."""
    at, data, width, depth = 8, b"", 0, 0
    while at < len(png):
        size, kind = struct.unpack_from(">I4s", png, at)
        body = png[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, _, bits, colour = struct.unpack_from(">IIBB", body)
            assert (bits, colour in {2, 6}) == (8, True)
            depth = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            data += body
        at += 12 + size
    lines = zlib.decompress(data)
    stride = width * depth
    found = Counter()
    above = bytearray(stride)
    for start in range(0, len(lines), stride + 1):
        line = bytearray(lines[start + 1 : start + 1 + stride])
        unfilter(lines[start], line, above, depth)
        found.update(bytes(line[at : at + 3]) for at in range(0, stride, depth))
        above = line
    return found


def unfilter(kind, line, above, depth):
    """Undo what PNG does to a line before it is compressed (its specification, section 9)."""
    for at in range(len(line)) if kind else ():
        left = line[at - depth] if at >= depth else 0
        up = above[at]
        if kind == 1:
            add = left
        elif kind == 2:
            add = up
        elif kind == 3:
            add = (left + up) // 2
        else:
            corner = above[at - depth] if at >= depth else 0
            guess = left + up - corner
            add = min((left, up, corner), key=lambda one: abs(guess - one))
        line[at] = (line[at] + add) & 255


def empty(name):
    return known_tables()[name].arrow.empty_table()


@pytest.mark.parametrize("failing", ["write_text", "replace"])
def test_a_report_that_cannot_be_written_leaves_the_earlier_one(tmp_path, monkeypatch, failing):
    page_of_before = tmp_path / "report.html"
    page_of_before.write_text("before")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path if failing == "write_text" else report.os, failing, full)
    with pytest.raises(KohortError, match=r"report\.html cannot be written: No space left on dev"):
        report.write(empty, page_of_before)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert page_of_before.read_text() == "before"


def test_reports_that_are_written_at_once_disturb_nobody(tmp_path):
    """A run draws one, and somebody calls `pipeline report`."""
    page = tmp_path / "report.html"
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: report.write(empty, page), range(40)))
    assert done == [page] * 40
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_of_samples_alone_there_is_no_report(tmp_path):
    publish(tmp_path, {"end_offsets": [{"topic": "t"}]})
    with pytest.raises(KohortError, match="has samples only, and no run has read a log yet"):
        report.write_into(tmp_path)
