"""Build the texts of prompts from the documents of a task, as lm-evaluation-harness builds its requests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.datasets.lm_eval.documents import Document, TaskDocuments
from tracker.ingest.datasets.lm_eval.few_shot_examples import ExampleSampler
from tracker.ingest.datasets.lm_eval.stored_prompt import LmEvalExample, LmEvalPrompt, TaskScoring
from tracker.ingest.datasets.lm_eval.task import GENERATE, LOGLIKELIHOOD, MULTIPLE_CHOICE, LmEvalTask
from tracker.ingest.datasets.lm_eval.templates import TextRenderer, resolve_field
from tracker.ingest.datasets.row import RowError

ID_LENGTH = 16


@dataclass(frozen=True, kw_only=True)
class BuiltPrompt:
    """A document with its texts.

    Attributes:
        number: number of the document in its split, from 0.
        document: its fields.
        target: reference answer as the harness logs it.
        prompt: its texts.
    """

    number: int
    document: Mapping[str, Any]
    target: Any
    prompt: LmEvalPrompt


@dataclass
class PromptBuilder:
    """Builds the prompts of a task in the order of its documents.

    Args:
        task: the task.
        documents: its documents.
        seed: seed of the harness's draws of few-shot examples.

    Attributes:
        split: split of the evaluated documents.
        examples: document and text of each example that a prompt has used, by identifier.
        example_split: split of the examples; '' without examples.
    """

    task: LmEvalTask
    documents: TaskDocuments
    seed: int
    examples: dict[str, tuple[Document, LmEvalExample]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        task = self.task
        split = task.test_split or task.validation_split
        if split is None:
            raise BadInputError(task.path, f"the task {task.name} has neither a test_split nor a validation_split.")
        self.split = split
        self.rows = self.documents.split(split, task.process_docs)
        if not self.rows:
            raise BadInputError(task.path, f"the task {task.name} has no documents in the split {split!r}.")
        self.sampler = ExampleSampler(task, self.documents, seed=self.seed)
        self.example_split = self.sampler.split
        self.texts = TextRenderer(task, self.rows[0])
        self.scoring = TaskScoring(
            output_type=task.output_type,
            metrics=task.metrics,
            filters=task.filters,
            until=task.generation.get("until", ()),
            max_gen_toks=task.generation.get("max_gen_toks", 0),
            sums_probability=task.sums_probability,
        )
        with self._place(0):
            # As in the harness, the first document decides.
            text = self.texts.text(self.rows[0])
            self.has_contexts = self.texts.has_choices and isinstance(text, int) and not isinstance(text, bool)
            self.has_targets = isinstance(self.texts.target(self.rows[0]), list)

    def build(self) -> Iterator[BuiltPrompt]:
        """Yield the prompts.

        Raises:
            BadInputError: a document lacks a field, or a template is invalid.
        """
        for number, document in enumerate(self.rows):
            with self._place(number):
                examples = [self._example(row) for row in self.sampler.sample(document)]
                yield self._build_one(number, document, examples)

    def _place(self, number: int) -> _Place:
        return _Place(f"{self.task.path}", f"document {number} of the split {self.split} of {self.task.name}")

    def _build_one(self, number: int, document: Document, examples: Sequence[str]) -> BuiltPrompt:
        task = self.task
        parts: dict[str, Any] = {
            "scoring": self.scoring,
            "description": resolve_field(document, task.description),
            "examples": examples,
            "separator": task.few_shot.fewshot_delimiter if examples else "",
        }
        target = self.texts.target(document)
        prefix = self.texts.prefix(document)
        if self.has_contexts:
            return self._build_contexts(number, document, target, parts, prefix)
        text = self.texts.text(document)
        if not isinstance(text, str):
            raise RowError(f"doc_to_text is not a text: {text!r}")
        parts["question"] = text + (_delimit(text, prefix, task.target_delimiter) + prefix if prefix else "")
        if task.output_type == LOGLIKELIHOOD:
            return BuiltPrompt(
                number=number, document=document, target=target,
                prompt=LmEvalPrompt(**parts, continuations=[str(target)], lengths=[len(str(target))]),
            )  # fmt: skip
        choices = self.texts.choices(document) if self.texts.has_choices else []
        if task.output_type == MULTIPLE_CHOICE:
            parts |= {"join": task.target_delimiter, "continuations": choices}
            parts |= {"lengths": list(map(len, choices)), "correct": self._find_correct(document, target, choices)}
        elif task.output_type == GENERATE:
            parts["references"] = self._list_references(target, choices)
        return BuiltPrompt(number=number, document=document, target=target, prompt=LmEvalPrompt(**parts))

    def _build_contexts(
        self, number: int, document: Document, target: Any, parts: dict[str, Any], prefix: str
    ) -> BuiltPrompt:
        """Build a prompt with a separate text for each option, and the same continuation."""
        contexts = self.texts.choices(document)
        correct = self.texts.text(document)
        sent = [text + (_delimit(text, prefix, "") + prefix if prefix else "") for text in contexts]
        parts |= {"contexts": sent, "join": self.task.target_delimiter, "continuations": [str(target)] * len(sent)}
        parts |= {"lengths": list(map(len, contexts)), "correct": [correct] if correct < len(sent) else []}
        return BuiltPrompt(number=number, document=document, target=target, prompt=LmEvalPrompt(**parts))

    def _find_correct(self, document: Document, target: Any, choices: Sequence[str]) -> list[int]:
        """Return the indices of the correct options; none if the target is no option."""
        if self.task.sums_probability:
            return _find_true_options(document, choices)
        if isinstance(target, (list, tuple)):
            return [place for place in target if isinstance(place, int) and place < len(choices)]
        if isinstance(target, str):
            return [choices.index(target)] if target in choices else []
        return [int(target)] if isinstance(target, int) and target < len(choices) else []

    def _list_references(self, target: Any, choices: Sequence[str]) -> list[str]:
        if self.texts.has_choices:
            return [choices[target]]
        if self.has_targets:
            return [str(part) for part in target] if isinstance(target, (list, tuple)) else [str(target)]
        return [str(target)]

    def _example(self, document: Document) -> str:
        """Return the identifier of an example; its text is built once."""
        identifier = hash_document(document)[:ID_LENGTH]
        if identifier not in self.examples:
            self.examples[identifier] = document, self._build_example(identifier, document)
        return identifier

    def _build_example(self, identifier: str, document: Document) -> LmEvalExample:
        few_shot = self.task.few_shot
        question = self.texts.text(document, few_shot.doc_to_text)
        choices = self.texts.choices(document, few_shot.doc_to_choice) if few_shot.doc_to_choice is not None else []
        answer = self.texts.target(document, few_shot.doc_to_target)
        if self.has_contexts:
            question, choices = choices[question], []
        if isinstance(answer, list):
            answer = answer[0]
        elif choices and isinstance(answer, int):
            answer = choices[answer]
        if not isinstance(question, str) or not isinstance(answer, str) or not answer:
            raise RowError(f"a few-shot example has no text or no answer: {question!r}, {answer!r}")
        prefix = resolve_field(document, few_shot.gen_prefix)
        join = _delimit(question, prefix, few_shot.target_delimiter) if prefix else few_shot.target_delimiter
        whole = prefix + _delimit(prefix, answer, " ") + answer if prefix else answer
        return LmEvalExample(id=identifier, question=question, answer=whole, join=join)


class _Place:
    """Adds the place of a document to errors."""

    def __init__(self, path: str, place: str) -> None:
        self.path, self.place = path, place

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, (RowError, IndexError, TypeError, KeyError)):
            raise BadInputError(self.path, f"{self.place}: {error}.") from error


def hash_document(document: Mapping[str, Any]) -> str:
    """Return the hash by which the harness identifies a document."""
    content = json.dumps(document, indent=2, default=str, ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8", errors="surrogatepass")).hexdigest()


def _delimit(before: str, after: str, delimiter: str) -> str:
    """Return the delimiter, or nothing where one of the texts has white space at the border."""
    return "" if not before or before[-1].isspace() or after[:1].isspace() else delimiter


def _find_true_options(document: Document, choices: Sequence[str]) -> list[int]:
    """Return the options that TruthfulQA labels as true.

    Raises:
        RowError: the document has no such labels.
    """
    labels = (document.get("mc2_targets") or {}).get("labels")
    if not isinstance(labels, (list, tuple)) or len(labels) != len(choices):
        raise RowError("the document has no mc2_targets with a label for each option")
    return [place for place, label in enumerate(labels) if label == 1]
