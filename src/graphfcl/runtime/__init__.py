"""Processes, files, memory, devices and registries, for all other packages."""
