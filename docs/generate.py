"""Writes the tables of the documentation that the code knows better: run by `make docs`, held by
a test.
"""

import sys
from pathlib import Path

from kohort.config import BROKER_SETTINGS
from kohort.config.settings import text_of
from kohort.wire.apis import APIS

HERE = Path(__file__).parent

PROTOCOL_HEAD = """\
# Served APIs

What a Kohort broker offers in ApiVersions. Each version stands here only because it is truly
implemented;
the ranges are those of Apache Kafka 4.3.1.

| key | API | versions | first flexible | what it is |
|---|---|---|---|---|
"""

CONFIG_HEAD = """\
# Settings of the broker

Upstream's names, in `-X name=value` or in a `server.properties` given with `--config`; flags win
over `-X`, `-X` over the
file. A name that upstream knows and that means nothing here is accepted and named once in a
warning; any other is refused.

| name | default | meaning |
|---|---|---|
"""


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
        f"| `{name}` | `{text_of(setting.default) or ' '}` | {setting.doc} |"
        for name, setting in sorted(BROKER_SETTINGS.items())
    ]
    return CONFIG_HEAD + "\n".join(rows) + "\n"


PAGES = {"protocol.md": protocol, "settings.md": settings}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")
