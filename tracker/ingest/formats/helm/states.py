"""scenario_state.json: prompts and responses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import EMPTY, ERRORED, BlockBuilder, PromptContent
from tracker.ingest.files.json_files import parse_json
from tracker.ingest.files.json_values import count, identity, mapping, number, text
from tracker.ingest.formats.helm.run_folder import NAMESPACE, HelmRunFolder, parse_variant, read_pieces
from tracker.ingest.measurement import Measurement
from tracker.option_labels import option_letter

Place = tuple[str, str, int]
"""Instance, variant and trial."""
MAX_PROBLEMS = 1000


class ScenarioStates:
    """Reads the requests of a run.

    Attributes:
        lacking: ``errored`` or ``empty`` for each missing answer.
    """

    def __init__(self, folder: HelmRunFolder) -> None:
        self.folder = folder
        self.lacking: dict[Place, str] = {}
        self._problems: list[str] = []
        self._n_problems = 0
        self._gathered: dict[str, BlockBuilder] = {}

    def blocks(self) -> Iterator[Measurement | str]:
        """Yield prompts and answers.

        Raises:
            BadInputError: the file is invalid.
        """
        path = self.folder.beside("scenario_state.json")
        if path is None:
            yield "scenario_state.json is missing: prompts have no texts, and responses are missing"
            return
        number_of = 0
        try:
            for name, data in read_pieces(path, "request_states"):
                if name is not None:
                    continue
                number_of += 1
                self._add(parse_json(path, data, f"request {number_of}"), f"request {number_of}")
                yield from full(self._gathered.values())
        except BadInputError:
            yield from rest(self._gathered.values())
            raise
        yield from rest(self._gathered.values())
        if self._problems:
            raise BadInputError(path, self._problems, count=self._n_problems)

    def _add(self, state: Any, where: str) -> None:
        state = mapping(state)
        instance = mapping(state.get("instance"))
        key, perturbation = identity(instance.get("id")), parse_variant(instance.get("perturbation"))
        trial = count(state.get("train_trial_index", 0))
        if key is None or trial is None:
            lack = "the instance has no id" if key is None else "train_trial_index is not a whole number of at least 0"
            self._add_problem(f"{where}: {lack}")
            return
        split = text(instance.get("split"))
        if perturbation is None or not self.folder.takes(split):
            return
        if perturbation not in self._gathered:
            self._gathered[perturbation] = BlockBuilder(self.folder.run(perturbation), NAMESPACE, "scenario_state.json")
        builder = self._gathered[perturbation]
        options = _references(instance)
        # A perturbed text is the same prompt; the variant of the run marks the perturbation.
        content = PromptContent(split=split) if perturbation else self._content(instance, options, split)
        row = builder.row(self.folder.task, key, trial, content)
        result = mapping(state.get("result"))
        place = (key, perturbation, trial)
        if result.get("success") is False:
            self.lacking[place] = ERRORED
            self._answer(builder, row, None, math.nan, where, status="error")
        elif not self.folder.scores_options_separately and place not in self.lacking:
            completion, chance = _parse_completion(result)
            if completion is None and "completions" not in result:
                return
            if completion is None:
                self.lacking[place] = EMPTY
            self._answer(builder, row, self._as_letter(completion, state, options), chance, where)

    def _answer(
        self,
        builder: BlockBuilder,
        row: int,
        completion: str | None,
        chance: float,
        where: str,
        status: str | None = None,
    ) -> None:
        try:
            builder.answer(row, completion, probability=chance, status=status)
        except ValueError as error:
            self._add_problem(f"{where}: {error}")

    def _add_problem(self, problem: str) -> None:
        self._n_problems += 1
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)

    def _content(
        self, instance: Mapping[str, Any], options: Sequence[tuple[str, bool]], split: str | None
    ) -> PromptContent:
        right = [place for place, (_, is_right) in enumerate(options) if is_right]
        details: dict[str, Any] = {}
        if sub_split := text(instance.get("sub_split")):
            details["sub_split"] = sub_split
        if self.folder.is_multiple_choice and len(options) > 1:
            choices: list[str] | None = [reference for reference, _ in options]
            answer = option_letter(right[0]) if len(right) == 1 else None
        else:
            choices = None
            golds = list(dict.fromkeys(options[place][0] for place in right))
            answer = golds[0] if golds and golds[0].strip() else None
            if len(golds) > 1:
                details["accepted"] = golds
        return PromptContent(_parse_question(instance), choices, answer, split, details or None)

    def _as_letter(
        self, completion: str | None, state: Mapping[str, Any], options: Sequence[tuple[str, bool]]
    ) -> str | None:
        """Return the option that the answer names; the answer itself if it names none."""
        mapped = mapping(state.get("output_mapping")).get(completion) if completion is not None else None
        matching = [place for place, (option, _) in enumerate(options) if option == mapped]
        return option_letter(matching[0]) if mapped is not None and len(matching) == 1 else completion


def full(gathered: Iterable[BlockBuilder]) -> Iterator[Measurement]:
    """Yield the blocks that are full."""
    for builder in gathered:
        if builder.is_full:
            yield from builder.blocks()


def rest(gathered: Iterable[BlockBuilder]) -> Iterator[Measurement]:
    """Yield all remaining blocks."""
    for builder in gathered:
        yield from builder.blocks()


def _references(instance: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """Return text and correctness of each reference."""
    references = instance.get("references")
    parsed = []
    for reference in references if isinstance(references, list) else ():
        reference_text = mapping(mapping(reference).get("output")).get("text")
        tags = mapping(reference).get("tags")
        parsed.append(
            (reference_text if isinstance(reference_text, str) else "", isinstance(tags, list) and "correct" in tags)
        )
    return parsed


def _parse_question(instance: Mapping[str, Any]) -> str | None:
    """Return the text of an instance: its own, that of its messages, or that of its media."""
    source = mapping(instance.get("input"))
    if own_text := text(source.get("text")):
        return own_text
    messages = source.get("messages")
    media = mapping(source.get("multimedia_content")).get("media_objects")
    parts = [mapping(message).get("content") for message in messages] if isinstance(messages, list) else []
    parts += [mapping(item).get("text") for item in media] if isinstance(media, list) else []
    return "\n".join(part for part in parts if isinstance(part, str)).strip() or None


def _parse_completion(result: Mapping[str, Any]) -> tuple[str | None, float]:
    """Return the most likely completion and its probability; HELM scores that one."""
    completions = result.get("completions")
    entries = [mapping(entry) for entry in completions] if isinstance(completions, list) else []
    likelihoods = [
        (number(entry.get("logprob")) or 0.0, entry["text"]) for entry in entries if isinstance(entry.get("text"), str)
    ]
    if not likelihoods:
        return None, math.nan
    chance, completion = max(likelihoods, key=lambda pair: pair[0])
    # HELM writes 0 for unknown log probabilities, which would mean certainty.
    return completion.strip() or None, math.exp(chance) if chance < 0 and completion.strip() else math.nan
