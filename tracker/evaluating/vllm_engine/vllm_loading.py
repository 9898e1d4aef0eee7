"""Load a model into vLLM. The only module that imports vLLM."""

from __future__ import annotations

import inspect
import json
import math
import struct
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tracker.errors import LanguageModelError, MissingExtraError, first_line
from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.weights.model_folder import check_code, check_weights, download_model, read_json
from tracker.evaluating.model_files import DIGITS, hash_files, resolve_folder, silence_libraries
from tracker.evaluating.plan_settings import LoadingSettings

EXTRA = "vllm"
ALTERNATIVE = "Use --engine transformers, or start `vllm serve` on another machine and use --api-base."


class VllmEngine:
    """A model in vLLM.

    Args:
        llm: vLLM's `LLM`.
        sampling_params: its class `SamplingParams`.

    Attributes:
        scores_tokens: whether it returns the log-probabilities of chosen next tokens.
    """

    def __init__(self, llm: Any, sampling_params: Any) -> None:
        self._llm, self._sampling_params = llm, sampling_params
        self.scores_tokens = "logprob_token_ids" in inspect.signature(sampling_params).parameters

    def run(self, requests: Sequence[tuple[Sequence[int], Mapping[str, Any]]]) -> list[Any]:
        """Compute requests together; return vLLM's outputs in the same order.

        Args:
            requests: the tokens to read, and the sampling parameters.
        """
        prompts = [{"prompt_token_ids": list(ids)} for ids, _ in requests]
        params = [self._sampling_params(**options) for _, options in requests]
        outputs: list[Any] = self._llm.generate(prompts, params, use_tqdm=False)
        return outputs


def load_vllm_model(name_or_path: str, loading: LoadingSettings, *, name: str | None = None) -> LanguageModel:
    """Load a model from a folder or the model hub into vLLM, with prefix caching.

    Args:
        name_or_path: a folder in the format of transformers, or a name on the model hub.
        loading: revision, dtype, number of devices and trust.
        name: stored name; by default the folder's name, or the name on the hub.

    Raises:
        MissingExtraError: vLLM is not installed.
        LanguageModelError: there is no CUDA device, or the model cannot be loaded.
    """
    try:
        import vllm
    except ImportError as error:
        raise MissingExtraError("The engine vllm", EXTRA) from error
    if loading.base_model:
        raise LanguageModelError(f"The engine vllm loads no adapters. Use --engine transformers for {name_or_path}.")
    n_devices = loading.device_count or (count_devices() if loading.device == "all" else 1)
    _check_devices(n_devices, loading.device)
    alternatives = "a folder, or a name on the hub"
    local = resolve_folder(name_or_path, ("config.json",), LanguageModelError, alternatives)
    with silence_libraries():
        folder = local or download_model(name_or_path, loading.revision, loading.trust_remote_code)
        settings = read_json(folder / "config.json", name_or_path)
        check_weights(folder, name_or_path)
        check_code(settings, name_or_path, loading.trust_remote_code)
        tokenizer = _load_tokenizer(folder, name_or_path, loading.trust_remote_code)
        try:
            llm = vllm.LLM(
                model=str(folder), tokenizer=str(folder), dtype=loading.dtype, tensor_parallel_size=n_devices,
                trust_remote_code=loading.trust_remote_code, enable_prefix_caching=True, seed=0,
            )  # fmt: skip
        except Exception as error:
            raise LanguageModelError(f"vLLM cannot load {name_or_path} ({first_line(error)}). {ALTERNATIVE}") from error
    config = llm.llm_engine.model_config
    return LanguageModel(
        name=name or (name_or_path if local is None else local.name),
        revision=hash_files(local) if local is not None else folder.name[:DIGITS],
        model=VllmEngine(llm, vllm.SamplingParams),
        tokenizer=tokenizer,
        device="cuda",
        dtype=str(config.dtype).removeprefix("torch."),
        context=int(config.max_model_len),
        is_encoder_decoder=False,
        architecture=next(iter(settings.get("architectures") or [str(settings.get("model_type"))])),
        n_parameters=_count_parameters(folder),
    )


def read_vllm_version() -> str:
    """Return the installed version of vLLM; '' if unknown."""
    try:
        return version("vllm")
    except PackageNotFoundError:
        return ""


def count_devices() -> int:
    """Return the number of CUDA devices."""
    import torch

    return int(torch.cuda.device_count()) if torch.cuda.is_available() else 0


def _check_devices(n_devices: int, device: str) -> None:
    if device not in ("auto", "cuda", "all"):
        raise LanguageModelError(f"The engine vllm runs on CUDA devices, not on {device!r}. {ALTERNATIVE}")
    n_present = count_devices()
    if not n_present:
        raise LanguageModelError(f"The engine vllm needs a CUDA device, and none is available. {ALTERNATIVE}")
    if n_devices > n_present:
        raise LanguageModelError(f"--device-count is {n_devices}, but {n_present} CUDA devices are available.")


def _load_tokenizer(folder: Path, name: str, trusts_code: bool) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=trusts_code, local_files_only=True)
    except Exception as error:
        raise LanguageModelError(f"The tokenizer of {name} cannot be loaded ({first_line(error)}).") from error


def _count_parameters(folder: Path) -> int:
    """Return the number of stored weights, from the headers of the files."""
    total = 0
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        total += sum(math.prod(tensor["shape"]) for key, tensor in header.items() if key != "__metadata__")
    return total
