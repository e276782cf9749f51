"""Data only: one file per PMU model, each with one `MODEL`. `pmu.model.model(name)` finds them by file name."""
