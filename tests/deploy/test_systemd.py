# SPDX-License-Identifier: Apache-2.0
"""deploy/systemd: what systemd says of the units, and that the commands in them work."""

import ctypes
import os
import shlex
import shutil
import subprocess
import sys
from configparser import RawConfigParser

import pytest
from tests.deploy.command_lines import DEPLOY, accepted, assert_settings_have_an_effect
from tests.serve.talk import serving
from tests.waiting import SOON_S

from kohort.cli.command import USAGE
from kohort.cli.serve import OPEN_FILES, STOP_SECONDS
from kohort.config import read_properties

FOLDER = DEPLOY / "systemd"
SERVICES = sorted(FOLDER.glob("*.service"))
UNITS = [*SERVICES, *sorted(FOLDER.glob("*.timer"))]
PROGRAM = "/opt/kohort/bin/kohort"
EXPOSURE_MAX = 20  # of 100; a service without any confinement has 96
PR_SET_MDWE = 65  # of Linux 6.3: what MemoryDenyWriteExecute= asks for

analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not on this machine"
)


def unit(path):
    parsed = RawConfigParser(interpolation=None, strict=True)
    parsed.optionxform = str
    parsed.read_string(path.read_text(encoding="utf-8"))
    return parsed


def command_of(path):
    program, *words = shlex.split(unit(path)["Service"]["ExecStart"])
    assert program == PROGRAM
    return words


def verified(folder, texts):
    """What `systemd-analyze verify` says of units, with a program that is there in them."""
    for name, text in texts.items():
        (folder / name).write_text(text.replace(PROGRAM, sys.executable), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", *(str(folder / name) for name in texts)],
        capture_output=True,
        text=True,
        timeout=SOON_S,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@analyze
def test_systemd_takes_every_unit(tmp_path):
    texts = {path.name: path.read_text(encoding="utf-8") for path in UNITS}
    assert verified(tmp_path, texts) == (0, "")


@analyze
def test_systemd_would_name_a_wrong_line(tmp_path):
    text = (FOLDER / "kohort.service").read_text(encoding="utf-8")
    _, said = verified(tmp_path, {"kohort.service": text.replace("PrivateTmp=", "OwnTmp=")})
    assert "OwnTmp" in said


@analyze
@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_a_service_is_confined(path):
    done = subprocess.run(
        [
            "systemd-analyze",
            "security",
            "--offline=true",
            f"--threshold={EXPOSURE_MAX}",
            str(path),
        ],
        capture_output=True,
        text=True,
        timeout=SOON_S,
        check=False,
    )
    if "unrecognized option" in done.stderr:
        pytest.skip("systemd-analyze security cannot look at files before systemd 250")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Overall exposure level" in done.stdout


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_kohort_takes_the_command_of_a_service(path):
    accepted(command_of(path))


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_a_service_writes_only_where_it_may(path):
    service = unit(path)["Service"]
    args = accepted(command_of(path))
    data = str(args.data_dir if args.prog == "kohort serve" else args.out)
    own = f"/var/lib/{service['StateDirectory']}"
    assert service["ProtectSystem"] == "strict"
    assert data == own or data.startswith(f"{own}/")


def test_the_timer_starts_the_service_of_its_name():
    (timer,) = FOLDER.glob("*.timer")
    assert timer.with_suffix(".service") in SERVICES
    assert unit(timer)["Install"]["WantedBy"] == "timers.target"


def test_every_setting_of_the_example_has_an_effect():
    assert_settings_have_an_effect(settings())


def test_the_pipeline_asks_the_broker_of_the_example():
    name, _, address = settings()["listeners"].partition("://")
    assert name == "PLAINTEXT"
    assert accepted(command_of(FOLDER / "kohort-pipeline.service")).source == f"cluster:{address}"
    assert accepted(command_of(FOLDER / "kohort-samples.service")).bootstrap_server == address


def settings():
    return read_properties((FOLDER / "server.properties").read_text(encoding="utf-8"))


def test_how_the_broker_is_stopped_and_started_again():
    """It has the time that it takes, and is not started again with settings that it refuses."""
    service = unit(FOLDER / "kohort.service")["Service"]
    assert int(service["TimeoutStopSec"]) > STOP_SECONDS
    assert int(service["RestartPreventExitStatus"]) == USAGE
    assert int(service["LimitNOFILE"]) == OPEN_FILES
    assert "KillSignal" not in service  # SIGTERM, which the broker takes as the wish to stop


def test_the_broker_runs_with_the_command_of_its_service(tmp_path):
    """As the unit says: without memory that is written and run, and with files of its own alone."""
    service = unit(FOLDER / "kohort.service")["Service"]
    assert service["MemoryDenyWriteExecute"] == "yes"
    words = command_of(FOLDER / "kohort.service")
    config, data = tmp_path / "server.properties", tmp_path / "data"
    text = (FOLDER / "server.properties").read_text(encoding="utf-8")
    assert "127.0.0.1:9092" in text
    config.write_text(text.replace("127.0.0.1:9092", "127.0.0.1:0"), encoding="utf-8")
    places = {"/etc/kohort/server.properties": config, "/var/lib/kohort": data, "9644": "0"}
    assert set(places) <= set(words)
    libc = ctypes.CDLL(None)

    def confine():
        os.umask(int(service["UMask"], 8))
        libc.prctl(PR_SET_MDWE, 1, 0, 0, 0)  # an older kernel refuses, and the rest is tested

    argv = [str(places.get(word, word)) for word in words[1:]]
    with serving(*argv, listen="", prepare=confine) as broker:
        with broker.talk() as client:
            client.create_topic("t")
            assert client.produce("t", b"1").error_code == 0
            assert client.commit("g", "t", 1) == 0
        assert broker.end() == 0
        assert "WARNING" not in broker.errors
        assert "Traceback" not in broker.errors
    files = [path for path in data.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if path.stat().st_mode & 0o077] == []
