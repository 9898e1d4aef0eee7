"""Options of `suffrage evaluate`, by subject."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tracker.cli.options import combine_options
from tracker.evaluating.option_values import (
    ANSWER_ONLY_EXAMPLES,
    APIS,
    DTYPES,
    ENGINES,
    EXAMPLE_CHOICES,
    LABELS,
    METHODS,
    TOO_LONG_ACTIONS,
)
from tracker.evaluating.scoring.rules import PRESETS

CODES = (
    "AED ARS AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY KES KRW KZT MAD MXN MYR "
    "NGN NOK NZD PEN PHP PKR PLN QAR RON RSD RUB SAR SEK SGD THB TRY TWD UAH USD UYU VND ZAR $ € £ ¥"
)
CURRENCIES = frozenset(CODES.split())
"""Second words that belong to a budget, as in ``--budget 5.00 EUR``."""


def join_budget(arguments: Sequence[str]) -> list[str]:
    """Return the words of a command line with a budget and its currency as one word."""
    joined: list[str] = []
    for word in arguments:
        is_amount = bool(joined) and (
            joined[-1].startswith("--budget=") or (len(joined) > 1 and joined[-2] == "--budget")
        )
        if is_amount and word.upper() in CURRENCIES:
            joined[-1] += f" {word}"
        else:
            joined.append(word)
    return joined


prompt_options = combine_options(
    click.option(
        "--condition",
        "conditions",
        metavar="full,answer-only",
        default="full",
        show_default=True,
        help="Conditions to evaluate: full is with the question, answer-only without it. Each is a separate run.",
    ),
    click.option(
        "--variant",
        default="",
        metavar="NAME",
        show_default="no name",
        help="Name of this prompt variant, which distinguishes its runs from others.",
    ),
    click.option(
        "--template",
        metavar="NAME|FILE",
        show_default="multiple_choice, or written for prompts without options",
        help="Prompt template: a built-in name or a Jinja file.",
    ),
    click.option(
        "--labels",
        type=click.Choice(LABELS),
        show_default="as in the template",
        help="Labels of the answer options: A, B, C; 1, 2, 3; or the words of the template.",
    ),
    click.option(
        "--method",
        type=click.Choice(METHODS),
        show_default="as in the template",
        help=(
            "How the answer is found. letters: the likeliest option label; loglikelihood: the "
            "likeliest option text; generation: the model writes it."
        ),
    ),
    click.option(
        "--chat",
        is_flag=True,
        help="Send the prompt as turns of a conversation, formatted by the model's chat template.",
    ),
    click.option(
        "--system-prompt",
        default="",
        metavar="TEXT",
        show_default="none",
        help="First turn of the conversation, of the role system. Needs --chat or --api chat.",
    ),
    click.option(
        "--template-argument",
        "template_arguments",
        multiple=True,
        metavar="NAME=VALUE",
        show_default="none",
        help="Argument of the model's chat template, such as enable_thinking=false. Repeatable.",
    ),
    click.option(
        "--few-shot",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Number of few-shot examples before each prompt.",
    ),
    click.option("--few-shot-split", metavar="NAME", help="Split that the few-shot examples come from."),
    click.option(
        "--shots",
        type=click.Choice(EXAMPLE_CHOICES),
        default="fixed",
        show_default=True,
        help="Few-shot examples. fixed: the same for all prompts of a task; per-prompt: drawn for each prompt.",
    ),
    click.option(
        "--answer-only-shots",
        type=click.Choice(ANSWER_ONLY_EXAMPLES),
        default="none",
        show_default=True,
        help=(
            "Few-shot examples in the condition answer-only. none: no examples; blank: examples "
            "without their questions; full: whole examples."
        ),
    ),
    click.option(
        "--split",
        metavar="NAME",
        show_default="test if there is one, else all",
        help="Split of the prompts to evaluate.",
    ),
    click.option(
        "--tasks",
        "tasks",
        metavar="A,B",
        multiple=True,
        show_default="all",
        help="Names of tasks to evaluate, separated by commas. Repeatable.",
    ),
    click.option(
        "--limit",
        type=click.IntRange(min=1),
        metavar="N",
        show_default="all",
        help="Number of prompts to evaluate, drawn with --seed.",
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of all random draws."),
    click.option(
        "--too-long",
        type=click.Choice(TOO_LONG_ACTIONS),
        default="refuse",
        show_default=True,
        help=(
            "Prompts that exceed the context length even without few-shot examples. `refuse`: stop before evaluating; "
            "`skip`: leave them out; `cut`: cut off their beginning."
        ),
    ),
)
"""Which prompts are evaluated, and how they are put."""

generation_options = combine_options(
    click.option(
        "--metric",
        "metrics",
        metavar="A,B",
        multiple=True,
        show_default="exact_match",
        help=(
            "Metrics of generated answers, separated by commas: exact_match, f1, math_verify (equal numbers or "
            "formulas; extra `math`), rouge1, rouge2, rougeL or pass@k, such as pass@5."
        ),
    ),
    click.option(
        "--preset",
        type=click.Choice(tuple(PRESETS)),
        help=(
            "Scoring of a kind of answer. gsm8k: the number after ####; last-number: the last number; boxed: the last "
            "\\boxed{} by math_verify. --metric, --extract, --extract-reference and --ignore replace parts of it."
        ),
    ),
    click.option(
        "--extract",
        metavar="REGEX",
        show_default="the whole text",
        help="Regular expression that extracts the answer from the generated text; the last match is used.",
    ),
    click.option(
        "--extract-reference",
        metavar="REGEX|none",
        show_default="as --extract",
        help=(
            "Regular expression that extracts the answer from the reference answer; none compares with the whole. "
            "A reference without a match is compared whole."
        ),
    ),
    click.option(
        "--ignore",
        metavar="A,B",
        multiple=True,
        show_default="none",
        help=(
            "Differences to ignore when answers are compared, separated by commas: case, punctuation, "
            "articles or number-format."
        ),
    ),
    click.option(
        "--max-tokens",
        type=click.IntRange(min=1),
        show_default="as in the template, on chat endpoints at least 1,024",
        help=(
            "Largest number of tokens of a generated answer with its reasoning. A truncated answer scores 0, and is "
            "counted."
        ),
    ),
    click.option(
        "--temperature",
        type=click.FloatRange(min=0),
        default=0.0,
        show_default=True,
        help="Sampling temperature; 0 always takes the likeliest token.",
    ),
    click.option(
        "--top-p",
        type=click.FloatRange(0, 1, min_open=True),
        default=1.0,
        show_default=True,
        help="Sample from the likeliest tokens that make up this probability.",
    ),
    click.option(
        "--stop",
        multiple=True,
        metavar="TEXT",
        show_default="those of the template; in a conversation none",
        help="Text that ends a generated answer; `none` for no such text. Repeatable.",
    ),
    click.option(
        "--trials",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Number of generated answers for each prompt. Metrics pass@k need at least k.",
    ),
    click.option(
        "--judge",
        metavar="MODEL",
        help="Model on the server that grades generated answers. Its text is stored, and its cost counted.",
    ),
    click.option(
        "--judge-template",
        metavar="correct|score|FILE",
        default="correct",
        show_default=True,
        help="Rubric of the judge. correct: right or wrong; score: 1 to 10; or a Jinja file.",
    ),
    click.option(
        "--judge-api-base",
        metavar="URL",
        show_default="as --api-base",
        help="Server of the judge, if it is another one.",
    ),
)
"""How answers are generated and scored."""

loading_options = combine_options(
    click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default="auto",
        show_default=True,
        help=(
            "What computes the responses. `transformers`: in this process; `vllm`: vLLM in this process, on CUDA "
            "devices (extra `vllm`); `server`: --api-base; `auto`: the server if --api-base is set, else transformers."
        ),
    ),
    click.option(
        "--device-count",
        type=click.IntRange(min=1),
        show_default="one",
        help="Number of CUDA devices over which vLLM splits the model. Needs --engine vllm.",
    ),
    click.option(
        "--revision", default="", metavar="TEXT", show_default="the latest", help="Revision of the model on the hub."
    ),
    click.option(
        "--base-model",
        metavar="PATH",
        show_default="the one in adapter_config.json",
        help="Base model of an adapter such as LoRA: a folder, or a name on the hub.",
    ),
    click.option(
        "--batch-size",
        metavar="N|auto",
        default="auto",
        show_default=True,
        help="Number of prompts computed at once. A fixed number makes results reproducible bit by bit.",
    ),
    click.option(
        "--device",
        default="auto",
        show_default=True,
        metavar="NAME",
        help="Device to compute on, such as cpu or cuda; auto selects the fastest available, all distributes the "
        "model over all CUDA devices.",
    ),
    click.option(
        "--dtype",
        type=click.Choice(["auto", *DTYPES]),
        default="auto",
        show_default=True,
        help="Number format of the model. auto: the model's default on an accelerator, float32 on a CPU.",
    ),
    click.option("--trust-remote-code", is_flag=True, help="Allow Python code among the model's files to run."),
)
"""How a model in this process is run."""

server_options = combine_options(
    click.option(
        "--api-base",
        metavar="URL",
        show_default="run the model locally",
        help="URL of a server with an OpenAI-compatible API, such as http://localhost:8000/v1.",
    ),
    click.option(
        "--api",
        type=click.Choice(APIS),
        default="auto",
        show_default=True,
        help="Endpoint of the server: completions, chat, or auto for the one that supports the method.",
    ),
    click.option(
        "--key-env",
        default="OPENAI_API_KEY",
        show_default=True,
        metavar="NAME",
        help="Environment variable that holds the server's API key.",
    ),
    click.option(
        "--concurrency",
        type=click.IntRange(min=1),
        default=8,
        show_default=True,
        help="Number of requests at the same time.",
    ),
    click.option(
        "--requests-per-minute",
        type=click.FloatRange(min=0, min_open=True),
        show_default="none",
        help="Rate limit of requests.",
    ),
    click.option(
        "--tokens-per-minute",
        type=click.FloatRange(min=0, min_open=True),
        show_default="none",
        help="Rate limit of tokens.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=60.0,
        show_default=True,
        help="Seconds to wait for a response.",
    ),
    click.option(
        "--tries",
        type=click.IntRange(min=1),
        default=6,
        show_default=True,
        help="Number of attempts before a request fails.",
    ),
    click.option(
        "--extra-body",
        metavar="JSON",
        show_default="none",
        help='Further fields of each request, such as \'{"reasoning_effort": "low"}\'.',
    ),
    click.option(
        "--budget",
        metavar="AMOUNT [CURRENCY]",
        show_default="none",
        help="The most that all requests may cost, such as 5.00 EUR; the evaluation stops before. Needs both prices.",
    ),
    click.option(
        "--price-read", type=click.FloatRange(min=0), help="Price of a million input tokens, for the cost estimate."
    ),
    click.option(
        "--price-written", type=click.FloatRange(min=0), help="Price of a million output tokens, for the cost estimate."
    ),
)
"""How a server is reached."""
