"""The site of the docs: ``python -m scripts.site`` builds it."""
