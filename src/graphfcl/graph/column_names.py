"""What the columns of tables of nodes and edges may be called."""

ID_NAMES = ("id", "node", "node_id")
LABEL_NAMES = ("label", "class")
TEXT_NAMES = ("text",)
SOURCE_NAMES = ("source", "src", "from")
TARGET_NAMES = ("target", "dst", "to")
WEIGHT_NAMES = ("weight",)
