"""scenario_state.json: what was asked, and what the model said."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import EMPTY, ERRORED, BlockBuilder, PromptContent
from tracker.ingest.files.json_files import parse_json
from tracker.ingest.files.json_values import count, identity, mapping, number, text
from tracker.ingest.formats.helm.run_folder import NAMESPACE, RunFolder, pieces, variant
from tracker.ingest.measurement import Measurement
from tracker.option_labels import option_letter

Place = tuple[str, str, int]
"""Instance, variant and trial."""
MOST_PROBLEMS = 1000


class States:
    """The requests of a run.

    Attributes:
        lacking: where the model gave no answer: ``errored`` or ``empty``.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.lacking: dict[Place, str] = {}
        self._problems: list[str] = []
        self._n_problems = 0
        self._gathered: dict[str, BlockBuilder] = {}

    def blocks(self) -> Iterator[Measurement | str]:
        """Prompts and answers.

        Raises:
            BadInputError: the file is not sound.
        """
        path = self.folder.beside("scenario_state.json")
        if path is None:
            yield "no scenario_state.json beside the statistics: prompts have names, but no texts, and no answers"
            return
        number_of = 0
        try:
            for name, data in pieces(path, "request_states"):
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
        key, told = identity(instance.get("id")), variant(instance.get("perturbation"))
        trial = count(state.get("train_trial_index", 0))
        if key is None or trial is None:
            lack = "its instance has no id" if key is None else "its train_trial_index is no number from 0 up"
            self._note_problem(f"{where}: {lack}")
            return
        split = text(instance.get("split"))
        if told is None or not self.folder.takes(split):
            return
        if told not in self._gathered:
            self._gathered[told] = BlockBuilder(self.folder.run(told), NAMESPACE, "scenario_state.json")
        gathering = self._gathered[told]
        options = _references(instance)
        # A perturbed text is the same prompt in other words: the variant of the run says so.
        content = PromptContent(split=split) if told else self._content(instance, options, split)
        row = gathering.row(self.folder.task, key, trial, content)
        result = mapping(state.get("result"))
        place = (key, told, trial)
        if result.get("success") is False:
            self.lacking[place] = ERRORED
            self._answer(gathering, row, None, math.nan, where, status="error")
        elif not self.folder.asks_options_apart and place not in self.lacking:
            said, chance = _said(result)
            if said is None and "completions" not in result:
                return
            if said is None:
                self.lacking[place] = EMPTY
            self._answer(gathering, row, self._as_letter(said, state, options), chance, where)

    def _answer(
        self, gathering: BlockBuilder, row: int, said: str | None, chance: float, where: str, status: str | None = None
    ) -> None:
        try:
            gathering.answer(row, said, probability=chance, status=status)
        except ValueError as error:
            self._note_problem(f"{where}: {error}")

    def _note_problem(self, problem: str) -> None:
        self._n_problems += 1
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(problem)

    def _content(
        self, instance: Mapping[str, Any], options: Sequence[tuple[str, bool]], split: str | None
    ) -> PromptContent:
        right = [place for place, (_, is_right) in enumerate(options) if is_right]
        details: dict[str, Any] = {}
        if sub_split := text(instance.get("sub_split")):
            details["sub_split"] = sub_split
        if self.folder.is_multiple_choice and len(options) > 1:
            choices: list[str] | None = [said for said, _ in options]
            answer = option_letter(right[0]) if len(right) == 1 else None
        else:
            choices = None
            golds = list(dict.fromkeys(options[place][0] for place in right))
            answer = golds[0] if golds and golds[0].strip() else None
            if len(golds) > 1:
                details["accepted"] = golds
        return PromptContent(_asked(instance), choices, answer, split, details or None)

    def _as_letter(self, said: str | None, state: Mapping[str, Any], options: Sequence[tuple[str, bool]]) -> str | None:
        """The option that the answer names; the answer itself where it names none."""
        mapped = mapping(state.get("output_mapping")).get(said) if said is not None else None
        named = [place for place, (option, _) in enumerate(options) if option == mapped]
        return option_letter(named[0]) if mapped is not None and len(named) == 1 else said


def full(gathered: Iterable[BlockBuilder]) -> Iterator[Measurement]:
    """Blocks of those whose time has come."""
    for gathering in gathered:
        if gathering.is_full:
            yield from gathering.blocks()


def rest(gathered: Iterable[BlockBuilder]) -> Iterator[Measurement]:
    """Blocks of whatever has been gathered."""
    for gathering in gathered:
        yield from gathering.blocks()


def _references(instance: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """Text of each reference, and whether it is right."""
    listed = instance.get("references")
    found = []
    for one in listed if isinstance(listed, list) else ():
        said = mapping(mapping(one).get("output")).get("text")
        tags = mapping(one).get("tags")
        found.append((said if isinstance(said, str) else "", isinstance(tags, list) and "correct" in tags))
    return found


def _asked(instance: Mapping[str, Any]) -> str | None:
    """The text of an instance: its own, that of its messages, or that of its media."""
    told = mapping(instance.get("input"))
    if said := text(told.get("text")):
        return said
    messages = told.get("messages")
    media = mapping(told.get("multimedia_content")).get("media_objects")
    parts = [mapping(message).get("content") for message in messages] if isinstance(messages, list) else []
    parts += [mapping(one).get("text") for one in media] if isinstance(media, list) else []
    return "\n".join(part for part in parts if isinstance(part, str)).strip() or None


def _said(result: Mapping[str, Any]) -> tuple[str | None, float]:
    """The likeliest completion and its probability; HELM judges that one."""
    listed = result.get("completions")
    found = [mapping(one) for one in listed] if isinstance(listed, list) else []
    told = [(number(one.get("logprob")) or 0.0, one["text"]) for one in found if isinstance(one.get("text"), str)]
    if not told:
        return None, math.nan
    chance, said = max(told, key=lambda pair: pair[0])
    # Where a model tells no probabilities HELM writes 0, which would be certainty.
    return said.strip() or None, math.exp(chance) if chance < 0 and said.strip() else math.nan
