"""VERSION of this perfemu; pyproject.toml has the same."""

VERSION = "0.1.0"
