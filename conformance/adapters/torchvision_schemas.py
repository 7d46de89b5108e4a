"""Let torchvision's wheel be imported beside a CPU build of torch.

PyPI's wheel is built for CUDA. Its C library does not load beside a CPU torch, and then its Python
part fails, because it registers fake kernels for two operators that the library would have
declared. Declaring their schemas is enough for everything that does not call the two.
"""

from __future__ import annotations

import functools
import importlib.util

import torch

# torchvision 0.28.0, torchvision/_meta_registrations.py.
_ARGUMENTS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_OPERATORS = ("nms", "qnms")


def needed() -> bool:
    """Whether torchvision is installed beside a torch that its C library cannot load with."""
    return torch.version.cuda is None and importlib.util.find_spec("torchvision") is not None


@functools.cache
def declare() -> torch.library.Library | None:
    """Declare what is not declared yet; once per process, before torchvision is imported.

    Returns:
        The library that holds the schemas (they live as long as it does), or None if none is
        needed.
    """
    if not needed():
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    for operator in _OPERATORS:
        if not hasattr(torch.ops.torchvision, operator):
            library.define(operator + _ARGUMENTS)
    return library
