# SPDX-License-Identifier: Apache-2.0
"""How a command reaches its cluster: the address, and what proves who asks.

Both come in layers, and the nearest one counts: `-X` and the address behind a command, the file of
`--command-config`, the environment (`KOHORT_*`), a profile. All layers take the same names, those
of `kohort.client.security_settings`, and `${env:NAME}` and `${file:PATH}` in their values.
"""

import os
import re
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kohort.cli.command import complain, pair

if TYPE_CHECKING:  # they are imported when a command runs: `--help` must not wait for them
    from pathlib import Path

    from kohort.security.settings import Security

DEFAULT_SERVER = "127.0.0.1:9092"
OPTION = "--bootstrap-server"
CONFIG, PROFILE = "--command-config", "--profile"
VARIABLES = "KOHORT_"  # as in client.security_settings, which is not imported for `--help`
VARIABLE = f"{VARIABLES}BOOTSTRAP_SERVERS"
SHORT_VARIABLE = VARIABLE[:-1]
ELSEWHERE = f"{VARIABLES}CLASS_ARCHIVE", f"{VARIABLES}CODEC"  # Spark and `kohort.native` read it
PROFILE_VARIABLE, PROFILES_VARIABLE = f"{VARIABLES}PROFILE", f"{VARIABLES}CONFIG"
PROFILES = "~/.config/kohort/config.toml"
SERVERS = "bootstrap.servers"
_OPTIONS = {"bootstrap_server": OPTION, "command_config": CONFIG, "profile": PROFILE}
_IN_FRONT = "_in_front"
_REFERENCE = re.compile(r"\$\{(env|file):([^}]*)\}")
_OTHERS_READ = 0o004
_SHOWN = 60  # names in a line, and characters of each


class Server(NamedTuple):
    """The addresses of a cluster as given, and where they were given."""

    text: str
    origin: str


class Connection(NamedTuple):
    """What a client needs to reach a cluster."""

    server: Server
    security: "Security"


class _Layer:
    """What one place says. `origin` names it in errors, where names of settings do not."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.settings: dict[str, str] = {}
        self.server: Server | None = None
        self.warnings: list[str] = []


def add_connection(parser: ArgumentParser, *, in_front: bool = False) -> None:
    """Accept all of it here: behind a command, or, but for `-X`, in front of it."""
    add_server(parser, in_front=in_front)
    add_security(parser, in_front=in_front)
    if not in_front:
        parser.add_argument(
            "-X",
            dest="client_settings",
            action="append",
            type=pair,
            default=[],
            metavar="NAME=VALUE",
            help="a setting of the connection, as security.protocol=SASL_SSL; may be repeated",
        )


def add_server(parser: ArgumentParser, *, in_front: bool = False) -> None:
    """Accept the address here: behind a command, or in front of it."""
    _add(
        parser,
        "bootstrap_server",
        "HOST:PORT",
        "a broker of the cluster, or several separated by commas "
        f"(default: {VARIABLE}, else {DEFAULT_SERVER})",
        in_front=in_front,
    )


def add_security(parser: ArgumentParser, *, in_front: bool = False) -> None:
    """Accept the places of settings for TLS and SASL here."""
    what = "settings of TLS and SASL, and the cluster's address"
    _add(parser, "command_config", "FILE", f"{what}: Java properties", in_front=in_front)
    profiles = f"a table of {PROFILES}, or of the file that {PROFILES_VARIABLE} names"
    _add(parser, "profile", "NAME", f"{what}: {profiles}", in_front=in_front)


def _add(parser: ArgumentParser, name: str, value: str, text: str, *, in_front: bool) -> None:
    parser.add_argument(
        _OPTIONS[name],
        dest=name + _IN_FRONT if in_front else name,
        metavar=value,
        default=SUPPRESS,  # so that an inner parser keeps what an outer one has found
        help=text,
    )


def in_front_or_none(args: Namespace) -> str | None:
    """The option of a connection that stands before the command, if one does."""
    return next((_OPTIONS[name] for name in _OPTIONS if hasattr(args, name + _IN_FRONT)), None)


def connection_of(args: Namespace, followed: Collection[str] = ()) -> Connection:
    """What the arguments and the environment say. Warns of secrets that others can see, and of
    settings in a file that nobody follows; the caller follows those that are `followed` himself.

    Raises:
        ValueError: for settings that make no sense, a file that cannot be read, a profile that is
            not there.
    """
    from kohort.client.security_settings import check_settings, security_of

    layers = list(_layers(args, followed))
    for layer in layers:
        try:
            check_settings(layer.settings)
        except ValueError as error:
            raise ValueError(f"{layer.origin}{error}") from None
    security = security_of(*(layer.settings for layer in layers))
    for warning in (*(one for layer in layers for one in layer.warnings), *_open_keys(security)):
        complain(warning)
    given = _option(args, "bootstrap_server")
    option = Server(given, OPTION) if given is not None else None
    if option is None:
        _check_profile(args, layers)
    servers = (option, *(layer.server for layer in layers), Server(DEFAULT_SERVER, OPTION))
    return Connection(next(server for server in servers if server is not None), security)


def _check_profile(args: Namespace, layers: Sequence[_Layer]) -> None:
    """Refuse a profile that somebody has typed where a variable names another cluster: the variable
    counts, and a deletion would be of the wrong cluster.
    """
    if not _option(args, "profile"):
        return
    *_, environment, profile = layers
    first = next((layer.server for layer in layers if layer.server is not None), None)
    if first is None or first is not environment.server or profile.server is None:
        return
    if first.text != profile.server.text:
        raise ValueError(
            f"{first.origin} is {first.text} and {profile.server.origin} is "
            f"{profile.server.text}: unset the variable, or give {OPTION}"
        )


def _option(args: Namespace, name: str) -> str | None:
    found: str | None = getattr(args, name, getattr(args, name + _IN_FRONT, None))
    return found


def _layers(args: Namespace, followed: Collection[str]) -> Iterator[_Layer]:
    """The nearest one first."""
    yield _command_line(getattr(args, "client_settings", ()))
    config = _option(args, "command_config")
    if config is not None:
        yield _properties(config, followed)
    yield _environment()
    profile = _option(args, "profile") or os.environ.get(PROFILE_VARIABLE)
    if profile:
        yield _profile(profile)


def _command_line(given: Iterable[tuple[str, str]]) -> _Layer:
    layer = _Layer("-X ")
    for name, text in dict(given).items():
        if not _take(layer, name, text):
            raise ValueError(f"-X {name} is no setting of a connection")
        if _is_bare_secret(name, text):
            layer.warnings.append(
                f"-X {name}: all users of this machine can see the command line, expected"
                f" -X '{name}=${{file:PATH}}', {VARIABLES}*, or a file of settings"
            )
    return layer


def _properties(path: str, followed: Collection[str]) -> _Layer:
    from kohort.client.network.address import without_protocols
    from kohort.config import read_properties

    layer = _Layer(f"{CONFIG} {path}: ")
    unused = [
        name
        for name, text in read_properties(text_of(CONFIG, path)).items()
        if not _take(layer, name, text, path) and name not in followed
    ]
    if layer.server is not None:  # a file of Java
        layer.server = layer.server._replace(text=without_protocols(layer.server.text))
    if unused:
        layer.warnings.append(f"{CONFIG} {path}: not used here: {_named(unused)}")
    return layer


def _named(names: Sequence[str]) -> str:
    """Names of settings as far as they fit into a line: any file has some, also one of another
    kind.
    """
    shown = [name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…" for name in names[:_SHOWN]]
    more = [f"and {len(names) - _SHOWN:,} more"] if len(names) > _SHOWN else []
    return ", ".join([*shown, *more])


def _environment() -> _Layer:
    layer = _Layer("")  # its settings have the names of variables
    others = (PROFILE_VARIABLE, PROFILES_VARIABLE, *ELSEWHERE)
    unused = [
        name
        for name, text in os.environ.items()
        if name.startswith(VARIABLES) and name not in others and not _take(layer, name, text)
    ]
    for name in unused:
        _refuse_misspelled(name, (VARIABLE, *others))
    if unused:  # Kubernetes makes variables such as KOHORT_SERVICE_HOST by itself
        layer.warnings.append(f"the environment has what is not used: {', '.join(sorted(unused))}")
    return layer


def _refuse_misspelled(name: str, others: Iterable[str]) -> None:
    """Raises ValueError where a variable is nearly that of a setting: without it, a connection may
    be in plain text.
    """
    from difflib import get_close_matches

    from kohort.client.security_settings import variables

    near = get_close_matches(name, (*variables(), *others), n=1, cutoff=0.85)
    if near:
        raise ValueError(f"unknown variable {name}, did you mean {near[0]}?")


def profile_names() -> list[str]:
    """The profiles that there are. Raises ValueError where their file cannot be read."""
    profiles = _profiles(_profiles_path(), PROFILE)
    return [name for name, profile in profiles.items() if isinstance(profile, dict)]


def _profiles_path() -> str:
    return os.environ.get(PROFILES_VARIABLE) or str(_path(PROFILES))


def _profiles(path: str, origin: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text_of(origin, path))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{origin}: {path} is not TOML: {error}") from None


def _profile(name: str) -> _Layer:
    path, origin = _profiles_path(), f"{PROFILE} {name}"
    profiles = _profiles(path, origin)
    profile = profiles.get(name)
    if not isinstance(profile, dict):
        have = ", ".join(profiles) or "none"
        raise ValueError(f"{origin}: {path} has no such table, it has {have}")  # noqa: TRY004  (a value, as all)
    layer = _Layer(f"{origin} of {path}: ")
    for setting, value in _flat(profile):
        if not isinstance(value, str | bool | int):
            kind = type(value).__name__
            raise ValueError(f"{layer.origin}{setting} is of type {kind}, expected text")  # noqa: TRY004  (a value, as all)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if not _take(layer, setting, text, path):
            raise ValueError(f"{layer.origin}{setting} is no setting of a connection")
    return layer


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """A dot in a name of TOML makes a table in a table."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value


def _take(layer: _Layer, name: str, text: str, path: str | None = None) -> bool:
    """Take a setting into the layer, unless it is about something else."""
    from kohort.client.security_settings import is_about_security

    if name.replace("_", ".") == SERVERS or name in (VARIABLE, SHORT_VARIABLE):
        _take_server(layer, f"{layer.origin}{name}", _resolved(layer, name, text).strip())
    elif is_about_security(name):
        layer.settings[name] = _resolved(layer, name, text)
        if path is not None and _is_bare_secret(name, text) and others_read(path):
            readable = f"all users of this machine can read {path}, and it has "
            if not any(warning.startswith(readable) for warning in layer.warnings):
                layer.warnings.append(f"{readable}{name}: chmod 600")
    else:
        return False
    return True


def _take_server(layer: _Layer, origin: str, server: str) -> None:
    before = layer.server
    if not server:
        return
    if before is not None and before.origin != origin and before.text != server:
        raise ValueError(f"{before.origin} and {origin} contradict each other: give one")
    layer.server = Server(server, origin)


def _is_bare_secret(name: str, text: str) -> bool:
    from kohort.client.security_settings import is_secret

    return bool(text) and is_secret(name) and _REFERENCE.search(text) is None


def _resolved(layer: _Layer, name: str, text: str) -> str:
    """The text with what its references stand for. An error has no secret: it names them."""

    def found(reference: re.Match[str]) -> str:
        kind, place = reference.groups()
        if kind == "file":
            if others_read(place):
                layer.warnings.append(f"all users of this machine can read {place}: chmod 600")
            return text_of(f"{layer.origin}{name}", place).rstrip("\r\n")
        if place not in os.environ:
            raise ValueError(f"{layer.origin}{name}: the environment has no {place}")
        return os.environ[place]

    return _REFERENCE.sub(found, text)


def text_of(what: str, path: str) -> str:
    """The text of a file. Raises ValueError, which says what the file is for."""
    from kohort.user_files import settings_text

    try:
        return settings_text(str(_path(path)))
    except OSError as error:
        raise ValueError(f"{what}: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{what}: cannot read {path}: byte {error.start} is not UTF-8") from None


def others_read(path: str) -> bool:
    """Whether all users of this machine can read a file."""
    try:
        return bool(_path(path).stat().st_mode & _OTHERS_READ)
    except OSError:
        return False


def _open_keys(security: "Security") -> Iterator[str]:
    """A warning where others can read a key that no password guards."""
    store = security.key or security.identity
    if store is not None and store.path and not store.password and others_read(store.path):
        yield f"all users of this machine can read the key in {store.path}: chmod 600"


def _path(text: str) -> "Path":
    from pathlib import Path

    return Path(text).expanduser()
