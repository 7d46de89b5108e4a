"""Let torchvision be imported where its C library does not load.

PyPI's wheel is built for CUDA: beside a CPU build of torch its library does not load, and then
its Python part fails, because it registers fake kernels for two operators that the library would
have declared. Declaring their schemas is enough for everything that does not call the two.
"""

from __future__ import annotations

import functools
import importlib.util
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from pathlib import Path

import torch

# torchvision 0.28.0, torchvision/_meta_registrations.py.
OPERATORS = ("torchvision::nms", "torchvision::qnms")
ARGUMENTS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


@functools.cache
def needed() -> bool:
    """Whether torchvision is installed and its C library does not load here."""
    spec = importlib.util.find_spec("torchvision")
    return spec is not None and spec.origin is not None and not _loads(Path(spec.origin).parent)


def _loads(folder: Path) -> bool:
    """Load the C library as `torchvision.extension` does, which may then do it again."""
    library = FileFinder(str(folder), (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec("_C")
    if library is None or library.origin is None:
        return False
    try:
        torch.ops.load_library(library.origin)
    except OSError:
        return False
    return True


@functools.cache
def declare() -> None:
    """Declare the schemas where they are needed; before torchvision is imported."""
    if needed():
        for operator in OPERATORS:
            torch.library.define(operator, ARGUMENTS)
