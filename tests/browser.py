"""Debian's Chromium without a window, as the judge of pages."""

from __future__ import annotations

import html
import os
import re
import subprocess
from pathlib import Path

import require

_OPTIONS = (
    "--headless=new",
    "--disable-dev-shm-usage",
    "--use-angle=swiftshader",  # WebGL by the processor
    "--enable-unsafe-swiftshader",
    "--allow-file-access-from-files",
)
_BREAKS = re.compile(r"<(style|script).*?</\1>|<[^>]*>", re.DOTALL)


def page_text(url: str, directory: Path, seconds: int = 20) -> list[str]:
    """What a page says, piece by piece, after `seconds` of its own time. `directory` is for the browser's files."""
    browser = require.command("chromium", package="chromium")
    options = [*_OPTIONS, f"--user-data-dir={directory / 'chromium'}", f"--virtual-time-budget={seconds * 1000}"]
    if os.geteuid() == 0:
        options.append("--no-sandbox")  # or it does not start
    command = [browser, *options, "--dump-dom", url]
    environment = {"HOME": str(directory), "PATH": os.environ["PATH"]}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=120)
    return [html.unescape(piece.strip()) for piece in _BREAKS.sub("\n", done.stdout).split("\n") if piece.strip()]
