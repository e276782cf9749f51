"""Terms: what stands between the slashes of ``pmu/event=0x3c,umask=1,name=mine/``, or ``pmu/alias/``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from perfemu.errors import EventSyntaxError
from pmu.format_field import FormatField

_MASK_64 = (1 << 64) - 1


@dataclass(slots=True)
class Terms:
    """What they come to; `config` is empty of whatever is not said."""

    config: dict[str, int] = field(default_factory=lambda: {"config": 0, "config1": 0, "config2": 0})
    label: str | None = None
    period: int | None = None
    frequency: int | None = None
    aux_sample_bytes: int | None = None


def parse_terms(
    text: str,
    whole: str,
    format: Sequence[FormatField],
    find: Callable[[str], int | None],
    near: Callable[[str], str],
    default: int = 0,
) -> Terms:
    """`find` gives the config of an event by its name, `near` what to say where there is none.

    `default`: `config` where no term says what its fields are. Without a `format` there are no numbers to set, as with
    generic events. Raises EventSyntaxError about `whole`.
    """
    terms = Terms()
    left = default
    fields = {bits.name: bits for bits in format}
    for term in filter(None, text.split(",")):
        name, equals, value = term.partition("=")
        if not equals and name not in fields:
            config = find(name)
            if config is None:
                raise EventSyntaxError(f"unknown term '{name}' in '{whole}'{near(name)}")
            terms.config["config"] |= config
        elif name == "name":
            terms.label = value
        elif name == "period":
            terms.period = _number(term, value or "1", whole)
        elif name == "freq":
            terms.frequency = _number(term, value or "1", whole)
        elif name == "aux-sample-size":
            terms.aux_sample_bytes = _number(term, value, whole)
        elif fields and name in terms.config:
            terms.config[name] |= _number(term, value, whole)
        elif name in fields:
            try:
                placed = fields[name].insert(_number(term, value if equals else "1", whole))
            except ValueError as problem:
                raise EventSyntaxError(f"'{whole}': {problem}") from None
            terms.config[fields[name].config] |= placed
            left &= ~fields[name].mask if fields[name].config == "config" else -1
        else:
            known = [*fields, *(terms.config if fields else ()), "name", "period", "freq", "aux-sample-size"]
            raise EventSyntaxError(f"unknown term '{name}' in '{whole}'; there are {', '.join(known)}")
    terms.config["config"] |= left
    return terms


def _number(term: str, text: str, whole: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        raise EventSyntaxError(f"'{term}' in '{whole}' wants a number") from None
    if not 0 <= value <= _MASK_64:
        raise EventSyntaxError(f"'{term}' in '{whole}' does not fit in 64 bits")
    return value
