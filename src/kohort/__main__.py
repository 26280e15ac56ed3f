# SPDX-License-Identifier: Apache-2.0
"""`python -m kohort` is the command line."""

import sys

from kohort.cli.main import main

sys.exit(main())
