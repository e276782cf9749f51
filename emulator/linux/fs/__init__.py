"""Files: the guest's tree, whatever keeps it, and what open files do."""
