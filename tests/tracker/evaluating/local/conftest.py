"""Small language models, loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tracker.evaluating.local.loading import LanguageModel


@pytest.fixture(scope="module")
def model_of(language_model_folders: dict[str, Path]) -> Callable[[str], LanguageModel]:
    """Each small model by its family, loaded once."""
    from tracker.evaluating.local.loading import load_language_model

    loaded: dict[str, LanguageModel] = {}

    def get(family: str) -> LanguageModel:
        if family not in loaded:
            loaded[family] = load_language_model(str(language_model_folders[family]), device="cpu")
        return loaded[family]

    return get
