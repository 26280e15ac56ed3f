# SPDX-License-Identifier: Apache-2.0
"""`sasl.jaas.config`, as people write it in properties of Java."""

import pytest

from kohort.security.jaas import JaasError, read_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ('username="alice" password="secret"', {"username": "alice", "password": "secret"}),
        ("username=alice password='a b'", {"username": "alice", "password": "a b"}),
        (r'password="a\"b\\c;="', {"password": 'a"b\\c;='}),
        (r'password="a\tb\nc\x\\n"', {"password": "a\tb\ncx\\n"}),
        (r'password="\101\7\0418\477\u0041"', {"password": "A\x07!8\x277u0041"}),
        ('user_alice = "x"\n user_bob="";'[:-1], {"user_alice": "x", "user_bob": ""}),
        ("", {}),
    ],
)
def test_options_are_read_as_java_reads_them(options: str, expected: dict[str, str]) -> None:
    module = read_jaas(f"{PLAIN} required {options};")
    assert (module.name, module.options) == (PLAIN, expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        f"{PLAIN};",
        f"{PLAIN} required",
        f'{PLAIN} required username="alice" password="hunter2"',
        f'{PLAIN} username="alice" password="hunter2";',
        f"{PLAIN} required username= password=hunter2;",
        f'{PLAIN} required username "hunter2";',
        f'{PLAIN} required password="hunter2;',
        f'{PLAIN} required password="hunter2"; {PLAIN} required;',
    ],
)
def test_what_is_no_such_line_is_refused_without_its_secrets(text: str) -> None:
    with pytest.raises(JaasError) as refusal:
        read_jaas(text)
    assert "hunter2" not in str(refusal.value)


def test_options_are_not_shown() -> None:
    assert "secret" not in repr(read_jaas(f'{PLAIN} required password="secret";'))
