"""sources: lines of source files, where these are found."""

from __future__ import annotations

import os
import stat

from perfemu.visible import visible

_MOST_FILE_BYTES = 64 << 20


class SourceTexts:
    """Reads a file when a line of it is first asked for. `prefix`, `strip`: perf's --prefix and --prefix-strip."""

    def __init__(self, symfs: str = "", prefix: str = "", strip: int = 0) -> None:
        self._symfs = symfs.rstrip("/")
        self._prefix = prefix.rstrip("/")
        self._strip = strip
        self._files: dict[str, list[str]] = {}

    def line(self, path: str, number: int) -> str | None:
        """Without its end, fit for a terminal; None where the file is not found or too short."""
        lines = self._files.get(path)
        if lines is None:
            lines = self._files[path] = self._read(path)
        return lines[number - 1] if 0 < number <= len(lines) else None

    def _places(self, path: str) -> list[str]:
        if self._prefix and path.startswith("/"):
            return [f"{self._prefix}/{'/'.join(path.split('/')[1 + self._strip :])}"]
        return [f"{self._symfs}/{path}", path] if self._symfs else [path]

    def _read(self, path: str) -> list[str]:
        for place in self._places(path):
            try:
                found = os.stat(place)
                if stat.S_ISREG(found.st_mode) and found.st_size <= _MOST_FILE_BYTES:
                    with open(place, encoding="utf-8", errors="surrogateescape") as file:
                        return [visible(line.rstrip().expandtabs(8)) for line in file.read().split("\n")]
            except (OSError, ValueError):
                continue
        return []
