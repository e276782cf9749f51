"""visible: names that came from a guest or a file, fit for the user's terminal.

(The machine's kernel does the same for its own messages; report must not load the machine for this.)
"""

from __future__ import annotations


def visible(text: str) -> str:
    """`text` with what would steer a terminal or end the line as escapes, as in C: \\x1b, \\n.

    A byte that is no UTF-8 stays one, but for those that are control characters where each byte is a character.
    """
    return text if text.isprintable() else "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # surrogateescape's
        return f"\\x{ord(char) & 0xFF:02x}" if char < "\udca0" else char
    return char.encode("unicode_escape").decode()
