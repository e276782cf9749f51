"""The types of the modelled kernel, as BTF: what programs may ask of its functions, tracepoints and tasks."""
