# SPDX-License-Identifier: Apache-2.0
"""The simulator: the real broker, with time, disk, network and clients played from a seed."""
