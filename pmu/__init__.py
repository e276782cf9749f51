"""The counting and sampling hardware, as registers."""
