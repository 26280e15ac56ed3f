# SPDX-License-Identifier: Apache-2.0
"""`kohort groups config`: show and change the settings of groups (KIP-848)."""

from typing import ClassVar

from kohort.cli.resource_configs import ConfigureResources


class ConfigureGroups(ConfigureResources):
    """`kohort groups config`."""

    noun: ClassVar[str] = "group"
    key: ClassVar[str] = "group_id"
    own_source: ClassVar[str] = "DYNAMIC_GROUP_CONFIG"
    metavar: ClassVar[str] = "GROUP"
    names_help: ClassVar[str] = "a group id"
    instead: ClassVar[str] = "in place of the broker's setting"
    fallback: ClassVar[str] = "the broker's setting"
    lossy: ClassVar[None] = None  # none of them deletes anything
    help: ClassVar[str] = "show the settings of groups, and change them"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort groups config billing",
        "kohort groups config billing --set consumer.session.timeout.ms=60000",
        "kohort groups config billing --unset consumer.session.timeout.ms",
    )
