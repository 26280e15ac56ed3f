# SPDX-License-Identifier: Apache-2.0
"""What runs have observed, downsampled as it ages: lag, status and samples of end offsets."""
