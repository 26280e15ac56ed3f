# SPDX-License-Identifier: Apache-2.0
"""What Google Cloud Storage and Azure say, and obstore does not: causes, one sentence, the time."""

import errno
import subprocess
import sys
import tempfile
import threading
from datetime import UTC, datetime

import pytest
from tests.pipeline.stores import cloud
from tests.pipeline.stores.faulty import once

from kohort.errors import KohortError
from kohort.pipeline.stores import clouds
from kohort.pipeline.stores.clouds import Cloud
from kohort.pipeline.stores.failures import ConflictError, MissingError, StoreError

pytestmark = pytest.mark.clouds
BOTH = pytest.mark.parametrize("server", ["azure", "google"], indirect=True)
AZURE = pytest.mark.parametrize("server", ["azure"], indirect=True)
FORKING = """
import os, sys
from kohort.errors import KohortError
from kohort.pipeline.stores.places import place_of
place = place_of(sys.argv[1])
place.root.objects.put(place.key, b"1")
if os.fork() == 0:
    try:
        place.root.objects.read(place.key)
    except KohortError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
print(place.root.objects.read(place.key).decode())
"""


def xml(code, message):
    """How both say why."""
    return (
        f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}\nId:7</Message></Error>"
    )


@pytest.fixture
def anew():
    """Clients are made by what the environment says now."""
    clouds._made.cache_clear()
    yield
    clouds._made.cache_clear()


def answers(status, code="", message=""):
    body = xml(code, message).encode() if code else b""
    return lambda *_: (status, body)


@BOTH
@pytest.mark.parametrize(
    ("answer", "kind", "number", "words"),
    [
        (answers("404 Not Found"), MissingError, errno.ENOENT, "there is no such object"),
        (answers("404 No", "NoSuchBucket", "x"), StoreError, errno.ENXIO, "there is no"),
        (answers("404 No", "ContainerNotFound", "x"), StoreError, errno.ENXIO, "there is no"),
        (answers("403 No", "AccessDenied", "May not."), StoreError, errno.EACCES, "May not."),
        (answers("401 Unauthorized"), StoreError, errno.EACCES, "answered 401: Unauthorized"),
        (answers("400 No", "Odd", "It is odd."), StoreError, errno.EIO, "answered Odd: It is odd."),
        (answers("409 No", "Immutable", "No."), StoreError, errno.EIO, "answered Immutable: No."),
        (answers("429 No"), StoreError, errno.EIO, "answered 429: Too Many Requests"),
    ],
)
def test_a_refusal_is_told_in_one_sentence(
    server, objects, key, quick, answer, kind, number, words
):
    with server.failing(answer), pytest.raises(StoreError) as raised:
        objects.read(key)
    assert (type(raised.value), raised.value.errno) == (kind, number)
    text = str(raised.value)
    assert text.startswith(f"{server.start}{key}: ")
    assert words in text
    assert "\n" not in text


@BOTH
@pytest.mark.parametrize(
    "code", ["BlobAlreadyExists", "PreconditionFailed", "WordsOfAnotherVersion", ""]
)
def test_what_another_has_written_is_told_as_that(server, objects, key, code):
    with server.failing(answers("412 No", code, "x")), pytest.raises(ConflictError):
        objects.swap(key, b"1", None)


@AZURE
def test_a_container_that_is_not_there(server, objects):
    other = Cloud(objects.scheme, objects.where.replace(cloud.NAME, "nowhere"))
    for asked in (
        lambda: other.put("x", b"1"),
        lambda: other.read("x"),
        lambda: list(other.listed("x")),
    ):
        with pytest.raises(StoreError, match=r"/x: there is no container nowhere$") as raised:
            asked()
        assert raised.value.errno == errno.ENXIO


@BOTH
def test_where_nobody_listens_the_host_is_named(server, objects, key, quick, monkeypatch):
    for name in server.environ:
        monkeypatch.setenv(name, "http://127.0.0.1:1/x")
    with pytest.raises(StoreError, match=r"127\.0\.0\.1:1 does not answer: Connection refused$"):
        objects.put(key, b"1")


@BOTH
@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("https://{}", "does not answer: InvalidMessage"),
        ("http://nowhere.invalid", "nowhere.invalid does not answer: failed to lookup address"),
    ],
)
def test_why_nobody_answers(server, objects, key, quick, monkeypatch, endpoint, words):
    for name in server.environ:
        monkeypatch.setenv(name, endpoint.format(server.address))
    with pytest.raises(StoreError, match=words):
        objects.put(key, b"1")


@BOTH
def test_what_takes_too_long_is_said(server, objects, key, quick, anew, monkeypatch):
    monkeypatch.setattr(clouds, "TRIES", 2)
    monkeypatch.setattr(clouds, "_MINUTE_S", 0.2)
    ended = threading.Event()
    with (
        server.failing(lambda *_: ended.wait(1)),
        pytest.raises(StoreError, match=r"does not answer: it takes too long$"),
    ):
        objects.put(key, b"1")
    ended.set()


@BOTH
def test_an_answer_that_breaks_off_is_asked_for_again(server, objects, key, quick):
    objects.put(key, bytes(1000))
    with server.failing(once("GET", "half")):
        assert objects.read(key) == bytes(1000)
    with server.failing(once("GET", "half")):
        assert objects.read(key, 10, 900) == bytes(890)


@AZURE
def test_a_wrong_key_is_refused(server, objects, key, anew, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "AAAA")
    with pytest.raises(StoreError, match="the store answered AuthorizationFailure") as raised:
        objects.put(key, b"1")
    assert raised.value.errno == errno.EACCES
    clouds._made.cache_clear()
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "*")
    with pytest.raises(KohortError, match=r"cannot be used: .*Invalid Access Key"):
        objects.put(key, b"1")


@AZURE
def test_where_nobody_gives_credentials_they_are_missed_at_once(
    server, objects, key, anew, monkeypatch
):
    """A machine outside of Azure waits for nobody."""
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_KEY")
    monkeypatch.setenv("AZURE_MSI_ENDPOINT", f"{server.url}/identity")
    with server.failing(answers("403 No")), pytest.raises(StoreError) as raised:
        objects.put(key, b"1")
    assert "there are no credentials: 127.0.0.1:" in str(raised.value)
    assert str(raised.value).endswith("was asked for some and answered 403")
    clouds._made.cache_clear()
    monkeypatch.setenv("AZURE_MSI_ENDPOINT", "http://127.0.0.1:1/identity")
    with pytest.raises(StoreError, match=r"was asked for some and does not answer$") as raised:
        objects.put(key, b"1")
    assert raised.value.errno == errno.EACCES


@AZURE
def test_a_signature_in_an_address_is_not_told(server, objects, key, quick, anew, monkeypatch):
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_KEY")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", cloud.shared_access())
    objects.put(key, b"1")
    assert objects.read(key) == b"1"
    for fault, words in (("away", "the store answered 503"), ("cut", "the store does not answer")):
        with server.failing(lambda *_, fault=fault: fault), pytest.raises(StoreError) as raised:
            objects.put(key, b"1")
        assert words in str(raised.value)
        causes = [raised.value, raised.value.__cause__, raised.value.__cause__.__cause__]
        assert not [one for one in causes if "sig=" in str(one)]


@AZURE
def test_a_container_without_its_account_is_of_the_one_in_the_environment(
    server, objects, key, anew, monkeypatch
):
    objects.put(key, b"1")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", cloud.ACCOUNT)
    assert Cloud("az", cloud.NAME).read(key) == b"1"


@BOTH
def test_a_file_is_put_as_a_whole(server, objects, key, monkeypatch):
    monkeypatch.setattr(clouds, "_BYTES_A_MINUTE", 1 << 20)
    data = bytes(range(256)) * (10 << 12)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        with server.failing(once("PUT", "away")):
            objects.put(key, file)
    assert objects.read_end(key, len(data)) == (len(data), data)
    assert objects.read(key, len(data) - 5) == data[-5:]


@BOTH
def test_an_empty_file_is_put(objects, key):
    objects.put(key, b"1")
    with tempfile.TemporaryFile() as file:
        objects.put(key, file)
    assert (objects.read(key), objects.read_end(key, 10)) == (b"", (0, b""))


@BOTH
def test_large_reads_have_as_many_minutes_as_large_puts(objects, key, monkeypatch):
    monkeypatch.setattr(clouds, "_BYTES_A_MINUTE", 100)
    asked, client = [], Cloud._client
    monkeypatch.setattr(Cloud, "_client", lambda *told: asked.append(told[1]) or client(*told))
    objects.put(key, bytes(250))
    assert asked == [3]
    for read, minutes in (
        (lambda: objects.read(key), [1, 3]),
        (lambda: objects.read(key, 10), [1, 3]),
        (lambda: objects.read(key, 0, 250), [3]),
        (lambda: objects.read(key, 200, 250), [1]),
        (lambda: objects.read_end(key, 150)[1], [1, 2]),
    ):
        asked.clear()
        assert set(read()) == {0}
        assert asked == minutes


@BOTH
def test_what_obstore_does_not_take_is_told_as_a_refusal(objects, key):
    for asked in (
        lambda: objects.put(f"{key}//x", b"1"),
        lambda: objects.read(f"{key}/./x"),
        lambda: objects.read(key, 2, 2),
    ):
        with pytest.raises(StoreError) as raised:
            asked()
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("source: Os { code: 111, kind: ConnectionRefused }", "Connection refused"),
        ("source: Custom { kind: TimedOut, error: x }", "it takes too long"),
        ('Custom { kind: Other, error: "failed to lookup" }', "failed to lookup"),
        ("IncompleteMessage", "the connection was closed"),
    ],
)
def test_why_nobody_answers_in_the_words_of_its_libraries(words, why):
    assert clouds._why(words) == why


@BOTH
def test_the_time_is_asked_for_by_writing(server, objects, key):
    objects.swap(key, b"1", None)
    there = objects.current(key)
    del server.asked[:]
    assert abs((datetime.now(UTC) - there.now()).total_seconds()) < 60
    assert [asked for asked, _ in server.asked] == ["PUT", "HEAD"]
    assert all(path.endswith("/one.now") for _, path in server.asked)


@BOTH
def test_after_a_fork_it_says_so_and_does_not_hang(server, place):
    done = subprocess.run(
        [sys.executable, "-c", FORKING, str(place)], capture_output=True, check=False, timeout=60
    )
    told, found = done.stdout.decode().splitlines()
    assert found == "1"
    assert "cannot be used in a process that was forked from one that has used" in told
