"""Who answers: a model in this process, or a server, with what a run records of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tracker.errors import SelectionError
from tracker.evaluating.plan import Plan
from tracker.evaluating.preparation import Prepared
from tracker.evaluating.prompt_templates.rendered_prompt import Question
from tracker.evaluating.responses import Answerer, Reply

NAMES_OF_VERSIONS = ("torch", "transformers")


@dataclass(frozen=True, kw_only=True, eq=False)
class Respondent:
    """Who answers.

    Attributes:
        name: what the store calls the model.
        answerer: asks it.
        n_trials: answers to each prompt.
        decisive: what decides the answers, for the settings of the run and its identity.
        incidental: what else is told in the settings.
        facts: what is known of the model itself.
        price: of a reply; None where no prices are known.
        n_tokens: that each prompt has, examples and options included; of a model in this process.
        too_long: tokens by which each prompt that does not fit is too long, by key.
        remarks: what is to be said at the end, in sentences.
        refuses: whether prompts that do not fit are refused before anything begins.
    """

    name: str
    answerer: Answerer
    n_trials: int
    decisive: Mapping[str, Any]
    incidental: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    price: Callable[[Reply], float | None] = lambda _: None
    n_tokens: Callable[[Sequence[Question]], Sequence[int]] = lambda _: ()
    too_long: Callable[[Sequence[Question]], Mapping[int, int]] = lambda _: {}
    remarks: Callable[[], Sequence[str]] = tuple
    refuses: bool = True

    def check(self, questions: Sequence[Question]) -> None:
        """Find the prompts that do not fit.

        Raises:
            SelectionError: there are some, and they are to be refused.
        """
        over = self.too_long(questions)
        if over and self.refuses:
            raise SelectionError(
                f"{len(over):,} of {len(questions):,} prompts are longer than {self.name} reads, even without "
                f"examples, the longest by {max(over.values()):,} tokens. Leave them out with --too-long skip, or "
                "cut off their beginning with --too-long cut."
            )


def respondent(plan: Plan, prepared: Prepared, told: Callable[[str], None]) -> Respondent:
    """Load the model, or find the server.

    Args:
        plan: who is asked, and how.
        prepared: what is asked.
        told: called with sentences for the reader.

    Raises:
        SuffrageError: there is no such model, or no such server.
    """
    return _server(plan, prepared, told) if plan.serving.api_base else _local(plan, prepared, told)


def _local(plan: Plan, prepared: Prepared, told: Callable[[str], None]) -> Respondent:
    from tracker.evaluating.local.generation import WrittenAnswers
    from tracker.evaluating.local.loading import load_language_model
    from tracker.evaluating.local.option_scorer import OptionScorer

    loading, asking = plan.loading, plan.asking
    model = load_language_model(
        plan.model,
        revision=loading.revision,
        device=loading.device,
        dtype=loading.dtype,
        trust_remote_code=loading.trust_remote_code,
        name=plan.name,
    )
    shared: dict[str, Any] = {
        "chat": asking.chat, "batch_size": loading.batch_size, "told": told,
        "too_long": "cut" if asking.too_long == "cut" else "skip",
    }  # fmt: skip
    decisive: dict[str, Any] = {}
    answerer: OptionScorer | WrittenAnswers
    if prepared.method == "generation":
        answerer = WrittenAnswers(model, prepared.sampling, **shared)
        decisive = _of_writing(plan, prepared)
    else:
        answerer = OptionScorer(
            model, method=prepared.method, isolated_labels=prepared.template.isolated_labels, **shared
        )

    def too_long(questions: Sequence[Question]) -> Mapping[int, int]:
        found = zip(questions, answerer.contexts(questions), strict=True)
        return {question.prompt_id: context.n_over for question, context in found if context.n_over}

    said = model.as_settings()
    return Respondent(
        name=model.name,
        answerer=answerer,
        n_trials=prepared.sampling.n_trials,
        decisive={"model": {name: said[name] for name in said if name not in NAMES_OF_VERSIONS}, **decisive},
        incidental={
            "device": model.device,
            "batch_size": loading.batch_size or "auto",
            **{name: said[name] for name in NAMES_OF_VERSIONS if name in said},
        },
        facts=model.facts,
        n_tokens=answerer.n_tokens,
        too_long=too_long if asking.too_long != "cut" else lambda _: {},
        refuses=asking.too_long == "refuse",
    )


def _server(plan: Plan, prepared: Prepared, told: Callable[[str], None]) -> Respondent:
    from tracker.evaluating.servers.server_model import open_server

    serving = plan.serving
    server = open_server(
        str(serving.api_base),
        plan.model,
        method=prepared.method,
        sampling=prepared.sampling,
        api=serving.api,
        key_env=serving.key_env,
        concurrency=serving.concurrency,
        requests_per_minute=serving.requests_per_minute,
        tokens_per_minute=serving.tokens_per_minute,
        timeout_s=serving.timeout,
        tries=serving.tries,
        price_read=serving.price_read,
        price_written=serving.price_written,
        chat=plan.asking.chat or None,
    )
    said = server.as_settings()
    for sentence in (*server.cautions, f"{server.host} is asked so: {server.way}"):
        told(sentence)
    return Respondent(
        name=plan.name or plan.model,
        answerer=server,
        n_trials=prepared.sampling.n_trials,
        decisive={"server": {name: said[name] for name in said if name != "server"}, **_of_writing(plan, prepared)},
        incidental={"api_base": said["server"], "concurrency": serving.concurrency},
        price=lambda reply: server.cost(reply.n_tokens_read, reply.n_tokens_written),
        remarks=server.remarks,
    )


def _of_writing(plan: Plan, prepared: Prepared) -> dict[str, Any]:
    """How answers are written and judged."""
    said = {name: value for name, value in asdict(plan.writing).items() if name in ("metrics", "extract", "ignore")}
    return {"sampling": asdict(prepared.sampling), **{name: value for name, value in said.items() if value}}
