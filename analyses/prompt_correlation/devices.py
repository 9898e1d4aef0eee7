"""Devices that compare prompts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from analyses.numerics.similarity.engine import KERNELS, Engine
from analyses.numerics.similarity.score_table import ScoreTable
from analyses.presentation.validation import validate
from tracker.errors import MissingExtraError, SelectionError
from tracker.evaluating.local.memory import is_out_of_memory
from tracker.evaluating.model_files import check_device


def choose_engine(device: str, table: ScoreTable) -> Engine:
    """Return what counts pairs and draws tables on a device.

    Args:
        device: "cpu" for compiled kernels, or the name of a CUDA device for PyTorch.
        table: whose prompts are compared.

    Raises:
        SelectionError: the device is not available, or cannot be used for this table.
        MissingExtraError: PyTorch is not installed.
    """
    if device == "cpu":
        return KERNELS
    what_else = "Use --device cpu"
    validate(
        {
            f"Device {device!r} is neither cpu nor a CUDA device such as cuda or cuda:0. {what_else}.": (
                device.partition(":")[0] != "cuda"
            ),
            f"Only scores of 0 and 1 can be compared on the device {device}. {what_else}.": not table.is_binary,
            f"Prompts with weights cannot be compared on the device {device}. {what_else}, or no --weights.": (
                table.weights is not None
            ),
        }
    )
    try:
        from analyses.numerics.similarity.devices.device_engine import create_engine
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"The device {device}", "gpu") from error
    check_device(device, SelectionError)
    return create_engine(device)


@contextmanager
def explain_lack_of_memory(device: str) -> Iterator[None]:
    """Raise an error with the fix where the memory of a device does not suffice for the block.

    Raises:
        SelectionError: it does not suffice.
    """
    try:
        yield
    except RuntimeError as error:
        if device == "cpu" or not is_out_of_memory(error):
            raise
        raise SelectionError(
            f"The memory of the device {device} does not suffice. Use fewer --workers, or --device cpu."
        ) from error
