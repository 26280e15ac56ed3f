# SPDX-License-Identifier: Apache-2.0
"""Layer 4: where the coordinator meets its log, and in which order."""
