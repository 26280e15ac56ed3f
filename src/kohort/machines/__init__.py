# SPDX-License-Identifier: Apache-2.0
"""What every state machine of the broker is made of: calls and effects, deadlines, the topics.

`runtime` drives machines; the groups of a partition (`coordinator`) and its transactions
(`transactions`) are such.
"""
