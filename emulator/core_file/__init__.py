"""A core as data: what its file may say, checked, in layers."""
