# SPDX-License-Identifier: Apache-2.0
"""deploy/compose.yaml: its commands, and whether its services find each other."""

import json
import re
import shutil
import subprocess
import tomllib

import pytest
import yaml
from tests.deploy.command_lines import DEPLOY, accepted
from tests.deploy.containers import healthy, kohort, stages, the
from tests.documented import blocks
from tests.ports import free_ports
from tests.waiting import SOON_S

from kohort.config import BrokerConfig
from kohort.config.listeners import client_listeners

ROOT = DEPLOY.parent
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
OURS = sorted(name for name, service in SERVICES.items() if "build" in service)
BROKERS = sorted(name for name in OURS if SERVICES[name]["command"][0] == "serve")
SCRAPED = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))
IMAGE = stages()[-1]
HEALTH = json.loads(the(IMAGE, "HEALTHCHECK").partition(" CMD ")[2])[1:]


def settings(name):
    return dict(accepted(SERVICES[name]["command"]).settings)


def advertised(name):
    """The addresses that a broker tells its clients."""
    listeners = settings(name)["advertised.listeners"].split(",")
    return [one.partition("://")[2] for one in listeners]


def port(address):
    return int(address.rpartition(":")[2])


def served(name):
    """The ports on which a broker listens in its container, for all who can reach that."""
    args = accepted(SERVICES[name]["command"])
    listeners = client_listeners(BrokerConfig.of(dict(args.settings)))
    found = [(one.host, one.port) for one in listeners] + ([args.metrics] if args.metrics else [])
    assert {host for host, _ in found} == {"0.0.0.0"}
    return {port for _, port in found}


@pytest.mark.parametrize("name", OURS)
def test_kohort_takes_the_command_of_a_service(name):
    accepted(SERVICES[name]["command"])


@pytest.mark.parametrize("name", OURS)
def test_a_service_is_built_of_the_containerfile_with_extras_that_exist(name):
    build = SERVICES[name]["build"]
    assert (DEPLOY / build["context"]).resolve() == ROOT
    assert ROOT / build["dockerfile"] == DEPLOY / "Containerfile"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for one in build.get("args", {}).get("EXTRAS", "").split(",") if one]
    assert set(extras) <= set(project["optional-dependencies"])
    other = [one for one in OURS if SERVICES[one]["image"] == SERVICES[name]["image"]]
    assert {str(SERVICES[one]["build"]) for one in other} == {str(build)}


@pytest.mark.parametrize("name", OURS)
def test_what_a_service_keeps_is_in_a_volume(name):
    service = SERVICES[name]
    args = accepted(service["command"])
    kept = args.data_dir if args.prog == "kohort serve" else args.out
    mounted = [one.split(":")[1] for one in service["volumes"] if not one.startswith(".")]
    assert mounted == [the(IMAGE, "VOLUME")]
    assert kept.is_relative_to(mounted[0])


def test_every_volume_and_file_that_is_mounted_is_there():
    sources = [one.split(":")[0] for service in SERVICES.values() for one in service["volumes"]]
    made = "./secure"  # by whoever runs it, as docs/deploy.md says
    files = {one for one in sources if one.startswith(".")}
    assert {one for one in files if not (DEPLOY / one).exists()} <= {made}
    assert set(sources) - files == set(COMPOSE["volumes"])
    assert "/deploy/secure/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", BROKERS)
def test_a_published_port_leads_to_a_listener(name):
    own = served(name)
    for text in SERVICES[name]["ports"]:
        host, outside, inside = text.split(":")
        assert host == "127.0.0.1"
        assert int(inside) in own
        assert outside == inside
    published = {int(text.split(":")[2]) for text in SERVICES[name]["ports"]}
    for address in advertised(name):
        assert port(address) in own
        host = address.rpartition(":")[0]
        assert (host == "localhost") == (port(address) in published)
        assert host in ("localhost", name)


def test_services_find_the_broker_by_its_name():
    (targets,) = [
        one["targets"] for job in SCRAPED["scrape_configs"] for one in job["static_configs"]
    ]
    _, metrics = accepted(SERVICES["broker"]["command"]).metrics
    assert targets == [f"broker:{metrics}"]
    source = accepted(SERVICES["pipeline"]["command"]).source.removeprefix("cluster:")
    assert source in advertised("broker")


def test_a_profile_has_all_that_its_services_depend_on():
    for service in SERVICES.values():
        for other in service.get("depends_on", ()):
            assert set(service["profiles"]) <= set(SERVICES[other]["profiles"])


def test_the_page_names_every_profile():
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    profiles = {one for service in SERVICES.values() for one in service["profiles"]}
    assert set(re.findall(r"--profile (\w+)", page)) == profiles


def test_compose_takes_the_file():
    if shutil.which("docker") is None:
        pytest.skip("docker is not on this machine")
    done = subprocess.run(
        ["docker", "compose", "version"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("docker has no command compose on this machine")
    profiles = [f"--profile={one}" for name in SERVICES for one in SERVICES[name]["profiles"]]
    done = subprocess.run(
        ["docker", "compose", f"--file={DEPLOY / 'compose.yaml'}", *profiles, "config", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def here(name, data, ports):
    """The command of a service as one of this machine: its ports, its data, no other machine."""
    known = {"/data": str(data), "0.0.0.0": "127.0.0.1", f"//{name}:": "//127.0.0.1:"}
    known |= {str(port): str(ours) for port, ours in zip(sorted(served(name)), ports, strict=True)}
    found = re.compile("|".join(re.escape(one) for one in sorted(known, key=len, reverse=True)))
    return [found.sub(lambda match: known[match[0]], word) for word in SERVICES[name]["command"]]


def test_the_broker_tells_clients_the_way_that_they_came(tmp_path):
    ports = free_ports(len(served("broker")))
    outside, _, inside = ports  # 9092, 9644, 19092
    words = here("broker", tmp_path / "data", ports)
    named = {"KOHORT_BOOTSTRAP_SERVERS": f"127.0.0.1:{outside}"}
    with healthy(words, HEALTH, cwd=tmp_path, settings=named) as process:
        for own, name in ((outside, "localhost"), (inside, "127.0.0.1")):
            server = f"127.0.0.1:{own}"
            done = kohort("doctor", "--bootstrap-server", server, cwd=tmp_path, settings={})
            assert done.returncode == 0, done.stdout
            assert f"0 at {name}:{own}" in done.stdout
        process.terminate()
        assert process.wait(SOON_S) == 0


def test_the_secure_broker_runs_with_the_files_of_the_guide(tmp_path):
    """With those of docs/security.md as they are, in the directory that is mounted."""
    (own,) = free_ports(1)
    service = SERVICES["secure"]
    folder = tmp_path / "secure"
    folder.mkdir()
    for language in ("properties", "toml"):
        text = blocks("security.md", "In five minutes", language)[0]
        path = folder / re.match(r"# ([\w.]+)\n", text)[1]
        path.write_text(text.replace("9093", str(own)), encoding="utf-8")
        path.chmod(0o640)
    authority = blocks("security.md", "In five minutes", "sh")[0]
    subprocess.run(["bash", "-ec", authority], cwd=folder, check=True, capture_output=True)
    assert [one for one in service["volumes"] if one.endswith(f":{service['working_dir']}:ro")]
    words = here("secure", tmp_path / "data", [own])
    with healthy(words, HEALTH, cwd=folder, settings=service["environment"]) as process:
        done = kohort("doctor", cwd=folder, settings=service["environment"])
        assert done.returncode == 0, done.stdout
        assert "User:admin" in done.stdout
        process.terminate()
        assert process.wait(SOON_S) == 0
    without = {"KOHORT_BOOTSTRAP_SERVERS": f"localhost:{own}"}
    assert kohort(*HEALTH[:-1], "1", cwd=folder, settings=without).returncode == 1
