# SPDX-License-Identifier: Apache-2.0
"""The directory of tables: what is in it, how rows get into it, and how they are read."""
