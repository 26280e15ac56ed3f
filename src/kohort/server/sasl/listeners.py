# SPDX-License-Identifier: Apache-2.0
"""Which listeners of a broker have SASL, and how."""

from collections.abc import Callable, Sequence

from kohort.config import BrokerConfig, ConfigError, listener_settings
from kohort.config.listeners import Listener
from kohort.security.scram_server import Decoy
from kohort.server.sasl.settings import LookUp, MakeDecoy, SaslSettings


def sasl_listeners(
    config: BrokerConfig,
    listeners: Sequence[Listener],
    look_up: LookUp,
    decoy: MakeDecoy,
    new_id: Callable[[], bytes],
) -> dict[int, SaslSettings]:
    """How the clients of the listeners with SASL authenticate, by the numbers of these. Raises
    ConfigError for what is wrong.
    """
    found = {}
    for number, listener in enumerate(listeners):
        if listener.uses_sasl:
            try:
                own = listener_settings(config, listener)
                found[number] = SaslSettings(own, look_up, decoy, new_id)
            except ConfigError as error:
                raise ConfigError(f"listener {listener.name}: {error}") from None
    return found


def check_sasl(config: BrokerConfig, listeners: Sequence[Listener]) -> None:
    """Raises ConfigError as `sasl_listeners` would."""
    sasl_listeners(
        config, listeners, lambda _user, _name: None, lambda _name: Decoy(b""), lambda: b""
    )
