"""Whether a local model would generate the target of a prompt: for tasks that score the log-likelihood of a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response

if TYPE_CHECKING:
    from tracker.evaluating.local.option_scorer import OptionScorer
    from tracker.evaluating.local.tokens import EncodedPrompt

TOGETHER = 8


def needs_greedy(prompts: Sequence[RenderedPrompt]) -> bool:
    """Return whether prompts are scored by whether greedy decoding generates their target."""
    scorings = [prompt.lm_eval.scoring for prompt in prompts if prompt.lm_eval is not None]
    return any(scoring.output_type == "loglikelihood" and "acc" in scoring.metrics for scoring in scorings)


@dataclass
class GreedyBackend:
    """Adds to each response whether greedy decoding generates its options.

    Attributes:
        scorer: computes the log-probabilities.
    """

    scorer: OptionScorer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scorer, name)

    def respond(self, prompts: Sequence[RenderedPrompt], is_stored: Callable[[int], bool]) -> Iterator[list[Response]]:
        """Yield responses, as `tracker.evaluating.responses.ModelBackend` requires."""
        encoded = {prompt.prompt.prompt_id: prompt.cut() for prompt in self.scorer.encode(prompts)}
        for block in self.scorer.respond(prompts, is_stored):
            scored = [response for response in block if not response.error]
            greedy = self._find_greedy([encoded[response.prompt_id] for response in scored])
            checked = dict(zip((response.prompt_id for response in scored), greedy, strict=True))
            yield [replace(response, is_greedy=checked.get(response.prompt_id)) for response in block]

    def _find_greedy(self, members: Sequence[EncodedPrompt]) -> list[tuple[bool, ...]]:
        from tracker.evaluating.local.memory import process_in_halves
        from tracker.evaluating.local.padded_rows import is_greedy, score_option_by_option

        def compute(part: Sequence[EncodedPrompt]) -> list[tuple[bool, ...]]:
            values = score_option_by_option(self.scorer.model, part, score_tokens=is_greedy)
            return [tuple(bool(value) for value in of_prompt) for of_prompt in values]

        greedy: list[tuple[bool, ...]] = []
        for first in range(0, len(members), TOGETHER):
            for part in process_in_halves(compute, members[first : first + TOGETHER]):
                greedy += part
        return greedy
