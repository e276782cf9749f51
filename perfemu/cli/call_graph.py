"""The words of report -g."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfemu.errors import UsageError
from perfemu.profile.tree_lines import CALL_VALUES

DEFAULT_GRAPH = "graph,0.5,caller,function,percent"
NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+")
_IGNORED = ("function",)  # what we always do


@dataclass(slots=True)
class CallGraph:
    """What -g asks for. `order` is empty if it does not say."""

    style: str = "graph"
    least_percent: float = 0.5
    order: str = ""
    value: str = "percent"


_WORDS = {  # to a field of CallGraph
    **dict.fromkeys(("graph", "fractal", "folded", "none"), "style"),
    **dict.fromkeys(("caller", "callee"), "order"),
    **dict.fromkeys(CALL_VALUES, "value"),
}


def call_graph(text: str) -> CallGraph:
    """Raises UsageError."""
    made = CallGraph()
    for word in text.split(","):
        if word in _WORDS:
            setattr(made, _WORDS[word], word)
        elif NUMBER.fullmatch(word):
            made.least_percent = float(word)
        elif word and word not in _IGNORED:
            known = ", ".join(("graph, fractal, folded, none, PERCENT", "caller, callee", *CALL_VALUES, *_IGNORED))
            raise UsageError(f"report -g {word}: known are {known}")
    return made
