# SPDX-License-Identifier: Apache-2.0
"""How the pipeline names a cluster: servers, and a file with the security of its clients."""

import pickle

import pytest

from kohort.client.network.address import Address
from kohort.pipeline.sources.cluster_place import cluster_place
from kohort.pipeline.sources.log_position import SourceError
from kohort.security.settings import NO_SECURITY, Security, Store
from kohort.user_files import SETTINGS_BYTES_MAX

PROPERTIES = """\
# of a client of Java
client.id=me
security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location=/etc/ca.pem
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  username="u" password="s3cret";
"""


def test_servers_alone_are_asked_in_plain_text():
    place = cluster_place("a:1,b:2")
    assert place.addresses == [Address("a", 1), Address("b", 2)]
    assert (place.servers, place.security, place.settings) == ("a:1,b:2", NO_SECURITY, {})


def test_a_file_has_the_security(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text(PROPERTIES)
    text = f"a:1,b:2?config={file}"
    place = cluster_place(text)
    assert place.servers == "a:1,b:2"
    assert place.security == Security(
        protocol="SASL_SSL",
        trust=Store(path="/etc/ca.pem"),
        mechanism="PLAIN",
        username="u",
        password="s3cret",
    )
    assert "client.id" not in place.settings
    assert "s3cret" not in repr(place)
    cluster = place.cluster("test")
    assert cluster.principal == "User:u"
    assert pickle.loads(pickle.dumps(text)) == text


@pytest.mark.parametrize(
    ("text", "content", "line"),
    [
        ("", None, "'' names no broker, expected host:port"),
        ("a:x", None, "'a:x' is not an address, expected host:port"),
        ("a:1?config={file}", None, "config {file} cannot be read: No such file or directory"),
        ("a:1?config={file}", b"\xff", "config {file} cannot be read: it is no text of properties"),
        (
            "a:1?config=/dev/zero",
            None,
            "config /dev/zero cannot be read: it is a device, expected a file or a pipe",
        ),
        (
            "a:1?config={file}",
            b"#" * (SETTINGS_BYTES_MAX + 1),
            "config {file} cannot be read: it has 1,048,577 bytes, expected 1,048,576 at most",
        ),
        (
            "a:1?config={file}",
            b"security.protocol=SASL_SSL\nsasl.password=s3cret\nsasl.mechanism=PLAIN",
            "config {file}: sasl.mechanism is PLAIN, but no user is given",
        ),
    ],
)
def test_what_cannot_be_followed_is_one_line_without_a_secret(tmp_path, text, content, line):
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SourceError) as caught:
        cluster_place(text.format(file=file))
    assert line.format(file=file) in str(caught.value)
    assert "s3cret" not in str(caught.value)
