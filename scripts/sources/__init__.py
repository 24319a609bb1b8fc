"""Builders of the embedded graphs from what Debian installs."""
