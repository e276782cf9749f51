"""Arm's counting hardware."""
