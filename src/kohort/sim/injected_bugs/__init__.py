# SPDX-License-Identifier: Apache-2.0
"""Bugs that are planted to see whether they are found, a file for each part of the broker."""
