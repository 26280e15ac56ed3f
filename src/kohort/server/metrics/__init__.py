# SPDX-License-Identifier: Apache-2.0
"""What a broker counts, and the page on which others read it."""
