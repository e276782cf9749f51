"""Signals: what they are, who sends them, what they do."""
