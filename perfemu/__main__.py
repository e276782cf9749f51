"""``python -m perfemu`` is the command ``perfemu``, and this is where both begin."""

import sys

from perfemu.import_path import keep_what_is_installed

keep_what_is_installed()

from perfemu.cli.main import main  # noqa: E402  # from where it is safe

if __name__ == "__main__":
    sys.exit(main())
