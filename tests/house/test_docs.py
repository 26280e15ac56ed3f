"""What the documentation says about the code is what the code says."""

import importlib.util
from pathlib import Path

import pytest

from kohort.server.routes import ROUTES
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


def test_links_between_documents_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for part in page.read_text(encoding="utf-8").split("](")[1:]:
            target = part.split(")")[0].split("#")[0]
            if target and "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
