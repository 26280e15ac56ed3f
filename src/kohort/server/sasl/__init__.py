# SPDX-License-Identifier: Apache-2.0
"""Who clients are: SASL on the listeners of a broker (KIP-43, KIP-152, KIP-368)."""
