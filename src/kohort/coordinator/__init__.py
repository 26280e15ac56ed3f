# SPDX-License-Identifier: Apache-2.0
"""Layer 3: the replicated state machine of consumer groups. No IO, no clock."""
