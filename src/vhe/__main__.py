"""`python -m vhe` is the command `vhe`."""

import sys

from vhe.cli import main

sys.exit(main())
