"""The guest's environment: small and the same everywhere, because one more variable changes what a program counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from perfemu.errors import UsageError

DEFAULT_ENVIRONMENT: tuple[tuple[str, str], ...] = (
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", "/"),
    ("LC_ALL", "C"),
    ("TERM", "dumb"),
)


def guest_environment(
    settings: Iterable[str], host: Mapping[str, str], inherit: bool = False
) -> tuple[tuple[str, str], ...]:
    """The default, or with `inherit` the `host`'s; then the `settings`: ``NAME=VALUE``, or ``NAME`` from the host."""
    variables = dict(host) if inherit else dict(DEFAULT_ENVIRONMENT)
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not name:
            raise UsageError(f"--env '{setting}': wants NAME=VALUE, or NAME to take it from your environment")
        if not equals:
            if name not in host:
                raise UsageError(f"--env {name}: not set in your environment; give it as --env {name}=VALUE")
            value = host[name]
        variables[name] = value
    return tuple(variables.items())


def search_path(environment: Iterable[tuple[str, str]]) -> list[str]:
    """The directories of the guest's PATH; an empty one is the current directory, as for execvp(3)."""
    path = dict(environment).get("PATH", "/bin:/usr/bin")
    return [directory or "." for directory in path.split(":")]
