# SPDX-License-Identifier: Apache-2.0
"""From the bytes of a log to columns: numpy and Arrow, many records at once."""
