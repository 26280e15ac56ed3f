# SPDX-License-Identifier: Apache-2.0
"""The files of a directory of tables: the manifest that names them, their writer, their reader."""
