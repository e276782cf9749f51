"""``python -m perfemu`` is the command ``perfemu``, and this is where both begin."""

import _signal  # type: ignore[import-not-found]  # signal's built-in part: not a file that could come from elsewhere
import sys

_signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # no traceback, wherever nothing must be completed

from perfemu.import_path import keep_what_is_installed  # noqa: E402  # when that is settled

keep_what_is_installed()

from perfemu.cli.main import main  # noqa: E402  # from where it is safe

if __name__ == "__main__":
    sys.exit(main())
