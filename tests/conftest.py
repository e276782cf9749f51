"""Set-up for all tests. Helpers beside this file are imported by name: `import require`, `import debian`."""
