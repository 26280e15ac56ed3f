# SPDX-License-Identifier: Apache-2.0
"""One file per API, request above response: the list of files is the list of APIs."""
