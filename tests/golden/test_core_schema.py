"""docs/cores.md has the rows of the schema; docs/pipelines.md explains all keys of pipelines, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from emulator.core_file.keys import IN_ORDER, MODELLED, MODELS, OUT_OF_ORDER, Key, Kind, Table
from emulator.core_file.schema import TABLES, table_of
from golden.pages import check_page
from guests import DIRECTORY

PAGE = DIRECTORY.parent / "docs" / "cores.md"
PIPELINES = DIRECTORY.parent / "docs" / "pipelines.md"
MARK = "<!-- made from emulator/core_file/schema.py by `make golden` -->\n"


def rows() -> Iterator[str]:
    for table in TABLES:
        name = f"`[{table.path}]`" if table.path else "At the top"
        yield f"\n{name}: {table.meaning.replace('*', '&#42;')}\n\n| key | value | |\n|---|---|---|\n"
        for key in table.keys:
            yield f"| `{key.name}` | {value(table, key)} | {key.meaning.replace('|', '&#124;')} |\n"


def value(table: Table, key: Key) -> str:
    """Kind and range, and what holds without it."""
    kinds = {Kind.SIZE: "size", Kind.BOOLEAN: "true, false", Kind.TEXT: "text", Kind.TEXTS: "list"}
    parts = [kinds.get(key.kind, "")]
    if key.kind in (Kind.INTEGER, Kind.REAL, Kind.SIZE):
        parts.append(f"{key.minimum:_} to {key.maximum:_}")
    if key.choices is not None and (names := key.choices({})):
        parts.append(" ".join(f"`{name}`" for name in names))
    if key.default is not None:
        parts.append(f"[{str(key.default).lower()}]")
    elif key.required:
        parts.append("needed")
    if key.models not in (MODELS, MODELLED):
        parts.append(f"only {', '.join(key.models)}")
    return ", ".join(filter(None, parts))


def test_the_page_has_the_schemas_rows() -> None:
    check_page(PAGE, MARK, "".join(rows()))


def test_every_key_of_pipelines_and_operations_is_explained_and_no_other() -> None:
    sections = re.split(r"^## ", PIPELINES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    explained = {
        section.partition("\n")[0]: {name for row in re.findall(r"^\| (`.*?) \|", section, re.M) for name in names(row)}
        for section in sections
    }

    def keys_of(models: tuple[str, ...]) -> set[str]:
        table = table_of(("pipeline",))
        assert table is not None
        return {key.name for key in table.keys if key.models == models}

    assert explained["`[pipeline]`, every model"] == keys_of(MODELS)
    shared = explained["Keys of `in_order` and `out_of_order`"]
    out_of_order, in_order = explained["`out_of_order`"], explained["`in_order`"]
    both = out_of_order & in_order  # explained twice
    assert out_of_order - both - {"[pipeline.schedulers]"} <= keys_of(OUT_OF_ORDER)
    assert in_order - both <= keys_of(IN_ORDER)
    keys = keys_of(MODELLED) | keys_of(OUT_OF_ORDER) | keys_of(IN_ORDER)
    assert (shared | out_of_order | in_order) - {"[pipeline.schedulers]"} == keys
    operations = table_of(("ops", "ALU"))
    assert operations is not None
    assert next(keys for title, keys in explained.items() if title.startswith("`[ops]`")) == {
        *(key.name for key in operations.keys),
        "width",
    }


def names(row: str) -> list[str]:
    """Of a cell such as ``a`, `b` or `[c]``."""
    return re.findall(r"`([^`]+)`", row)
