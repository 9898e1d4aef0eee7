"""The model under test, local or on a server, with the facts that a run records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tracker.errors import SelectionError
from tracker.evaluating.judge import MAX_TOKENS, Judge, Rubric
from tracker.evaluating.plan import Plan
from tracker.evaluating.plan_settings import ServerSettings
from tracker.evaluating.preparation import PreparedEvaluation
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import ModelBackend, Response, Sampling
from tracker.evaluating.scoring.greedy_targets import GreedyBackend, needs_greedy
from tracker.evaluating.scoring.partial_scoring import ContextBackend
from tracker.evaluating.servers.budget import Budget

if TYPE_CHECKING:
    from tracker.evaluating.local.loading import LanguageModel

VERSION_SETTINGS = ("torch", "transformers")
"""Settings that hold package versions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelUnderTest:
    """A model that responds to prompts, and the facts that a run records.

    Attributes:
        name: stored name of the model.
        backend: computes or requests the responses.
        n_trials: responses per prompt.
        decisive: settings that decide the responses; part of the run's identity.
        incidental: other settings of the run.
        facts: known facts about the model.
        price: price of a response; None if unknown.
        n_tokens: tokens of each prompt, including examples and options; for a local model.
        too_long: excess tokens of each prompt that does not fit, by key.
        list_warnings: returns the warnings of the evaluation after it has ended.
        rejects_too_long: whether prompts that do not fit are an error before the evaluation begins.
        judge: grades generated responses; None without one.
        budget: limits the cost of all requests; None for no limit.
    """

    name: str
    backend: ModelBackend
    n_trials: int
    decisive: Mapping[str, Any]
    incidental: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    price: Callable[[Response], float | None] = lambda _: None
    n_tokens: Callable[[Sequence[RenderedPrompt]], Sequence[int]] = lambda _: ()
    too_long: Callable[[Sequence[RenderedPrompt]], Mapping[int, int]] = lambda _: {}
    list_warnings: Callable[[], Sequence[str]] = tuple
    rejects_too_long: bool = True
    judge: Judge | None = None
    budget: Budget | None = None

    def check(self, prompts: Sequence[RenderedPrompt]) -> None:
        """Reject prompts that do not fit.

        Raises:
            SelectionError: some prompts do not fit, and the plan rejects them.
        """
        over = self.too_long(prompts)
        if over and self.rejects_too_long:
            raise SelectionError(
                f"{len(over):,} of {len(prompts):,} prompts exceed the context of {self.name} even without examples, "
                f"the longest by {max(over.values()):,} tokens. Skip them with --too-long skip, or truncate their "
                "beginning with --too-long cut."
            )


def load_model_under_test(plan: Plan, prepared: PreparedEvaluation, report: Callable[[str], None]) -> ModelUnderTest:
    """Load the model, or connect to the server.

    Args:
        plan: the evaluation.
        prepared: the prompts.
        report: called with messages for the user.

    Raises:
        SuffrageError: the model or the server is not available.
    """
    amounts = plan.server.read_budget()
    budget = None if amounts is None else Budget(*amounts, plan.server.price_read or 0, plan.server.price_written or 0)
    if plan.server.api_base:
        model = _connect_to_server(plan, prepared, report, budget)
    else:
        model = _load_local_model(plan, prepared, report)
    model = _adapt_backend(model, [prompt for part in prepared.rendered.values() for prompt in part.prompts])
    if prepared.rubric is None or prepared.method != "generation":
        return replace(model, budget=budget)
    judge = _connect_to_judge(plan, prepared.rubric, report, budget)
    return replace(model, budget=budget, judge=judge, decisive={**model.decisive, "judge": judge.as_settings()})


def _adapt_backend(model: ModelUnderTest, prompts: Sequence[RenderedPrompt]) -> ModelUnderTest:
    """Return a model that also responds to prompts with a text for each option, and to targets of log-likelihoods.

    Servers do not report whether greedy decoding generates a target, so that their responses have no such score.
    """
    backend: Any = model.backend
    if needs_greedy(prompts) and hasattr(backend, "encode") and not getattr(backend, "knows_greedy", False):
        model = replace(model, backend=GreedyBackend(backend))
    if not any(prompt.contexts for prompt in prompts):
        return model
    by_context = ContextBackend(model.backend, model.n_tokens, model.too_long)
    return replace(model, backend=by_context, n_tokens=by_context.n_tokens, too_long=by_context.too_long)


def _load_local_model(plan: Plan, prepared: PreparedEvaluation, report: Callable[[str], None]) -> ModelUnderTest:
    loading, prompt_settings = plan.loading, plan.prompts
    engine = _find_local_engine(plan)
    model = replace(engine.load(), chat_arguments=prompt_settings.chat_arguments())
    shared: dict[str, Any] = {
        "chat": prompt_settings.chat,
        "batch_size": loading.batch_size,
        "report": report,
        "too_long": "cut" if prompt_settings.too_long == "cut" else "skip",
    }
    decisive: dict[str, Any] = {}
    backend: Any
    if prepared.method == "generation":
        backend = engine.text_generator(model, prepared.sampling, **shared)
        decisive = _generation_settings(prepared, prepared.sampling)
    else:
        backend = engine.option_scorer(
            model, method=prepared.method, isolated_labels=prepared.template.isolated_labels, **shared
        )

    def too_long(prompts: Sequence[RenderedPrompt]) -> Mapping[int, int]:
        contexts = zip(prompts, backend.encode_contexts(prompts), strict=True)
        return {prompt.prompt_id: context.n_over for prompt, context in contexts if context.n_over}

    settings = model.as_settings()
    return ModelUnderTest(
        name=model.name,
        backend=backend,
        n_trials=prepared.sampling.n_trials,
        decisive={
            "model": {name: settings[name] for name in settings if name not in VERSION_SETTINGS},
            **decisive,
            **engine.decisive,
        },
        incidental={
            "device": model.device,
            "batch_size": loading.batch_size or "auto",
            **{name: settings[name] for name in VERSION_SETTINGS if name in settings},
            **engine.incidental,
        },
        facts=model.facts,
        n_tokens=backend.n_tokens,
        too_long=too_long if prompt_settings.too_long != "cut" else lambda _: {},
        rejects_too_long=prompt_settings.too_long == "refuse",
    )


@dataclass(frozen=True, kw_only=True)
class _LocalEngine:
    """What computes the responses in this process.

    Attributes:
        load: loads the model.
        option_scorer, text_generator: classes of the backends.
        decisive, incidental: settings of the run.
    """

    load: Callable[[], LanguageModel]
    option_scorer: Callable[..., ModelBackend]
    text_generator: Callable[..., ModelBackend]
    decisive: Mapping[str, Any] = field(default_factory=dict)
    incidental: Mapping[str, Any] = field(default_factory=dict)


def _find_local_engine(plan: Plan) -> _LocalEngine:
    loading = plan.loading
    if plan.engine == "vllm":
        from tracker.evaluating.vllm_engine.vllm_generation import VllmGenerator
        from tracker.evaluating.vllm_engine.vllm_loading import load_vllm_model, read_vllm_version
        from tracker.evaluating.vllm_engine.vllm_options import VllmOptionScorer

        return _LocalEngine(
            load=lambda: load_vllm_model(plan.model, loading, name=plan.name),
            option_scorer=VllmOptionScorer,
            text_generator=VllmGenerator,
            decisive={"engine": "vllm"},
            incidental={"vllm": read_vllm_version(), "device_count": loading.device_count or 1},
        )
    from tracker.evaluating.local.generation import TextGenerator
    from tracker.evaluating.local.loading import load_language_model
    from tracker.evaluating.local.option_scorer import OptionScorer

    return _LocalEngine(
        load=lambda: load_language_model(
            plan.model,
            revision=loading.revision,
            device=loading.device,
            dtype=loading.dtype,
            trust_remote_code=loading.trust_remote_code,
            name=plan.name,
            base_model=loading.base_model,
        ),
        option_scorer=OptionScorer,
        text_generator=TextGenerator,
    )


def _connect_to_judge(plan: Plan, rubric: Rubric, report: Callable[[str], None], budget: Budget | None) -> Judge:
    from tracker.evaluating.servers.server_model import open_server

    settings = replace(
        plan.server,
        api_base=plan.generation.judge_api_base or plan.server.api_base,
        api="completions" if plan.server.api == "completions" else "chat",
    )
    sampling = Sampling(max_tokens=MAX_TOKENS)
    server = open_server(str(plan.generation.judge), settings, method="generation", sampling=sampling, budget=budget)
    for warning in server.initial_warnings:
        report(f"Judge: {warning}")
    return Judge(
        server=server,
        rubric=rubric,
        price=lambda response: server.cost(response.n_tokens_read, response.n_tokens_written),
    )


def _connect_to_server(
    plan: Plan, prepared: PreparedEvaluation, report: Callable[[str], None], budget: Budget | None
) -> ModelUnderTest:
    from tracker.evaluating.servers.server_model import open_server

    server = open_server(
        plan.model,
        _with_chat_arguments(plan),
        method=prepared.method,
        sampling=prepared.sampling,
        chat=plan.prompts.chat or None,
        budget=budget,
    )
    settings = server.as_settings()
    for sentence in (*server.initial_warnings, f"Requests to {server.host}: {server.description}"):
        report(sentence)
    return ModelUnderTest(
        name=plan.name or plan.model,
        backend=server,
        n_trials=prepared.sampling.n_trials,
        decisive={
            "server": {name: settings[name] for name in settings if name != "server"},
            **_generation_settings(prepared, server.sampling),
        },
        incidental={"api_base": settings["server"], "concurrency": plan.server.concurrency},
        price=lambda response: server.cost(response.n_tokens_read, response.n_tokens_written),
        list_warnings=server.list_warnings,
    )


def _with_chat_arguments(plan: Plan) -> ServerSettings:
    """Return the server's settings with the arguments of its chat template, under vLLM's and llama.cpp's name."""
    arguments = plan.prompts.chat_arguments()
    if not arguments:
        return plan.server
    fields = {"chat_template_kwargs": arguments, **plan.server.extra_fields()}
    return replace(plan.server, extra_body=json.dumps(fields))


def _generation_settings(prepared: PreparedEvaluation, sampling: Sampling) -> dict[str, Any]:
    """Return the settings that decide how responses are generated and scored."""
    rules = {name: value for name, value in asdict(prepared.rules).items() if value}
    return {"sampling": sampling.as_settings(), **rules}
