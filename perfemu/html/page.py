"""page: a document as one HTML file that loads nothing, and in which nothing but our own script runs."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files

from perfemu.html.document import Document

_SCRIPTS = ("profile.js", "flame.js", "page.js")
_PARTS = re.compile(r"\{\{(\w+)\}\}")


def page(document: Document, title: str = "") -> bytes:
    """The whole file; ASCII, so that its encoding is beyond doubt."""
    here = files("perfemu.html")
    script = "".join(here.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS)
    style = here.joinpath("page.css").read_text(encoding="utf-8")
    parts = {
        "title": html.escape(title or document["name"]),
        "script": script,
        "style": style,
        "script_hash": _hash(script),
        "style_hash": _hash(style),
        "document": _json(document),
    }
    template = here.joinpath("page.html").read_text(encoding="utf-8")
    whole = _PARTS.sub(lambda part: parts[part[1]], template)
    return whole.encode("ascii", "xmlcharrefreplace")


def _json(document: Document) -> str:
    """Names come from guests: no ``<`` that could end the element."""
    return json.dumps(document, separators=(",", ":")).replace("<", "\\u003c")


def _hash(text: str) -> str:
    """As the page's Content-Security-Policy names what it allows."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
