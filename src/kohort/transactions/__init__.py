# SPDX-License-Identifier: Apache-2.0
"""Layer 3: the machine behind `__transaction_state`, which begins and ends transactions (KIP-98).

It is driven as the groups are. What it knows is what the log says; what it asks of others, the
markers, leaves when the record that decides them is durable.
"""
