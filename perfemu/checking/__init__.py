"""checking: counts held against a baseline that is kept with the sources: what check and the pytest plugin do."""
