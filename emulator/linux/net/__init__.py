"""Sockets of a machine that has no network beyond its loopback."""
