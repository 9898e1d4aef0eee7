"""Grade responses by a language model, the judge, with a rubric."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracker.errors import BadInputError
from tracker.evaluating.option_values import JUDGE_TEMPLATES
from tracker.evaluating.prompt_templates.prompt_content import sha256_digest
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response
from tracker.settings.text_files import read_text_file

if TYPE_CHECKING:
    from jinja2 import Template

    from tracker.evaluating.servers.server_model import ServerModel

METRICS = {"correct": "judge_correct", "score": "judge_score"}
"""Metric of each scale: 1 for CORRECT and 0 for INCORRECT; 1 to 10."""
NAMES = ("question", "reference", "answer")
MAX_TOKENS = 2048
"""Maximum length of a verdict with its reasons."""
_SCALE = re.compile(r"""{%-?\s*set\s+scale\s*=\s*["'](\w+)["']\s*-?%}\n?""")
_VERDICTS = {
    "correct": re.compile(r"\bverdict\W*(correct|incorrect)\b|^\W*(correct|incorrect)\W*$", re.I),
    "score": re.compile(r"\bverdict\W*(10|[1-9])(?![\d.])|^\W*(10|[1-9])\W*$", re.I),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Rubric:
    """A template of the judge's prompt.

    Attributes:
        name: name of a built-in template, or of the file.
        source: its text.
        scale: ``correct`` or ``score``.
    """

    name: str
    source: str
    scale: str
    compiled: Template

    @property
    def metric(self) -> str:
        """Return the metric of its verdicts."""
        return METRICS[self.scale]

    def render(self, prompt: RenderedPrompt, answer: str, choices: Sequence[str]) -> str:
        """Return the judge's prompt for one response."""
        references = prompt.references or (
            (choices[prompt.correct_option],) if prompt.correct_option is not None else ()
        )
        values = {"question": prompt.question, "reference": "\n".join(references), "answer": answer}
        return self.compiled.render(values).strip()

    def read_verdict(self, text: str) -> float | None:
        """Return the score of the last verdict in a judge's text; None without one."""
        matches = list(_VERDICTS[self.scale].finditer(text.strip()))
        if not matches:
            return None
        verdict = next(group for group in matches[-1].groups() if group).lower()
        return float(verdict == "correct") if self.scale == "correct" else float(verdict)


def load_rubric(name_or_path: str) -> Rubric:
    """Load a rubric by its name or from a file.

    Raises:
        BadInputError: the file cannot be read or parsed, uses an unknown name, or has an unknown scale.
    """
    from jinja2 import StrictUndefined, TemplateSyntaxError
    from jinja2.meta import find_undeclared_variables
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    path = Path(name_or_path)
    if name_or_path in JUDGE_TEMPLATES:
        built_in = files("tracker.evaluating").joinpath("judge_templates", f"{name_or_path}.jinja")
        source = built_in.read_text(encoding="utf-8")
    elif path.is_file():
        try:
            source = read_text_file(path, "utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadInputError(path, f"the file is not UTF-8 text (byte {error.start + 1})") from None
        except OSError as error:
            raise BadInputError(path, f"cannot be read: {error.strerror}") from None
    else:
        raise BadInputError(path, "no such file", advice=f"Built in: {', '.join(JUDGE_TEMPLATES)}.")
    scales = _SCALE.findall(source) or ["correct"]
    if scales[0] not in METRICS:
        raise BadInputError(path, f"scale is {scales[0]!r}; it must be one of: {', '.join(METRICS)}")
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    text = _SCALE.sub("", source)
    try:
        unknown, compiled = (
            find_undeclared_variables(environment.parse(text)) - set(NAMES),
            environment.from_string(text),
        )
    except TemplateSyntaxError as error:
        raise BadInputError(path, f"line {error.lineno}: {error.message}") from None
    except RecursionError:
        raise BadInputError(path, "statements or expressions are nested too deeply") from None
    if unknown:
        raise BadInputError(path, f"unknown name {min(unknown)!r}. Known: {', '.join(NAMES)}.")
    return Rubric(name=path.name, source=source, scale=scales[0], compiled=compiled)


@dataclass(frozen=True, kw_only=True, slots=True)
class Grade:
    """A judge's verdict on one response.

    Attributes:
        score: under the rubric's metric; None if there is no verdict.
        text: the judge's text.
        error: why there is no verdict.
        n_tokens_read, n_tokens_written: input and output tokens of the judge.
    """

    score: float | None = None
    text: str = ""
    error: str = ""
    n_tokens_read: int = 0
    n_tokens_written: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Judge:
    """A judge behind a server.

    Attributes:
        server: the judge.
        rubric: template of its prompt.
        price: price of one of its responses; None if unknown.
    """

    server: ServerModel
    rubric: Rubric
    price: Callable[[Response], float | None]

    def as_settings(self) -> dict[str, Any]:
        """Return the settings that decide the verdicts."""
        rubric = {"name": self.rubric.name, "source": self.rubric.source, "digest": sha256_digest(self.rubric.source)}
        return {"model": self.server.model, "template": rubric, "sampling": self.server.sampling.as_settings()}

    def grade(self, texts: Sequence[str]) -> list[tuple[Grade, float | None]]:
        """Return verdict and price for each of the judge's prompts, in order.

        Raises:
            ServerError: no request will succeed.
        """
        prompts = [RenderedPrompt(prompt_id=number, question=text) for number, text in enumerate(texts)]
        graded: dict[int, tuple[Grade, float | None]] = {}
        with closing(self.server.respond(prompts, lambda _: False)) as portions:  # type: ignore[type-var]
            for portion in portions:
                for response in portion:
                    graded[response.prompt_id] = self._read(response), self.price(response)
        return [graded[number] for number in range(len(texts))]

    def _read(self, response: Response) -> Grade:
        tokens: dict[str, Any] = {
            "n_tokens_read": response.n_tokens_read,
            "n_tokens_written": response.n_tokens_written,
        }
        if response.error:
            return Grade(error=f"The judge did not answer: {response.error}", **tokens)
        text = response.text or ""
        score = self.rubric.read_verdict(text)
        error = "" if score is not None else f"The judge's text has no verdict: {text[-80:]!r}."
        return Grade(score=score, text=text, error=error, **tokens)
