# SPDX-License-Identifier: Apache-2.0
"""What must be on the disk when an answer leaves, a file for each kind of log."""
