"""The default methods, graph and strategy."""

RUN_METHOD = "hag-meta"
RUN_GRAPH = "debian"
MODEL_METHOD = "anchor"
REFERENCE_METHOD = "hag-meta"
ACTIVE_METHODS = ("anchor", "sgc-ridge")
STRATEGY = "auto"
