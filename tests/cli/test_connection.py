# SPDX-License-Identifier: Apache-2.0
"""How a command reaches its cluster: layers of settings, the files they come from, and warnings."""

import os

import pytest

from kohort.cli import connection
from kohort.cli.connection import connection_of
from kohort.cli.main import parser
from kohort.client import security_settings
from kohort.security.settings import NO_SECURITY, Security, Store

SECRET = "hunter2"
USER = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
    f"sasl.username=alice\nsasl.password={SECRET}\n"
)
ALICE = Security(protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="alice", password=SECRET)


@pytest.fixture(autouse=True)
def _nothing_around(monkeypatch, tmp_path):
    for name in os.environ:
        if name.startswith("KOHORT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("KOHORT_CONFIG", str(tmp_path / "config.toml"))


@pytest.fixture
def reach(capsys):
    """The connection of a command line, and the warnings."""

    def run(*argv, before=()):
        args = parser().parse_args([*before, "groups", "list", *argv])
        found = connection_of(args)
        return found, capsys.readouterr().err.splitlines()

    return run


@pytest.fixture
def file(tmp_path):
    """Writes a file that nobody else can read, unless told so."""

    def write(name, text, mode=0o600):
        path = tmp_path / name
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    return write


def test_the_prefix_of_variables_is_that_of_the_settings():
    assert connection.VARIABLES == security_settings.VARIABLES


def test_without_settings_it_is_plain_text(reach):
    (server, security), warnings = reach()
    assert (server.text, security, warnings) == ("127.0.0.1:9092", NO_SECURITY, [])


@pytest.mark.parametrize("where", ["behind", "in front"])
def test_a_file_has_the_settings_of_upstreams_tools(reach, file, where):
    """Its addresses may have the form of listeners, whose protocol Java ignores."""
    path = file("client.properties", USER + "bootstrap.servers=SSL://h:1\nacks=all\n")
    option = ("--command-config", path)
    found, warnings = reach(*option) if where == "behind" else reach(before=option)
    assert found == (("h:1", f"--command-config {path}: bootstrap.servers"), ALICE)
    assert warnings == [f"kohort: --command-config {path}: not used here: acks"]


def test_a_profile_is_a_table_of_a_file(reach, file, monkeypatch):
    file(
        "config.toml",
        '[prod]\nbootstrap.servers = "h:1"\nsecurity.protocol = "SASL_PLAINTEXT"\n'
        f'sasl.mechanism = "PLAIN"\nsasl_plain_username = "alice"\nsasl.password = "{SECRET}"\n'
        "[test]\nssl_check_hostname = false\n",
    )
    found, warnings = reach("--profile", "prod")
    assert (found.server.text, found.security, warnings) == ("h:1", ALICE, [])
    monkeypatch.setenv("KOHORT_PROFILE", "test")
    assert reach()[0].security == Security(check_hostname=False)


def test_a_profile_that_is_typed_is_not_sent_to_another_cluster(reach, file, monkeypatch):
    file("config.toml", '[p]\nbootstrap.servers = "profile:1"\n')
    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVER", "environment:1")
    with pytest.raises(ValueError, match="KOHORT_BOOTSTRAP_SERVER is environment:1 and --profile"):
        reach("--profile", "p")
    found, _ = reach("--profile", "p", "--bootstrap-server", "option:1")
    assert found.server.text == "option:1"
    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVER", "profile:1")
    assert reach("--profile", "p")[0].server.text == "profile:1"


def test_the_command_line_counts_before_the_environment_and_that_before_a_profile(
    reach, file, monkeypatch
):
    file("config.toml", '[p]\nbootstrap.servers = "profile:1"\nsasl.username = "profile"\n')
    path = file("c", f"{USER}sasl.username=file\nbootstrap.servers=file:1")
    chosen = ("--profile", "p")
    monkeypatch.setenv("KOHORT_SECURITY_PROTOCOL", "sasl_plaintext")
    monkeypatch.setenv("KOHORT_SASL_MECHANISM", "PLAIN")
    monkeypatch.setenv("KOHORT_SASL_PASSWORD", SECRET)

    found, _ = reach(*chosen)
    assert (found.server.text, found.security.username) == ("profile:1", "profile")
    monkeypatch.setenv("KOHORT_SASL_USERNAME", "environment")
    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVER", "environment:1")
    monkeypatch.setenv("KOHORT_PROFILE", "p")
    found, _ = reach()
    assert (found.server.text, found.security.username) == ("environment:1", "environment")
    chosen = (*chosen, "--command-config", path)
    found, _ = reach(*chosen)
    assert (found.server.text, found.security.username) == ("file:1", "file")
    chosen = (*chosen, "-X", "sasl.username=line", "-X", "bootstrap.servers=line:1")
    found, _ = reach(*chosen)
    assert (found.server.text, found.security.username) == ("line:1", "line")
    found, _ = reach(*chosen, "--bootstrap-server", "option:1")
    assert found.server == ("option:1", "--bootstrap-server")


def test_a_plain_command_line_does_not_stumble_over_the_environment(reach, monkeypatch):
    monkeypatch.setenv("KOHORT_SECURITY_PROTOCOL", "SASL_SSL")
    monkeypatch.setenv("KOHORT_SASL_USERNAME", "alice")
    assert reach("-X", "security.protocol=PLAINTEXT")[0].security == NO_SECURITY


def test_secrets_come_from_files_and_from_the_environment(reach, file, monkeypatch):
    path = file("password", f"{SECRET}\n")
    monkeypatch.setenv("PW", SECRET)
    settings = USER.replace(SECRET, "${env:PW}")
    found, warnings = reach("--command-config", file("c", settings, mode=0o644))
    assert (found.security, warnings) == (ALICE, [])
    options = [option for line in USER.split() for option in ("-X", line)]
    options[-1] = f"sasl.password=${{file:{path}}}"
    found, warnings = reach(*options)
    assert (found.security, warnings) == (ALICE, [])


def test_a_secret_that_others_can_see_works_and_warns(reach, file):
    options = [option for line in USER.split() for option in ("-X", line)]
    found, (warning,) = reach(*options)
    assert found.security == ALICE
    assert warning.startswith("kohort: -X sasl.password: all users of this machine can see")

    path = file("c", USER, mode=0o604)
    found, (warning,) = reach("--command-config", path)
    assert found.security == ALICE
    expected = f"can read {path}, and it has sasl.password: chmod 600"
    assert warning == f"kohort: all users of this machine {expected}"

    path = file("password", SECRET, mode=0o644)
    settings = USER.replace(SECRET, f"${{file:{path}}}")
    found, (warning,) = reach("--command-config", file("c", settings))
    assert found.security == ALICE
    assert warning == f"kohort: all users of this machine can read {path}: chmod 600"


def test_a_key_that_others_can_read_warns(reach, file):
    path = file("own.pem", "", mode=0o644)
    options = ("-X", "security.protocol=SSL", "-X", f"ssl.keystore.location={path}")
    found, warnings = reach(*options)
    assert found.security.identity == Store(path=path)
    assert warnings == [f"kohort: all users of this machine can read the key in {path}: chmod 600"]


REFUSED = {
    "-X": (("-X", "acks=all"), "-X acks is no setting of a connection"),
    "-X value": (("-X", "security.protocol=TLS"), "-X security.protocol is 'TLS', expected one of"),
    "no file": (("--command-config", "/no/such"), "--command-config: cannot read /no/such: No"),
    "no profiles": (("--profile", "prod"), "--profile prod: cannot read {home}/config.toml: No"),
    "no variable": (("-X", "sasl.password=${env:NO_PW}"), "-X sasl.password: the environment has"),
    "no secret": (
        ("-X", "sasl.password=${file:/no}"),
        "-X sasl.password: cannot read /no: No such",
    ),
    "missing": (("-X", "security.protocol=SASL_SSL"), "sasl.mechanism is missing, expected one of"),
}


@pytest.mark.parametrize(("argv", "expected"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_a_wrong_call(kohort, tmp_path, argv, expected):
    for command in (("groups", "list"), ("consume", "t"), ("produce", "t")):
        ran = kohort(*command, *argv)
        (line,) = ran.complaints
        assert (ran.code, ran.out) == (2, "")
        assert line.startswith(f"kohort: {expected.format(home=tmp_path)}")


PROFILES = {
    "no table": ('[prod]\nx = "y"', "test", "has no such table, it has prod"),
    "not toml": ("[prod", "prod", "is not TOML"),
    "unknown": ('[prod]\nacks = "all"', "prod", "acks is no setting of a connection"),
    "no text": (
        "[prod]\nsasl.password = 1.5",
        "prod",
        "sasl.password is of type float",
    ),
    "wrong": ('[prod]\nssl.truststore.type = "BKS"', "prod", "ssl.truststore.type is 'BKS'"),
}


@pytest.mark.parametrize(("text", "name", "expected"), PROFILES.values(), ids=PROFILES)
def test_a_profile_that_makes_no_sense_is_named(reach, file, text, name, expected):
    path = file("config.toml", text)
    with pytest.raises(ValueError, match=expected) as refusal:
        reach("--profile", name)
    assert f"--profile {name}" in str(refusal.value)
    assert path in str(refusal.value)


def test_a_variable_that_makes_no_sense_is_named(reach, monkeypatch):
    monkeypatch.setenv("KOHORT_SASL_MECHANISM", "GSSAPI")
    with pytest.raises(ValueError, match=r"\AKOHORT_SASL_MECHANISM is GSSAPI"):
        reach()


@pytest.mark.parametrize("name", ["KOHORT_BOOTSTRAP_SERVER", "KOHORT_BOOTSTRAP_SERVERS"])
def test_a_variable_has_the_address_by_either_name(reach, monkeypatch, name):
    monkeypatch.setenv("PORT", "1")
    monkeypatch.setenv(name, "h:${env:PORT}")
    assert reach() == ((("h:1", name), NO_SECURITY), [])


def test_two_addresses_in_the_environment_contradict_each_other(reach, monkeypatch):
    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVER", "h:1")
    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVERS", "h:1")
    assert reach()[0].server.text == "h:1"
    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVERS", "h:2")
    with pytest.raises(ValueError, match=r"KOHORT_BOOTSTRAP_SERVERS? and .* contradict"):
        reach()


MISSPELLED = {
    "KOHORT_SECURTY_PROTOCOL": "KOHORT_SECURITY_PROTOCOL",
    "KOHORT_SSL_CA_LOCATON": "KOHORT_SSL_CA_LOCATION",
    "KOHORT_BOOTSTRAP_SERVRS": "KOHORT_BOOTSTRAP_SERVERS",
    "KOHORT_PROFILES": "KOHORT_PROFILE",
}


@pytest.mark.parametrize(("name", "meant"), MISSPELLED.items(), ids=MISSPELLED)
def test_a_misspelled_variable_is_refused(reach, monkeypatch, name, meant):
    monkeypatch.setenv(name, SECRET)
    with pytest.raises(
        ValueError, match=f"\\Aunknown .*{name}.*, did you mean '?{meant}'?\\?"
    ) as no:
        reach()
    assert SECRET not in str(no.value)


def test_a_variable_that_resembles_none_is_named_once(reach, monkeypatch):
    for name in ("KOHORT_PORT", "KOHORT_SERVICE_HOST", "KOHORT_CLASS_ARCHIVE"):
        monkeypatch.setenv(name, "x")
    _, warnings = reach()
    expected = "the environment has what is not used: KOHORT_PORT, KOHORT_SERVICE_HOST"
    assert warnings == [f"kohort: {expected}"]


def test_what_is_given_reaches_the_client(kohort, monkeypatch, file):
    from kohort.client.admin import AdminClient

    asked = []

    def seen(self, servers, **options):
        asked.append((servers, options["security"]))
        raise ValueError("seen")

    monkeypatch.setattr(AdminClient, "__init__", seen)
    path = file("c", USER)
    assert kohort("groups", "list", "--command-config", path).complaints == ["kohort: seen"]
    assert asked == [("127.0.0.1:9092", ALICE)]
