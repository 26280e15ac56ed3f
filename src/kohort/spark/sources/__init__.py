# SPDX-License-Identifier: Apache-2.0
"""Where raw rows come from: one contract, several classes."""
