# SPDX-License-Identifier: Apache-2.0
"""Kafka's own command line tools, as far as they are about groups: the same arguments, the same
output.

A script that calls `kafka-consumer-groups.sh` goes on with `kohort-consumer-groups`. What differs
is listed in docs/drop-in.md, and a test holds that list against what the real tools have said.
Everything is printed as those tools print it, also what one would say better: that is what scripts
read.
"""
