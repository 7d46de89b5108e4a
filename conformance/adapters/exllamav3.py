"""exllamav3's Step3.7 encoder (`exllamav3.architecture.step3_7`): not driven yet.

exllamav3 is CUDA only: importing it builds or loads kernels. This module says in one line what
stands in the way. What is known of 1.6.5 was read, not run, so that no verdict comes from here
until someone has run it on a GPU. To drive it:

- `Config.from_directory` reads a folder with `config.json` and `model.safetensors`, and wants the
  fields of a whole Step3.5 language model, which is not built for `component="vision"`.
- `Model.from_config(config, component="vision")` and `load(device)` take either spelling of the
  published names, `model.vision_model.` and `vision_model.`. Weights become float16, so a run needs
  `--dtype=float16`.
- `get_image_embeddings(tokenizer, image)` takes one PIL picture, resizes it to the native size and
  its patches to 504 pixels. Tensors of a request come in by `preprocess`, which returns thumbnail
  and patches; counts beyond one image do not exist in this interface.
- Whether its kernels take encoders as small as the suite's (16 channels, head dim 8) is open.
"""

from __future__ import annotations

import torch

from conformance.adapters.engine import installed
from conformance.protocol import Implementation, Unavailable


def implementation() -> Implementation:
    """None yet.

    Raises:
        Unavailable: always, with what is missing here.
    """
    version, _ = installed("exllamav3", "on a CUDA machine, pip install exllamav3")
    if not torch.cuda.is_available():
        raise Unavailable(f"exllamav3 {version} needs CUDA, and torch finds none here")
    raise Unavailable(
        f"exllamav3 {version} is not driven yet: "
        "conformance/adapters/exllamav3.py says what an adapter needs"
    )
