"""The instance file: a row for each prompt, trial and result."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import EMPTY, ERRORED, BlockBuilder, PromptContent, describe_policy
from tracker.ingest.files.file_contents import open_file
from tracker.ingest.files.json_files import iterate_json_lines
from tracker.ingest.files.json_values import identity, mapping, number, score, text
from tracker.ingest.formats.every_eval_ever import vocabulary
from tracker.ingest.formats.every_eval_ever.aggregate import Aggregate
from tracker.ingest.formats.every_eval_ever.results import UNNAMED, EvaluationResult
from tracker.ingest.formats.every_eval_ever.row import answers, content, hash_to_int
from tracker.ingest.measurement import Measurement, ReadOptions, metric_description

CHUNK = 1 << 20
MAX_TRIAL = 2**31 - 1
LETTERS = [chr(ord("A") + place) for place in range(26)]


def find_checksum_problem(path: Path, reference: Mapping[str, Any]) -> str | None:
    """Return why the bytes do not match the checksum in the aggregate; None if they match or it has none."""
    checksum = text(reference.get("checksum"))
    if checksum is None:
        return None
    kind = {64: "sha256", 32: "md5"}.get(len(checksum))
    algorithm = text(reference.get("hash_algorithm")) or kind
    if algorithm not in ("sha256", "md5"):
        return f"unknown checksum algorithm {str(algorithm)[:40]!r}."
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with open_file(path) as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    actual = digest.hexdigest()
    return (
        None
        if actual == checksum.strip().lower()
        else f"has the {algorithm} {actual}, but the aggregate reports {checksum[:64]}."
    )


@dataclass
class _Known:
    """Index of the prompts read so far, which stores 64-bit hashes to save memory.

    Attributes:
        places: index by task and name, and by task, name and number for further prompts of that name.
        contents: content hash of each prompt.
        further: content hashes of further prompts of one name, by index of the first.
    """

    places: dict[int, int] = field(default_factory=dict)
    contents: array[int] = field(default_factory=lambda: array("Q"))
    further: dict[int, list[int]] = field(default_factory=dict)

    def place_prompt(self, task: str, key: str, content: PromptContent) -> tuple[str, int]:
        """Return name and index of a prompt. The same name with different content is a different prompt."""
        content_number = hash_to_int(content.text or "", *(content.choices or ()), content.answer or "")
        place = self._place(content_number, task, key)
        if self.contents[place] == content_number:
            return key, place
        contents = self.further.setdefault(place, [])
        if content_number not in contents:
            contents.append(content_number)
        ordinal = contents.index(content_number) + 1
        return f"{key}#{ordinal}", self._place(content_number, task, key, str(ordinal))

    def _place(self, content_number: int, *name: str) -> int:
        place = self.places.setdefault(hash_to_int(*name), len(self.contents))
        if place == len(self.contents):
            self.contents.append(content_number)
        return place


class Instances:
    """An instance file.

    Args:
        path: the file.
        aggregate: the aggregate; None if the file is missing.
        options: how to read the file.
    """

    def __init__(self, path: Path, aggregate: Aggregate | None, options: ReadOptions) -> None:
        self.path, self.aggregate, self.options = path, aggregate, options
        self.n_rows = 0
        self._gatherings: dict[str, BlockBuilder] = {}
        self._results: dict[tuple[str | None, str], EvaluationResult] = {}
        self._n_rows_by_result: dict[EvaluationResult, array[int]] = {}
        """By result: number of rows of each prompt."""
        self._known = _Known()
        self._raw_scales: dict[EvaluationResult, float] = {}
        self._n_errored = self._n_empty = self._n_orphans = self._n_other_split = self._n_contrary = 0

    @property
    def sampled(self) -> list[EvaluationResult]:
        """Return the results that have instances."""
        return list(self._n_rows_by_result)

    @property
    def is_part(self) -> bool:
        """Return whether instances of other splits were skipped."""
        return self._n_other_split > 0

    def blocks(self) -> Iterator[Measurement | str]:
        """Yield the scores and answers, then the warnings.

        Raises:
            BadInputError: a line is not an instance, or belongs to another evaluation or model.
        """
        if self.aggregate is not None and any(result.scale != 1 for result in self.aggregate.results):
            self._look_ahead()
        try:
            for line, row in iterate_json_lines(self.path):
                self._add(line, self._checked(line, row))
                for builder in self._gatherings.values():
                    if builder.is_full:
                        yield from builder.blocks()
        except BadInputError:
            for builder in self._gatherings.values():
                yield from builder.blocks()
            raise
        for builder in self._gatherings.values():
            yield from builder.blocks()
        yield from self._warnings()

    @cached_property
    def _n_results(self) -> Counter[str]:
        return (
            Counter(result.task for result in self.aggregate.results if not result.is_summary)
            if self.aggregate
            else Counter()
        )

    def _warnings(self) -> Iterator[str]:
        if self._n_errored:
            yield describe_policy(
                self._n_errored, ERRORED, self.options.errored or "missing", "instance failed|instances failed"
            )
        if self._n_empty and self.options.empty == "missing":
            yield describe_policy(self._n_empty, EMPTY, "missing", "answer is empty|answers are empty")
        if self._n_orphans:
            yield f"{self._n_orphans:,} instances match no result of the aggregate; they are named by evaluation_name"
        if self._n_other_split:
            yield f"{self._n_other_split:,} instances of other splits were skipped (--split)"
        if self._n_contrary:
            yield f"{self._n_contrary:,} instances have a score that contradicts is_correct; the score was used"

    def _checked(self, line: int, row: Any) -> Mapping[str, Any]:
        if not isinstance(row, dict):
            raise BadInputError(self.path, f"line {line}: is not a JSON object.")
        if text(row.get("evaluation_name")) is None:
            raise BadInputError(self.path, f"line {line}: has no evaluation_name.")
        if self.aggregate is None:
            model = text(row.get("model_id")) or self.options.model
            header = {"evaluation_id": row.get("evaluation_id"), "model_info": {"id": model}}
            self.aggregate = Aggregate(self.path, header, self.options)
        for name, expected in (("evaluation_id", self.aggregate.id), ("model_id", self.aggregate.model_id)):
            value = text(row.get(name))
            if value is not None and expected is not None and value != expected:
                problem = f"line {line}: its {name} is {value[:80]!r}, but the file has {expected[:80]!r}."
                raise BadInputError(self.path, problem)
        return row

    def _add(self, line: int, row: Mapping[str, Any]) -> None:
        assert self.aggregate is not None
        self.n_rows += 1
        result = self._result(row)
        input_fields, metadata = mapping(row.get("input")), mapping(row.get("metadata"))
        key = identity(row.get("sample_id")) or text(row.get("sample_hash"))
        if key is None:
            raise BadInputError(self.path, f"line {line}: has neither sample_id nor sample_hash.")
        parsed = content(input_fields, metadata, result.split, as_written=self.aggregate.is_ours)
        if self.options.splits and parsed.split not in (None, *self.options.splits):
            self._n_other_split += 1
            return
        namespace = metadata.get(vocabulary.NAMED_BY)
        namespace = namespace if isinstance(namespace, str) else vocabulary.NAMESPACE
        builder = self._gatherings.get(namespace)
        if builder is None:
            builder = self._gatherings[namespace] = BlockBuilder(self.aggregate.run, namespace, self.path.name)
        name, place = self._known.place_prompt(result.task, key, parsed)
        n_rows = self._n_rows_by_result.setdefault(result, array("i"))
        n_rows.extend([0] * (place + 1 - len(n_rows)))
        trial = self._trial(line, metadata, n_rows[place])
        n_rows[place] += 1
        at = builder.row(result.task, name, trial, parsed, line)
        answers_by_extraction = answers(row, metadata)
        logged = self._logged_value(line, row, result)
        value = self._count(logged, row, result, answers_by_extraction)
        several = not self.aggregate.is_ours and self._n_results[result.task] > 1
        try:
            builder.score(at, result.rows, value)
            if value != logged and not (math.isnan(value) and math.isnan(logged)):
                builder.log(at, result.rows, logged)
            for extraction, (answer, status, probability) in answers_by_extraction.items():
                # Different metrics may extract different answers.
                how = ",".join(filter(None, (extraction, result.metric.name))) if several else extraction
                builder.answer(at, answer, extraction=how, status=status, probability=probability)
        except ValueError as error:
            raise BadInputError(self.path, f"line {line}, prompt {key!r}: {error}.") from error

    def _logged_value(self, line: int, row: Mapping[str, Any], result: EvaluationResult) -> float:
        evaluation = mapping(row.get("evaluation"))
        reported = evaluation.get("score", row.get("score"))
        correct = evaluation.get("is_correct")
        try:
            value = score(reported) * self._raw_scales.get(result, 1.0)
        except ValueError as error:
            raise BadInputError(self.path, f"line {line}: evaluation.score is {error}.") from error
        if isinstance(correct, bool):
            if reported is None:
                value = float(correct)
            elif value in (0, 1) and value != correct and result.metric.higher_is_better is not False:
                self._n_contrary += 1
        return value

    def _count(
        self,
        value: float,
        row: Mapping[str, Any],
        result: EvaluationResult,
        answers_by_extraction: Mapping[str, tuple[str | None, str, float]],
    ) -> float:
        """Return a score after failed and empty answers are counted as the user chooses."""
        if any(
            status == "error" for _, status, _ in answers_by_extraction.values()
        ) and vocabulary.ANSWERS not in mapping(row.get("metadata")):
            self._n_errored += 1
            lowest = result.metric.lower if result.metric.higher_is_better is not False else result.metric.upper
            return (0.0 if lowest is None else lowest) if self.options.errored == "wrong" else math.nan
        if answers_by_extraction and all(status == "empty" for _, status, _ in answers_by_extraction.values()):
            self._n_empty += 1
            return math.nan if self.options.empty == "missing" else value
        return value

    def _result(self, row: Mapping[str, Any]) -> EvaluationResult:
        assert self.aggregate is not None
        name_pair = (text(row.get("evaluation_result_id")), row["evaluation_name"])
        if name_pair not in self._results:
            known = [result for result in self.aggregate.results if not result.is_summary]
            by_id = [result for result in known if name_pair[0] is not None and result.id == name_pair[0]]
            result = next(iter(by_id or [result for result in known if result.name == name_pair[1]]), None)
            if result is None:
                metric = metric_description(self.options.metric or UNNAMED, self.options)
                result = EvaluationResult(
                    id=name_pair[0], name=name_pair[1], task=self.aggregate.task(name_pair[1]), metric=metric
                )
            self._results[name_pair] = result
        result = self._results[name_pair]
        self._n_orphans += bool(self.aggregate.results) and result not in self.aggregate.results
        return result

    def _trial(self, line: int, metadata: Mapping[str, Any], n_before: int) -> int:
        value = metadata.get(vocabulary.TRIAL)
        if value is None:
            return n_before
        if not isinstance(value, str) or not value.isdecimal() or len(value) > 10 or int(value) > MAX_TRIAL:
            raise BadInputError(
                self.path, f"line {line}: {vocabulary.TRIAL} is {str(value)[:40]!r}, not a whole number of at least 0."
            )
        return int(value)

    def _look_ahead(self) -> None:
        """Return whether instances of percentage results are percentages too, which holds if one is larger than 1."""
        largest: dict[EvaluationResult, float] = {}
        for line, row in iterate_json_lines(self.path):
            result = self._result(self._checked(line, row))
            value = number(mapping(row.get("evaluation")).get("score"))
            if result.scale != 1 and value is not None:
                largest[result] = max(largest.get(result, 0.0), abs(value))
        self._raw_scales = {result: result.scale for result, value in largest.items() if value > 1}
        self._n_orphans = 0
