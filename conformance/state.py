"""The global state of torch that a call must leave as it found it (SE-05)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

State = dict[str, object]


def read_state() -> State:
    """Everything that SE-05 names, by name."""
    return {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "RNG state": torch.get_rng_state(),
        "float32 matmul precision": torch.get_float32_matmul_precision(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        **precision_flags(),
    }


def precision_flags() -> State:
    """The flags that let an accelerator compute in less than the dtype says."""
    matmul = torch.backends.cuda.matmul
    return {
        "TF32 in matmul": matmul.allow_tf32,
        "TF32 in convolutions": torch.backends.cudnn.allow_tf32,
        "reduced-precision float16 sums": matmul.allow_fp16_reduced_precision_reduction,
        "reduced-precision bfloat16 sums": matmul.allow_bf16_reduced_precision_reduction,
    }


def changed(before: State, after: State) -> tuple[str, ...]:
    """The names of what differs."""
    names = dict.fromkeys((*before, *after))
    return tuple(name for name in names if not _equal(before.get(name), after.get(name)))


@contextlib.contextmanager
def state_kept() -> Iterator[None]:
    """Put the state back afterwards, so that one call cannot disturb the next."""
    before = read_state()
    try:
        yield
    finally:
        if changed(before, read_state()):
            _write_state(before)


def _equal(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return torch.equal(one, other)
    return one == other


def _write_state(state: State) -> None:
    torch.set_grad_enabled(bool(state["grad mode"]))
    torch.set_default_dtype(state["default dtype"])  # type: ignore[arg-type]
    torch.set_default_device(state["default device"])  # type: ignore[arg-type]
    torch.set_rng_state(state["RNG state"])  # type: ignore[arg-type]
    torch.set_float32_matmul_precision(str(state["float32 matmul precision"]))
    torch.use_deterministic_algorithms(bool(state["deterministic algorithms"]))
    matmul = torch.backends.cuda.matmul
    matmul.allow_tf32 = bool(state["TF32 in matmul"])
    torch.backends.cudnn.allow_tf32 = bool(state["TF32 in convolutions"])
    matmul.allow_fp16_reduced_precision_reduction = bool(state["reduced-precision float16 sums"])
    matmul.allow_bf16_reduced_precision_reduction = bool(state["reduced-precision bfloat16 sums"])
