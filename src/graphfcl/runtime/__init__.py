"""Processes, files, memory and devices: what every other package may import."""
