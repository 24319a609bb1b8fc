"""Methods from outside the package: how they are found, run, kept apart and refused."""
