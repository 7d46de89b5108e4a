"""The device that models live on."""

from __future__ import annotations

import torch


def find_device(spec: str) -> torch.device:
    """A device that is there.

    Raises:
        ValueError: it is none, or not there.
    """
    try:
        device = torch.device(spec)
        torch.zeros(1, device=device).cpu()
    except Exception as error:  # each backend has its own class for a device that is not there
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"device {spec!r} is not there: {reason}") from None
    return device


def nearest_device(device: torch.device) -> torch.device:
    """A device if it is here, and the CPU if only the far side has it."""
    try:
        return find_device(str(device))
    except ValueError:
        return torch.device("cpu")


def prepare_device(device: torch.device) -> None:
    """Set the process up for reproducible numbers.

    One thread on the CPU: tiny models run many times slower on more, and sums keep their order.
    """
    if device.type == "cpu":
        torch.set_num_threads(1)
