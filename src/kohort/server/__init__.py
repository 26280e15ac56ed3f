# SPDX-License-Identifier: Apache-2.0
"""Layer 5: the broker."""
