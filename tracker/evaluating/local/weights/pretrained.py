"""Load the weights of a model onto its devices with transformers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracker.errors import LanguageModelError, first_line
from tracker.evaluating.model_files import check_device

ALL_DEVICES = "all"
"""The device that stands for all CUDA devices: each has a part of the layers."""


def resolve_device(device: str | None) -> str:
    """Return the device, such as ``cuda:0``, or `ALL_DEVICES`.

    Raises:
        LanguageModelError: torch cannot use it.
    """
    import torch

    if device == ALL_DEVICES:
        if not torch.cuda.is_available():
            raise LanguageModelError("--device all needs CUDA devices, and none is available. Try --device cpu.")
        return ALL_DEVICES
    if device in ("auto", None):
        if torch.cuda.is_available():
            return f"cuda:{torch.cuda.current_device()}"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    check_device(str(device), LanguageModelError)
    return f"cuda:{torch.cuda.current_device()}" if device == "cuda" else str(device)


def load_weights(
    kind: Any, folder: Path, name: str, *, device: str, dtype: str | None, quantization: str, options: Mapping[str, Any]
) -> Any:
    """Load the model with all of its weights onto its devices.

    On a CPU, weights that already have the data type are memory-mapped from the file and not copied.

    Args:
        kind: class of transformers, such as ``AutoModelForCausalLM``.
        folder: of the model.
        name: of the model, for messages.
        device: as `resolve_device` returns it.
        dtype: one of `DTYPES`; ``auto`` or None for that of quantised files, and of files on CUDA; else float32.
        quantization: how the weights are quantised; '' if they are not.
        options: more options of ``from_pretrained``.

    Raises:
        LanguageModelError: the weights are damaged, incomplete, too large, or need packages that are not installed.
    """
    import torch

    is_plain = not quantization and device != ALL_DEVICES
    try:
        model, loaded = kind.from_pretrained(
            folder,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **_dtype_option(_choose_dtype(dtype, device, quantization)),
            **({} if is_plain else {"device_map": "auto" if device == ALL_DEVICES else {"": device}}),
            **options,
        )
        _check_loaded(loaded, type(model).__name__, name)
        if is_plain and str(model.device) != device:  # others are placed at loading and may not be moved
            model = model.to(device)
        _check_placement(model, name, device)
        return model.eval().requires_grad_(False)
    except torch.OutOfMemoryError as error:
        raise LanguageModelError(_describe_lack_of_memory(name, device)) from error
    except LanguageModelError:
        raise
    except ImportError as error:
        reason = f"its weights are quantised ({quantization})" if quantization else f"--device is {device}"
        raise LanguageModelError(
            f"{name} needs packages that are not installed, because {reason}: {first_line(error)}"
        ) from error
    except Exception as error:
        raise LanguageModelError(f"{name} cannot be loaded as a language model ({first_line(error)}).") from error


def describe_quantization(settings: Mapping[str, Any]) -> str:
    """Return method and bits of quantised weights, such as ``gptq, 4 bits``; '' for plain weights.

    Args:
        settings: content of the model's config.json.
    """
    quantized = settings.get("quantization_config")
    if not isinstance(quantized, Mapping):
        return ""
    bits = next((n for n in (4, 8) if quantized.get(f"load_in_{n}bit")), quantized.get("bits", quantized.get("nbits")))
    method = quantized.get("quant_method") or ("bitsandbytes" if bits else "unknown method")
    return f"{method}, {bits} bits" if bits else str(method)


def _choose_dtype(dtype: str | None, device: str, quantization: str) -> str:
    if dtype in ("auto", None) and not (quantization or device == ALL_DEVICES or device.startswith("cuda")):
        return "float32"
    return dtype or "auto"


def _dtype_option(dtype: str) -> dict[str, Any]:
    """Return the option under the name that the installed transformers version uses."""
    import torch
    import transformers

    major, minor = map(int, transformers.__version__.split(".")[:2])
    return {
        "dtype" if (major, minor) >= (4, 56) else "torch_dtype": dtype if dtype == "auto" else getattr(torch, dtype)
    }


def _check_loaded(loaded: Mapping[str, Any], architecture: str, name: str) -> None:
    """Reject a model with weights that are missing or have other shapes."""
    if wrong := sorted(key if isinstance(key, str) else key[0] for key in loaded["mismatched_keys"]):
        raise LanguageModelError(
            f"{len(wrong):,} weights of {name} have other shapes than config.json declares, such as {wrong[0]}. "
            "Download both again."
        )
    if lacking := sorted(loaded["missing_keys"]):
        raise LanguageModelError(
            f"{name} lacks {len(lacking):,} of its weights, such as {lacking[0]}. Its files are incomplete, or are not "
            f"those of a {architecture}."
        )


def _check_placement(model: Any, name: str, device: str) -> None:
    """Reject a model of which a part was left to main memory or disk, since it would take hours."""
    places = {str(place) for place in (getattr(model, "hf_device_map", None) or {}).values()}
    if device == ALL_DEVICES and places & {"cpu", "disk"}:
        raise LanguageModelError(_describe_lack_of_memory(name, device))


def _describe_lack_of_memory(name: str, device: str) -> str:
    place = "all CUDA devices" if device == ALL_DEVICES else device
    return f"{name} does not fit into the memory of {place}. Try a 2-byte dtype such as bfloat16, or --device cpu."
