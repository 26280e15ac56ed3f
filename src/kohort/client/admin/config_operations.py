# SPDX-License-Identifier: Apache-2.0
"""The calls of AdminClient about configurations."""

from collections.abc import Iterable

from kohort.client.admin import hints
from kohort.client.admin.answers import OutcomeAnswers
from kohort.client.admin.calls import AdminCalls


class ConfigOperations(AdminCalls):
    """Configurations of topics, brokers and others."""

    def describe_configs(
        self,
        resources: "hints.ConfigResources",
        *,
        names: str | Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> "OutcomeAnswers[hints.ConfigResource, dict[str, hints.ConfigEntry]]":
        """Configs of topics, brokers, groups and others, by name (KIP-133, KIP-226, KIP-569).

            described = await admin.describe_configs([("topic", "orders"), ("broker", "")])
            described["topic", "orders"]["retention.ms"].value

        Args:
            resources: pairs of a type ("topic", "broker", "broker_logger", "client_metrics",
                "group") and a name. That of a broker is its id as text, and the broker itself is
                asked; "" means what is set for all brokers.
            names: only these configs, where a resource has them; None for all.
            include_synonyms: also where else a value is set, that in force first.
            include_documentation: also what a config is for; needs DescribeConfigs v3.
            timeout: seconds that this call may take, instead of those of the client.
        """
        from kohort.client.admin import config_arguments, configs

        wanted = config_arguments.resources(resources)
        wanted_names = config_arguments.config_names(names)
        return self._answers(
            timeout,
            lambda deadline, arrived: configs.describe_configs(
                self._cluster,
                wanted,
                names=wanted_names,
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
                deadline=deadline,
                arrived=arrived,
            ),
        )

    async def alter_configs(
        self,
        changes: "hints.ConfigChanges",
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> "hints.Outcomes[hints.ConfigResource, None]":
        """Change configs: per resource all that is named, or nothing (KIP-339).

            await admin.alter_configs({("topic", "orders"): {"retention.ms": "60000"}})

        Args:
            changes: (type, name) -> name of the config -> the new value as text, None to take the
                value back, or ConfigAppend and ConfigSubtract where the config is a list. What
                is not named stays as it is.
            validate_only: only check whether it could be done.
            timeout: seconds that this call may take, instead of those of the client.

        No request is sent twice.
        """
        from kohort.client.admin import config_arguments, configs

        return await configs.alter_configs(
            self._cluster,
            config_arguments.config_changes(changes),
            validate_only=validate_only,
            deadline=self._deadline(timeout),
        )

    async def list_config_resources(
        self, types: str | Iterable[str] | None = None, *, timeout: float | None = None
    ) -> "tuple[hints.ConfigResource, ...]":
        """What has configs, sorted: of these types, or of all with None (KIP-1142).

        Raises:
            UnsupportedVersionError: the broker is too old: "client_metrics" alone needs
                ListConfigResources v0, anything else v1.
        """
        from kohort.client.admin import config_arguments, configs

        return await configs.list_config_resources(
            self._cluster,
            None if types is None else config_arguments.resource_types(types),
            deadline=self._deadline(timeout),
        )
