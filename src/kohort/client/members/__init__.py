# SPDX-License-Identifier: Apache-2.0
"""The members of groups as pure machines: no clock, no socket, no chance, no thread.

`membership` is a member of the KIP-848 protocol, and `heartbeat` what it says. `classic_membership`
is a member of the classic protocol, and `classic_assigning` what it does when it leads. `events` is
what a machine tells the consumer that owns it. `any_membership` is what both have in common; it is
made of `owned_partitions` and `request_state`.
"""
