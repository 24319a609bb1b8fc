"""Which methods are taken where none is named."""

RUN_METHOD = "hag-meta"
MODEL_METHOD = "anchor"
REFERENCE_METHOD = "hag-meta"
