"""What /proc shows."""
