# SPDX-License-Identifier: Apache-2.0
"""What must never happen, a file for each property."""
