"""The syscalls, one family per file. ``table.load()`` imports every family in this folder; nothing lists them."""
