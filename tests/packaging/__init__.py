"""What users install: metadata, the wheel, the source distribution, the demo."""
