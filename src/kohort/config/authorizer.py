# SPDX-License-Identifier: Apache-2.0
"""The settings of the authorizer: which one, and who may do everything whatever the rules say."""

from kohort.config.settings import ConfigError

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def check_authorizer(name: str) -> None:
    """Raises ConfigError for the class of any other authorizer; none may be named."""
    if name not in ("", STANDARD_AUTHORIZER):
        raise ConfigError(
            f"authorizer.class.name is {name!r}, expected {STANDARD_AUTHORIZER}, "
            "or nothing for a broker without rules"
        )


def super_users_of(text: str) -> tuple[str, ...]:
    """The principals of `super.users`, each once. Semicolons stand between them, since the name of
    a certificate has commas. Raises ConfigError for a text that is no principal.
    """
    principals = dict.fromkeys(part.strip() for part in text.split(";"))
    principals.pop("", None)
    for principal in principals:
        kind, colon, _ = principal.partition(":")
        if not kind or not colon:
            raise ConfigError(
                f"super.users names {principal!r}, expected type:name as in User:admin, "
                "with semicolons between several"
            )
    return tuple(principals)
