# SPDX-License-Identifier: Apache-2.0
"""Online migration: a group with members goes over to the other protocol (KIP-848).

Each conversion is one step. Its records end the old group and begin the new one, in one batch, so a
log has either the one or the other. Offsets and settings belong to the id of a group, whatever its
kind, and stay as they are.
"""
