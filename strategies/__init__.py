"""What may arrive: Hypothesis strategies for Step3-VL vision encoders, usable on their own."""

from strategies.case import Case, Image, Placement, Weights, brief, plain_item
from strategies.casefile import load_case, save_case
from strategies.cases import cases
from strategies.configs import configs
from strategies.counts import counts, list_forms, numpy_forms, scalar_forms, tensor_forms
from strategies.items import items, square_grids
from strategies.malformed import FAULTS, malformed
from strategies.pixels import PROFILES, paint, pixels

__all__ = [
    "FAULTS",
    "PROFILES",
    "Case",
    "Image",
    "Placement",
    "Weights",
    "brief",
    "cases",
    "configs",
    "counts",
    "items",
    "list_forms",
    "load_case",
    "malformed",
    "numpy_forms",
    "paint",
    "pixels",
    "plain_item",
    "save_case",
    "scalar_forms",
    "square_grids",
    "tensor_forms",
]
