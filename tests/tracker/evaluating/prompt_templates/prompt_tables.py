"""Prompts that are asked in these tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np

from tracker.evaluating.prompt_templates.template import Template, load_template
from tracker.queries.prompts import PromptTexts


def make_prompts(
    texts: Sequence[str | None],
    choices: Sequence[Sequence[str] | None] | Sequence[str] | None = None,
    *,
    answers: Sequence[str | None] | None = None,
    tasks: Sequence[str] | None = None,
    splits: Sequence[str | None] | None = None,
    details: Sequence[Mapping[str, Any]] | None = None,
    first_id: int = 1,
) -> PromptTexts:
    """Prompts with these texts; options "one" and "two", of which the first is right, where nothing else is said."""
    n = len(texts)
    return PromptTexts(
        prompt_ids=np.arange(first_id, first_id + n),
        tasks=tuple(tasks or [""] * n),
        names=tuple(f"p{i}" for i in range(n)),
        texts=tuple(texts),
        choices=tuple([["one", "two"]] * n if choices is None else choices),
        answers=tuple(["A"] * n if answers is None else answers),
        details=tuple(details or [{}] * n),
        splits=tuple(splits or [None] * n),
    )


def in_order(prompts: PromptTexts, order: Sequence[int], first_id: int = 1) -> PromptTexts:
    """The same prompts, stored in another order under other keys."""
    return make_prompts(
        [prompts.texts[i] for i in order],
        [prompts.choices[i] for i in order],
        answers=[prompts.answers[i] for i in order],
        tasks=[prompts.tasks[i] for i in order],
        splits=[prompts.splits[i] for i in order],
        details=[prompts.details[i] for i in order],
        first_id=first_id,
    )


def template(tmp_path: Path, source: str, **options: Any) -> Template:
    """A template of one's own."""
    path = tmp_path / "own.jinja"
    path.write_text(source)
    return load_template(str(path), **options)


@st.composite
def benchmarks(draw: st.DrawFn, max_prompts: int = 12) -> PromptTexts:
    """Few different questions, so that some are equal, in two tasks and two splits; some cannot be asked."""
    n = draw(st.integers(4, max_prompts))
    some = st.sampled_from
    return make_prompts(
        [draw(some(["why", "who", "how", "what", "where", "when", None])) for _ in range(n)],
        [draw(some([["x", "y"], ["y", "x"], ["u", "v", "w"]])) for _ in range(n)],
        answers=[draw(some(["A", "B", "x", None])) for _ in range(n)],
        tasks=[draw(some(["s", "t"])) for _ in range(n)],
        splits=[draw(some(["test", "train", "train"])) for _ in range(n)],
    )
