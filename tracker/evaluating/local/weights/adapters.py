"""Adapters of language models, such as LoRA: find the base model, and apply the adapter's weights to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracker.errors import LanguageModelError, MissingExtraError, first_line
from tracker.evaluating.local.weights.model_folder import download_model, read_json
from tracker.evaluating.model_files import DIGITS, EXTRA, hash_files, resolve_folder

ADAPTER = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
EXACT_DTYPES = ("float32", "float64")
"""Data types in which the sum of weights and adapter is not rounded noticeably."""


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """An adapter and its base model.

    Attributes:
        folder: of the adapter.
        name: of the adapter, for messages.
        kind: such as ``LORA``.
        base_name: the base model, as adapter or user named it.
        base_folder: folder of the base model.
        base_revision: revision of the base model.
    """

    folder: Path
    name: str
    kind: str
    base_name: str
    base_folder: Path
    base_revision: str

    def apply(self, model: Any) -> Any:
        """Return the base model with the adapter.

        In float32 the adapter is added to the weights. Otherwise, and to quantised weights, it is computed beside them,
        as it was trained: the sum would be rounded.

        Raises:
            LanguageModelError: the adapter does not belong to the model.
        """
        import peft

        is_exact = str(model.dtype).removeprefix("torch.") in EXACT_DTYPES
        can_merge = is_exact and not getattr(model, "is_quantized", False)
        try:
            adapted = peft.PeftModel.from_pretrained(model, str(self.folder))
            self._check_weights(peft.get_peft_model_state_dict(adapted))
            applied = adapted.merge_and_unload() if can_merge else adapted.get_base_model()
        except (ValueError, RuntimeError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, LanguageModelError):
                raise
            raise LanguageModelError(
                f"The adapter {self.name} does not fit its base model {self.base_name} ({first_line(error)}). Name the "
                "right one: --base-model PATH."
            ) from error
        return applied.eval().requires_grad_(False)

    def as_settings(self) -> dict[str, str]:
        """Return kind and base model, for the run's record."""
        return {"adapter": self.kind, "base_model": self.base_name, "base_revision": self.base_revision}

    def _check_weights(self, loaded: Any) -> None:
        """Reject weights without a place in the model, and missing ones, of which peft only warns."""
        from safetensors import safe_open

        with safe_open(self.folder / WEIGHTS, framework="pt") as file:
            stored = set(file.keys())
        if different := sorted(stored ^ set(loaded)):
            raise LanguageModelError(
                f"The adapter {self.name} does not fit its base model {self.base_name}: {len(different):,} weights are "
                f"in one of them alone, such as {different[0]}. Name the right one: --base-model PATH."
            )


def find_adapter(folder: Path, name: str, base_model: str | None) -> Adapter | None:
    """Return the adapter in a folder with its base model, which is downloaded if needed; None for a full model.

    Args:
        folder: of the adapter.
        name: of the adapter, for messages.
        base_model: folder or name on the hub; None for the base model that the adapter names.

    Raises:
        MissingExtraError: peft is not installed.
        LanguageModelError: the adapter cannot be used, or its base model is not available.
    """
    if not (folder / ADAPTER).is_file():
        if base_model is not None:
            raise LanguageModelError(f"{name} is a full model, so --base-model does not apply. Leave out --base-model.")
        return None
    try:
        import peft
    except ImportError as error:
        raise MissingExtraError(f"The adapter {name}", EXTRA) from error
    settings = read_json(folder / ADAPTER, name)
    kind = str(settings.get("peft_type", "")).upper()
    if kind not in peft.PEFT_TYPE_TO_CONFIG_MAPPING or issubclass(
        peft.PEFT_TYPE_TO_CONFIG_MAPPING[kind], peft.PromptLearningConfig
    ):
        raise LanguageModelError(
            f"{name} is an adapter of type {kind or 'unknown'}, which adds no weights to a model. Use an adapter such "
            "as LoRA."
        )
    if not (folder / WEIGHTS).is_file():
        raise LanguageModelError(
            f"{name} has no {WEIGHTS}. Pickled adapters may run code and are not loaded: convert it where you trust "
            "it, with peft's save_pretrained(FOLDER, safe_serialization=True)."
        )
    base_name = base_model or settings.get("base_model_name_or_path")
    if not base_name:
        raise LanguageModelError(f"{name} is an adapter that names no base model. Name it: --base-model PATH.")
    base_folder, revision = _find_base(str(base_name), name, "" if base_model else str(settings.get("revision") or ""))
    return Adapter(
        folder=folder, name=name, kind=kind, base_name=_shorten(str(base_name)), base_folder=base_folder,
        base_revision=revision,
    )  # fmt: skip


def _find_base(base_name: str, name: str, revision: str) -> tuple[Path, str]:
    """Return folder and revision of the base model."""
    try:
        local = resolve_folder(base_name, ("config.json",), LanguageModelError, "a folder, or a name on the hub")
        folder = local or download_model(base_name, revision, with_code=False)
    except LanguageModelError as error:
        raise LanguageModelError(
            f"The base model {base_name} of the adapter {name} is not available: {first_line(error)}\n"
            "Name its folder: --base-model PATH."
        ) from error
    return folder, hash_files(folder) if local is not None else folder.name[:DIGITS]


def _shorten(base_name: str) -> str:
    """Return a name that does not depend on where a folder is."""
    path = Path(os.path.expanduser(base_name))
    return path.resolve().name if path.is_dir() else base_name
