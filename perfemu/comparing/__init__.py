"""comparing: what diff and check do: two measurements of programs side by side, to the last function."""
