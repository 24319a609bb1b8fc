"""The datasets: the name of each, and where its ``Dataset`` is made, as ``module:NAME`` below this package.

Their order is that of ``graphfcl data list``. Nothing is imported here, so that a shell is offered names at once.
"""

from collections.abc import Mapping

PLACES: Mapping[str, str] = {
    "debian": "embedded:DEBIAN",
    "wordnet": "embedded:WORDNET",
    "amazon-clothing": "gpn:AMAZON_CLOTHING",
    "amazon-clothing-20": "gpn:AMAZON_CLOTHING_20",
    "dblp": "gpn:DBLP",
    "reddit": "reddit:REDDIT",
    "reddit-dgl": "reddit:REDDIT_DGL",
    "cora-topics": "research:CORA_TOPICS",
    "coauthor-cs": "research:COAUTHOR_CS",
    "amazon-computers": "research:AMAZON_COMPUTERS",
    "cora-ml": "research:CORA_ML",
    "synthetic": "synthetic:SYNTHETIC",
    "synthetic-reddit": "synthetic:SYNTHETIC_REDDIT",
}
