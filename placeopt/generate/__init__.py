"""Generate neural networks, random graphs and device networks as problem documents, which `placeopt.compile` compiles.

    from placeopt.generate import model_document, random_document

    problem = po.compile(random_document(80, 4, seed=4))

`placeopt.generate.giph` generates the data of GiPH's experiments.
"""

from placeopt.generate.forks import fork_document
from placeopt.generate.irregular_graphs import irregular_document, irregular_problem
from placeopt.generate.layered_graphs import layered_document, layered_problem
from placeopt.generate.models import MODELS, model_document, pipeline_sections
from placeopt.generate.networks import NETWORKS, combine, network_document
from placeopt.generate.random_graphs import random_document, random_network, random_tasks

__all__ = [
    "MODELS",
    "NETWORKS",
    "combine",
    "fork_document",
    "irregular_document",
    "irregular_problem",
    "layered_document",
    "layered_problem",
    "model_document",
    "network_document",
    "pipeline_sections",
    "random_document",
    "random_network",
    "random_tasks",
]
