# SPDX-License-Identifier: Apache-2.0
"""`kohort serve`: run a broker. The one command that is not a client.

All mistakes in the arguments are found before a port is opened or a directory touched. stdout gets
one line once clients may connect; everything else goes to stderr.
"""

import errno
import sys
from argparse import SUPPRESS, Action, ArgumentError, ArgumentParser, ArgumentTypeError, Namespace
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kohort.cli.command import FAILED, NO_SETTING, OK, USAGE, Command, complain
from kohort.errors import KohortError, how_to_install

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Sequence

    from kohort.config import BrokerConfig
    from kohort.config.listeners import Listener
    from kohort.server.broker import Broker
    from kohort.server.metrics.endpoint import MetricsEndpoint

STOP_SECONDS = 2.0
OPEN_FILES = 100_000
LEVELS = ("debug", "info", "warning", "error")


class _WrongSettings(Exception):  # noqa: N818  (several errors)
    """What is wrong with settings, a line for each."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = mistakes


class _OtherName(Action):
    """What others call `-X`."""

    def __call__(self, parser: ArgumentParser, *_: Any, **__: Any) -> None:
        del parser
        raise ArgumentError(self, "there is none, expected -X NAME=VALUE")


class Serve(Command):
    """`kohort serve`."""

    help: ClassVar[str] = "run a broker with a real group coordinator"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort serve --in-memory",
        "kohort serve --listen 127.0.0.1:9092 --data-dir ./data",
        "kohort serve --in-memory --nodes 3 -X group.initial.rebalance.delay.ms=0",
        "kohort serve --data-dir ./data --metrics 9644",
    )

    def configure(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--listen",
            type=_address,
            metavar="HOST:PORT",
            help="where to listen; port 0 picks a free one (default: listeners, 127.0.0.1:9092)",
        )
        where = parser.add_mutually_exclusive_group()
        where.add_argument(
            "--data-dir", type=Path, metavar="DIR", help="keep the logs here (default: log.dirs)"
        )
        where.add_argument(
            "--in-memory",
            action="store_true",
            help="keep nothing on disk, and forget everything at the end",
        )
        parser.add_argument(
            "--nodes",
            type=_count,
            default=1,
            metavar="N",
            help="broker nodes in this process, each with its own port and id (default 1)",
        )
        parser.add_argument(
            "-X",
            dest="settings",
            action="append",
            type=_pair,
            default=[],
            metavar="NAME=VALUE",
            help="a setting by its Kafka name; may be repeated, and wins over --config",
        )
        parser.add_argument("--set", action=_OtherName, nargs="?", help=SUPPRESS)
        parser.add_argument(
            "--config", type=Path, metavar="FILE", help="read a server.properties file"
        )
        parser.add_argument(
            "--metrics",
            type=_metrics_address,
            metavar="HOST:PORT",
            help="serve /metrics for Prometheus and /healthz there; a port alone is on 127.0.0.1",
        )
        parser.add_argument(
            "--log-level", choices=LEVELS, default="info", help="how much to say (default info)"
        )

    def main(self, args: Namespace) -> int:
        _log_to_stderr(args.log_level)
        try:
            config = _config(args)
            data_dir = _data_dir(args, config)
            _check_listeners(config, args, data_dir)
            _check_racks(config, args.nodes)
            _check_versions(config)
            _check_assignors(config)
            if args.metrics is not None:
                _check_metrics()
        except _WrongSettings as error:
            for mistake in error.mistakes:
                complain(f"serve: {mistake}")
            return USAGE
        except (KohortError, ValueError, OSError) as error:
            complain(f"serve: {error}")
            return USAGE
        return _run(config, args.listen, data_dir, args.nodes, args.metrics)


def _log_to_stderr(level: str) -> None:
    import logging

    from kohort.server.log_lines import OneLineFormatter

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLineFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler])


def _config(args: Namespace) -> "BrokerConfig":
    from dataclasses import replace

    from kohort.config import BrokerConfig, read_numbered, setting_name
    from kohort.user_files import settings_text

    given: dict[str, tuple[str, int]] = {}
    if args.config is not None:
        try:
            given = read_numbered(settings_text(str(args.config)))
        except OSError as error:
            raise ValueError(f"cannot read --config {args.config}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise ValueError(
                f"cannot read --config {args.config}: byte {error.start} is not UTF-8"
            ) from None
    ahead = {setting_name(name) for name, _ in args.settings}
    texts = {name: text for name, (text, _) in given.items() if setting_name(name) not in ahead}
    texts |= dict(args.settings)
    wrong = BrokerConfig.mistakes(texts)
    if wrong:
        places = {name: f"{args.config}, line {line}: " for name, (_, line) in given.items()}
        places |= dict.fromkeys(dict(args.settings), "")
        raise _WrongSettings([f"{places[name]}{error}" for name, error in wrong.items()])
    config = BrokerConfig.of(texts)
    if args.listen is None:  # the default is a fixed port here
        config = replace(config, given=config.given | {"listeners"})
    return config


def _check_listeners(config: "BrokerConfig", args: Namespace, data_dir: Path | None) -> None:
    """Raises KohortError for listeners that cannot be opened, or have no certificate to show."""
    from kohort.security.names import PLAINTEXT
    from kohort.server.broker import listeners_to_open
    from kohort.server.network.ports import Ports

    listeners = listeners_to_open(config, args.listen)
    Ports(listeners, args.nodes).check(config)
    if any(listener.protocol != PLAINTEXT for listener in listeners):
        from kohort.server.secure_listeners import check_security

        check_security(config, listeners, data_dir)


def _check_racks(config: "BrokerConfig", nodes: int) -> None:
    from kohort.config.racks import racks_of_nodes

    racks_of_nodes(config.broker_rack, nodes)


def _check_versions(config: "BrokerConfig") -> None:
    from kohort.wire.offered import offered_versions

    offered_versions(config.api_versions_max)


def _check_assignors(config: "BrokerConfig") -> None:
    from kohort.server.background.plugin_assignors import load_plugin_assignors

    load_plugin_assignors(config.group_consumer_assignors)


def _data_dir(args: Namespace, config: "BrokerConfig") -> Path | None:
    if args.in_memory:
        return None
    if args.data_dir is not None:
        path: Path = args.data_dir
        return path
    if "log.dirs" in config.given and config.log_dirs:
        if len(config.log_dirs) > 1:
            raise ValueError(f"log.dirs is {','.join(config.log_dirs)!r}, expected one directory")
        return Path(config.log_dirs[0])
    raise ValueError(
        "no place for the logs is given, expected --data-dir DIR, where they outlast the broker, "
        "or --in-memory, where they do not"
    )


def _check_metrics() -> None:
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        raise ValueError(
            f"--metrics needs the package prometheus-client: {how_to_install('metrics')}"
        ) from None


def _run(
    config: "BrokerConfig",
    listen: tuple[str, int] | None,
    data_dir: Path | None,
    nodes: int,
    metrics: tuple[str, int] | None,
) -> int:
    import asyncio
    import gc

    from kohort.server.broker import Broker

    async def serve() -> int:
        broker = Broker(config, listen=listen, data_dir=data_dir, nodes=nodes)
        endpoint = None
        if metrics is not None:
            endpoint = _endpoint(broker, metrics)
            if endpoint is None:
                return FAILED
        try:
            return await run(broker, endpoint)
        finally:
            if endpoint is not None:
                endpoint.stop()

    async def run(broker: Broker, endpoint: "MetricsEndpoint | None") -> int:
        try:
            await broker.start()
        except OSError as error:
            complain(f"serve: {_os_reason(error, broker.ports.tried, data_dir)}")
            return FAILED
        except KohortError as error:
            complain(f"serve: {error}")
            return FAILED
        _warn(config, broker.ports.listeners)
        _log_codec()
        where = "in memory" if data_dir is None else f"data in {data_dir}"
        ready = f"({where})"
        if endpoint is not None:
            _warn_beyond(endpoint.host, "metrics are served")
            ready += f", metrics on http://{_address_text(endpoint.host, endpoint.port)}/metrics"
        return await _until_stopped(broker, ready)

    _allow_many_files()
    # A thread that syncs must not wait until a busy loop pauses by itself.
    sys.setswitchinterval(0.0005)
    # Requests and answers hold no cycles. Looking for cycles every 700 objects costs a seventh
    # of an OffsetFetch of many groups.
    gc.set_threshold(50_000, 20, 50)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(serve())


def _log_codec() -> None:
    import logging

    from kohort.native.choice import CODEC

    logging.getLogger("kohort").info("messages are read and written by the %s codec", CODEC)


def _warn(config: "BrokerConfig", listeners: "tuple[Listener, ...]") -> None:
    import logging

    from kohort.config import listener_settings

    log = logging.getLogger("kohort")
    if config.ignored:
        log.warning("settings that mean nothing here: %s", ", ".join(sorted(config.ignored)))
    without_effect = config.without_effect()
    if without_effect:
        log.warning("settings that have no effect yet: %s", ", ".join(sorted(without_effect)))
    for listener in listeners:
        missing = [] if listener.uses_tls else ["encryption"]
        asked = listener_settings(config, listener).get("ssl.client.auth")
        if not listener.uses_sasl and asked != "required":
            missing.append("authentication")
        if missing:
            _warn_beyond(listener.host, "listening", " or ".join(missing))


def _warn_beyond(host: str, what: str, missing: str = "encryption or authentication") -> None:
    import logging

    if not _is_loopback(host):
        logging.getLogger("kohort").warning(
            "%s on %s, beyond this machine, without %s", what, host, missing
        )


def _endpoint(broker: "Broker", address: tuple[str, int]) -> "MetricsEndpoint | None":
    """The endpoint of the metrics, started; None when its port cannot be had."""
    from kohort.server.metrics.endpoint import MetricsEndpoint

    endpoint = MetricsEndpoint(broker, *address)
    try:
        endpoint.start()
    except OSError as error:
        complain(f"serve: {_os_reason(error, address, None)} (--metrics)")
        return None
    return endpoint


async def _until_stopped(broker: "Broker", ready: str) -> int:
    import asyncio
    import signal

    stop_requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_requested.set)
    ends_with_terminal = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and _has_terminal()

    def hang_up() -> None:
        if ends_with_terminal and not _has_terminal():
            stop_requested.set()
        else:
            broker.reload_certificates()

    loop.add_signal_handler(signal.SIGHUP, hang_up)
    first, *further = broker.ports.listeners
    text = f"{_addresses_text(broker.addresses)} {ready}"
    if first.protocol != "PLAINTEXT":
        text += f", {first.name} ({first.protocol})"
    for listener in further:
        addresses = _addresses_text(broker.listeners[listener.name])
        text += f", {listener.name} ({listener.protocol}) on {addresses}"
    sys.stdout.write(f"kohort ready on {text}\n")
    sys.stdout.flush()
    waiting = [asyncio.create_task(event.wait()) for event in (stop_requested, broker.stopped)]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await broker.stop()
    except TimeoutError:
        complain(f"serve: stopped without closing everything in {STOP_SECONDS:g} s")
        return FAILED
    return OK


def _has_terminal() -> bool:
    """Whether this process belongs to a terminal that is still there: the system sends the same
    signal when somebody closes the terminal as when somebody wants certificates to be read again.
    """
    import os

    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _addresses_text(addresses: "Sequence[tuple[str, int]]") -> str:
    return ",".join(_address_text(*address) for address in addresses)


def _allow_many_files() -> None:
    """Raise the limit of open files: each connection and each segment holds a file open."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # the system has a lower limit of its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _loop_factory() -> "Callable[[], AbstractEventLoop] | None":
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _os_reason(error: OSError, listen: tuple[str, int], data_dir: Path | None) -> str:
    address = _address_text(*listen)
    match error.errno:
        case errno.EADDRINUSE:
            return f"cannot listen on {address}: the port is taken"
        case errno.EADDRNOTAVAIL:
            return f"cannot listen on {address}: no such address on this machine"
        case errno.EACCES | errno.EPERM if error.filename is None and 0 < listen[1] < 1024:
            why = "permission denied, since ports below 1024 are for root"
            return f"cannot listen on {address}: {why}"
        case errno.EACCES | errno.EPERM | errno.EROFS if error.filename is not None or data_dir:
            return f"cannot write to {error.filename or data_dir}: {error.strerror}"
        case errno.EACCES | errno.EPERM:
            return f"cannot listen on {address}: permission denied"
    return f"cannot start on {address}: {error.strerror or error}"


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _address_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _address(text: str) -> tuple[str, int]:
    from kohort.config.listeners import host_and_port

    if "://" in text:
        raise ArgumentTypeError(
            f"{text!r} is not HOST:PORT; a listener of SSL or SASL cannot be had yet, and one of "
            "plain text needs no name"
        )
    try:
        return host_and_port(text)
    except KohortError as error:
        raise ArgumentTypeError(str(error)) from None


def _metrics_address(text: str) -> tuple[str, int]:
    """Nobody but this machine may ask, unless a host is named."""
    port = text.removeprefix(":")
    if ":" in port:
        return _address(text)
    if not (port.isascii() and port.isdigit()):
        raise ArgumentTypeError(f"{text!r} is not an address, expected PORT or HOST:PORT")
    return _address(f"127.0.0.1:{port}")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 1000):
        raise ArgumentTypeError(f"{text!r} is not a number of nodes, expected 1 to 1000")
    return int(text)


def _pair(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name.strip():
        raise ArgumentTypeError(NO_SETTING)
    return name.strip(), value.strip()


COMMAND = Serve()
