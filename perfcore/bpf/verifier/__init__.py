"""The verifier: whether a program can be run at all."""
