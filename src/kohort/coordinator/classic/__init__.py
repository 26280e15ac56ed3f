# SPDX-License-Identifier: Apache-2.0
"""The classic group protocol, a file for each verb: members join, the leader assigns, all sync.

The log knows only the outcome of a finished rebalance (`replay`). What lies between two outcomes is
soft state, which a restart forgets.
"""
