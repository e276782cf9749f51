"""Processes and their threads: what they are, how they come to be, execute other programs, and end."""
