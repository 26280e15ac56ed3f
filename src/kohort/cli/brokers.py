# SPDX-License-Identifier: Apache-2.0
"""`kohort brokers`: show and change the settings of brokers."""

from kohort.cli.command import Commands
from kohort.cli.resource_configs import ConfigureBrokers

COMMANDS: Commands = {"config": ConfigureBrokers()}
