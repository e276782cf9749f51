"""PMUs without a machine, for tests of drivers: their registers by name, probes that fire when the test says so."""
