# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of the documentation that the code knows better: run by `make docs`,
held by a test.
"""

import sys
from functools import partial
from pathlib import Path

from kohort.config import BROKER_SETTINGS, DYNAMIC_NAMES
from kohort.config.settings import text_of
from kohort.pipeline.schemas import END_OFFSETS, OBSERVED_HISTORY, RAW, RECORDS_TABLE, SILVER, Table
from kohort.pipeline.schemas.snapshots import GROUPS_NOW, OFFSETS_NOW
from kohort.server.metrics.metrics import METRICS, PROCESS, served_name
from kohort.spark.engine.frames import struct_of
from kohort.spark.gold import MEASURES
from kohort.wire.apis import APIS

HERE = Path(__file__).parent

PROTOCOL_HEAD = """\
# Served APIs

These are the APIs that a Kohort broker offers in ApiVersions. The ranges of versions are those of
Apache Kafka 4.3.1. Keys from 20000 on are ours: no Kafka has these APIs, and clients skip keys that
they do not know. [skipped.md](skipped.md) names the APIs that are not offered, and says why
DescribeQuorum is none.

| key | API | versions | first flexible | what it is |
|---|---|---|---|---|
"""

CONFIG_HEAD = """\
# Settings of the broker

Settings have Kafka's names. Give them as `-X name=value` or in a `server.properties` with
`--config`; a flag wins over `-X`, and `-X` wins over the file. A name that Kafka knows and that has
no effect here is accepted, and a warning names it once. Any other name is refused.

Settings with a dot in the column "at runtime" can be changed while the broker runs, and count at
once: IncrementalAlterConfigs of the resource BROKER, by the broker's id or for all by the empty
name. A change is kept in the data directory, wins over file and `-X` after a restart, and leaves a
line in the broker's log. With Kafka's own tools:

```console
$ kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --entity-type brokers --entity-name 0 \\
    --alter --add-config log.retention.ms=3600000
```

Settings of topics (`--entity-type topics`) can always be changed, and those of groups by
[`kohort groups config`](cli.md#kohort-groups-config-group).

| name | default | at runtime | meaning |
|---|---|---|---|
"""

TABLES_HEAD = """\
# Tables of the pipeline

`kohort pipeline run` keeps these in its `--out` directory. Read one with
`kohort pipeline show TABLE --out DIR`, or in Python:

```python
import kohort.tables

lag = kohort.tables.read("out", "lag")  # a table of Arrow, without Spark: .to_pandas()
```

```python
import kohort.spark

lag = kohort.spark.read("out", "lag")  # a DataFrame of Spark
```

When they are read, the last column of each is `cluster`: the name of the cluster, or its id; null
where neither is known. Times are timestamps in UTC. `partition` and `offset` are a position in
`__consumer_offsets`; a topic's own partition is `topic_partition`.

"""
LAYERS = {
    "rows": "what formats of Spark give: raw rows (`kohort.log`, `kohort.topic`) and snapshots",
    "bronze": "what was read",
    "silver": "what the records say, one table per record type",
    "gold": "what people ask",
    "past": "what runs have seen, which none can compute again",
}
TABLES = (
    *(RAW, GROUPS_NOW, OFFSETS_NOW),
    *(RECORDS_TABLE, END_OFFSETS, *SILVER),
    *(measure.table for measure in MEASURES),
    *OBSERVED_HISTORY,
)


def protocol() -> str:
    """docs/protocol.md"""
    rows = []
    for api in sorted(APIS.values()):
        idea = (sys.modules[api.request.__module__].__doc__ or "").partition(": ")[2]
        idea = idea.split("\n\n")[0].replace("\n", " ").rstrip(".")
        flexible = str(api.request.flexible).removesuffix("+")
        rows.append(f"| {api.key} | {api.name} | {api.versions} | {flexible} | {idea} |")
    return PROTOCOL_HEAD + "\n".join(rows) + "\n"


def settings() -> str:
    """docs/settings.md"""
    rows = [
        f"| `{name}` | `{text_of(setting.default) or ' '}` "
        f"| {'•' if name in DYNAMIC_NAMES else ''} | {setting.doc} |"
        for name, setting in sorted(BROKER_SETTINGS.items())
    ]
    return CONFIG_HEAD + "\n".join(rows) + "\n"


def tables() -> str:
    """docs/tables/README.md"""
    parts = [TABLES_HEAD]
    for layer, meaning in LAYERS.items():
        parts.append(
            f"## {layer.capitalize()}: {meaning}\n\n| table | what it holds |\n|---|---|\n"
        )
        parts += [
            f"| [{table.name}]({table.name}.md) | {table.text.partition('. ')[0].rstrip('.')} |\n"
            for table in TABLES
            if table.layer == layer
        ]
        parts.append("\n")
    return "".join(parts).rstrip() + "\n"


def table_page(table: Table) -> str:
    """docs/tables/<name>.md"""
    fields = [
        f"| `{field.name}` | {field.dataType.simpleString()} | {column.text} |"
        for field, column in zip(struct_of(table), table.columns, strict=True)
    ]
    return "\n".join(
        [
            f"# {table.name} ({table.layer})\n",
            f"{table.text}\n",
            "| column | type | meaning |",
            "|---|---|---|",
            *fields,
            "",
            f"**How it is computed.** {table.computed}\n",
            f"**What it cannot know.** {table.unknown or 'Nothing is missing here.'}",
            "",
        ]
    )


def between(page: str, name: str, rows: list[str]) -> str:
    """A page that is written by hand, with rows between two marks of this name."""
    text = (HERE / page).read_text(encoding="utf-8")
    before, begin, rest = text.partition(f"<!-- {name}: begin -->\n")
    _, end, after = rest.partition(f"<!-- {name}: end -->\n")
    return "".join([before, begin, *(f"{row}\n" for row in rows), end, after])


def architecture() -> str:
    """docs/architecture.md, with the table of layers that a test holds the imports to."""
    from tests.project.test_layers import IMPORT_LAYERS  # noqa: PLC0415  (as below)

    rows = ["| layer | packages |", "|---|---|"]
    for layer in sorted(set(IMPORT_LAYERS.values()), reverse=True):
        packages = ", ".join(f"`{name}`" for name, its in IMPORT_LAYERS.items() if its == layer)
        rows.append(f"| {layer} | {packages} |")
    return between("architecture.md", "layers", rows)


def metrics() -> str:
    """docs/metrics.md, with every metric that is served."""
    rows = ["| metric | kind | labels | what it is | in Apache Kafka |", "|---|---|---|---|---|"]
    rows += [
        f"| `{served_name(one)}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} "
        f"| {one.text} | {one.kafka and f'`{one.kafka}`'} |"
        for one in METRICS
    ]
    rows += [f"| `{name}` | | | {text} | |" for name, text in PROCESS.items()]
    return between("metrics.md", "metrics", rows)


def conformance() -> str:
    """docs/conformance.md"""
    from tests.project.requirements import page  # noqa: PLC0415  (it lies beside, not on the path)

    return page()


def public_api() -> str:
    """docs/public-api.txt"""
    from tools.public_api import page  # noqa: PLC0415  (as above)

    return page()


PAGES = {
    "architecture.md": architecture,
    "conformance.md": conformance,
    "metrics.md": metrics,
    "protocol.md": protocol,
    "public-api.txt": public_api,
    "settings.md": settings,
    "tables/README.md": tables,
    **{f"tables/{table.name}.md": partial(table_page, table) for table in TABLES},
}

if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))  # the folder of the tests and tools
    (HERE / "tables").mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")
