"""What programs may call: rows, with what each does."""
