# SPDX-License-Identifier: Apache-2.0
"""The clients of a simulated cluster, a file for each kind."""
