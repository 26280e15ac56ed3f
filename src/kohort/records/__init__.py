# SPDX-License-Identifier: Apache-2.0
"""Layer 2: what stands in `__consumer_offsets`."""
