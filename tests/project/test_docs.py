# SPDX-License-Identifier: Apache-2.0
"""What the documentation says about the code is what the code says."""

import ast
import importlib.util
import re
from dataclasses import fields
from pathlib import Path

import pytest

from kohort import Consumer
from kohort.client.consumer.settings import ConsumerSettings
from kohort.config.broker import MIGRATION_POLICIES
from kohort.server.network.routes import ROUTES
from kohort.wire.apis import APIS

ROOT = Path(__file__).parents[2]


def generator():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = generator().PAGES


@pytest.mark.parametrize("page", PAGES)
def test_generated_pages_are_up_to_date(page):
    """Run `make docs` when this fails."""
    written = (ROOT / "docs" / page).read_text(encoding="utf-8")

    assert written == PAGES[page]()


def test_every_page_of_a_table_is_of_a_table():
    written = {f"tables/{path.name}" for path in (ROOT / "docs" / "tables").iterdir()}

    assert written == {page for page in PAGES if page.startswith("tables/")}


@pytest.mark.parametrize("table", generator().TABLES, ids=lambda table: table.name)
def test_a_table_says_what_it_is(table):
    assert table.text.endswith(".")
    assert table.computed.endswith(".")
    assert all(column.text for column in table.columns)
    if table.layer == "gold":
        assert table.unknown.endswith("."), "a measure says what it cannot know"


def test_every_served_api_has_a_route():
    assert set(ROUTES) == {api.request for api in APIS.values()}


def test_every_message_file_is_served():
    """A file in wire/messages is an API in the table: the list of files is the list of APIs."""
    files = {path.stem for path in (ROOT / "src/kohort/wire/messages").glob("[a-z]*.py")}

    assert files == {api.request.__module__.rpartition(".")[2] for api in APIS.values()}


GUIDES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
TREES = ("src", "tests", "docs", "benchmarks", "examples", "deploy")
WRITTEN_LATER = {"benchmarks/results/", "deploy/secure"}
PACKAGES = {path.name for path in (ROOT / "src/kohort").iterdir() if path.is_dir()}


def places_in(text):
    """What stands between backticks and looks like a place in the repository: from its root, as
    `tests/wire`, or from the package, as `server/network/dispatcher.py`.
    """
    for code in re.findall(r"`([^`\n]+)`", text):
        if re.fullmatch(r"[\w.-]+(/[\w.-]*)+", code):
            first = code.partition("/")[0]
            if first in TREES:
                yield code, ROOT / code
            elif first in PACKAGES:
                yield code, ROOT / "src/kohort" / code


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_a_page_names_exist(page):
    for name, path in places_in(page.read_text(encoding="utf-8")):
        assert path.exists() or name in WRITTEN_LATER, f"{page.relative_to(ROOT)} names `{name}`"


def test_what_is_taken_for_a_file():
    text = "`server/gone.py` and `docs/x/` but not `a/b`, `gold/<table>/`, ``, `server gone`"
    assert [name for name, _ in places_in(text)] == ["server/gone.py", "docs/x/"]


def broken_commands(text):
    """Lines of code that name a program without its interpreter, or an interpreter alone: a command
    that was wrapped as if it were prose.
    """
    begins = r" {4}(benchmarks|docs|examples|tools)/\w+\.py\b"
    return [line for line in text.splitlines() if re.match(rf"{begins}| {{4}}.*/bin/python$", line)]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_a_page_are_whole(page):
    assert broken_commands(page.read_text(encoding="utf-8")) == []


def test_what_is_taken_for_a_broken_command():
    whole = "    .venv/bin/python benchmarks/run.py\n"
    assert broken_commands(whole) == []
    wrapped = "    make bench .venv/bin/python\n    benchmarks/run.py # all\n"
    assert broken_commands(wrapped) == wrapped.splitlines()


def test_links_between_documents_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for part in page.read_text(encoding="utf-8").split("](")[1:]:
            target = part.split(")")[0].split("#")[0]
            if target and "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_guide_to_the_new_protocol_has_every_policy_and_every_refusal():
    """K848-183."""
    guide = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
    for policy in MIGRATION_POLICIES:
        assert f"| `{policy}` |" in guide
    for chapter in ("Settings of the client", "Callbacks", "Patterns", "Assignors"):
        assert f"## {chapter}\n" in guide
    source = (ROOT / "src/kohort/coordinator/migration/upgrade.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    texts = [one.value for one in ast.walk(tree) if isinstance(one, ast.Constant)]
    reasons = [
        one for one in texts if isinstance(one, str) and re.match(r"(online|the) .*\.$", one)
    ]
    assert len(reasons) == 4
    for reason in [*reasons, "an unsupported custom assignor is in use."]:
        assert f"`{reason}" in guide


CLIENTS = {"consumer.md": (Consumer, ConsumerSettings)}


def spelled(default):
    """A default as a page shows it: as upstream's property would have it."""
    if isinstance(default, tuple):
        return f"`{','.join(default)}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default}`" if isinstance(default, str) else str(default)


@pytest.mark.parametrize("page", CLIENTS)
def test_the_page_of_a_client_has_every_setting_with_its_default(page):
    _, settings = CLIENTS[page]
    chapter = (ROOT / "docs" / page).read_text(encoding="utf-8").partition("\n## Settings\n")[2]
    shown = re.findall(r"^\| `([a-z_]+)` \| (\S+) \|", chapter, re.MULTILINE)

    assert dict(shown) == {one.name: spelled(one.default) for one in fields(settings)}
    assert len(shown) == len(dict(shown))


@pytest.mark.parametrize("page", CLIENTS)
def test_the_page_of_a_client_has_every_call(page):
    client, _ = CLIENTS[page]
    chapter = (ROOT / "docs" / page).read_text(encoding="utf-8").partition("\n## Calls\n")[2]
    table = chapter.partition("\n## ")[0]
    calls = {name for name in vars(client) if not name.startswith("_")}

    assert calls <= set(re.findall(r"`([a-z_]+)\(", table)), "each stands in the table"
