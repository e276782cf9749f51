"""Control groups: cgroup v2, its tree and its file system."""
