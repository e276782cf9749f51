"""Where the command imports from: what is installed, and not from where guests write or other programs put modules.

Nothing is imported here that Python has not imported before us (no __future__ either): it would come from there.
"""

import os
import sys


def keep_what_is_installed() -> None:
    """Forget the current directory (``python -m``) and PYTHONPATH, and the modules that came from there already.

    If perfemu itself is there, that directory stays, behind all others.
    """
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    foreign = {os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    if not sys.flags.safe_path and sys.orig_argv[1:] and "-m" in sys.orig_argv:
        foreign.add(_current_directory())
    foreign.discard("")
    sys.path[:] = [entry for entry in sys.path if entry and os.path.abspath(entry) not in foreign]
    if ours in foreign:
        sys.path.append(ours)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if name.partition(".")[0] not in ("perfemu", "__main__") and os.path.dirname(file) in foreign:
            del sys.modules[name]


def _current_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""
