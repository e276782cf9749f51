"""``python -m perfemu`` is the command ``perfemu``."""

import sys

from perfemu.cli.main import main

sys.exit(main())
