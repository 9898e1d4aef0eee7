"""The options of `suffrage evaluate`, by what they are about."""

from __future__ import annotations

import click

from tracker.cli.options import combine_options
from tracker.evaluating.option_values import (
    ANSWER_ONLY_EXAMPLES,
    APIS,
    DTYPES,
    EXAMPLE_CHOICES,
    LABELS,
    METHODS,
    TOO_LONG_ACTIONS,
)

prompt_options = combine_options(
    click.option(
        "--condition",
        "conditions",
        metavar="full,answer-only",
        default="full",
        show_default=True,
        help="With the question, without it, or both; each is a run.",
    ),
    click.option(
        "--variant", default="", metavar="NAME", help="What this wording is called, where it is not the plain one."
    ),
    click.option(
        "--template",
        metavar="NAME|FILE",
        help=(
            "How prompts are put: a built-in name or a Jinja file.  [default: multiple_choice, or written"
            " for prompts without options]"
        ),
    ),
    click.option(
        "--labels",
        type=click.Choice(LABELS),
        help="What options are called; else as the template says.",
    ),
    click.option(
        "--method",
        type=click.Choice(METHODS),
        help=(
            "Compare the options' labels at the last position, their log-probabilities, or let the model "
            "write; else as the template says."
        ),
    ),
    click.option("--chat", is_flag=True, help="Put prompts as turns of a conversation, by the model's chat template."),
    click.option(
        "--few-shot",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Worked examples before each prompt.",
    ),
    click.option("--few-shot-split", metavar="NAME", help="The split they come from."),
    click.option(
        "--shots",
        type=click.Choice(EXAMPLE_CHOICES),
        default="fixed",
        show_default=True,
        help="The same examples for all prompts of a task, or drawn for each.",
    ),
    click.option(
        "--answer-only-shots",
        type=click.Choice(ANSWER_ONLY_EXAMPLES),
        default="none",
        show_default=True,
        help="Where the question is withheld: no examples, ones without their questions, or whole ones.",
    ),
    click.option(
        "--split", metavar="NAME", help="Which prompts are asked.  [default: test, where there is such a split]"
    ),
    click.option("--tasks", "tasks", metavar="A,B", multiple=True, help="Only these tasks."),
    click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only N prompts, drawn by --seed."),
    click.option("--seed", type=int, default=0, show_default=True, help="Of every draw."),
    click.option(
        "--too-long",
        type=click.Choice(TOO_LONG_ACTIONS),
        default="refuse",
        show_default=True,
        help=(
            "Prompts that do not fit even without examples: begin nothing, leave them out, or cut off their beginning."
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
        help="Of written answers: exact_match, f1, rouge1, rouge2, rougeL.  [default: exact_match]",
    ),
    click.option("--extract", metavar="REGEX", help="Finds the answer in what was written: its last match."),
    click.option(
        "--ignore",
        metavar="A,B",
        multiple=True,
        help="What does not count in comparing: case, punctuation, articles, number-format.",
    ),
    click.option("--max-tokens", type=click.IntRange(min=1), help="Longest written answer; else as the template says."),
    click.option(
        "--temperature",
        type=click.FloatRange(min=0),
        default=0.0,
        show_default=True,
        help="0 takes the likeliest token each time.",
    ),
    click.option(
        "--top-p",
        type=click.FloatRange(0, 1, min_open=True),
        default=1.0,
        show_default=True,
        help="Share of probability that is drawn from.",
    ),
    click.option(
        "--stop",
        multiple=True,
        metavar="TEXT",
        help="Ends a written answer, beside what the template says; may be repeated.",
    ),
    click.option(
        "--trials", type=click.IntRange(min=1), default=1, show_default=True, help="Written answers to each prompt."
    ),
)
"""How answers are generated and scored."""

loading_options = combine_options(
    click.option("--revision", default="", metavar="TEXT", help="Version on the hub."),
    click.option(
        "--batch-size",
        metavar="N|auto",
        default="auto",
        show_default=True,
        help="Prompts computed together; a fixed number makes the bytes repeatable.",
    ),
    click.option(
        "--device",
        default="auto",
        show_default=True,
        metavar="NAME",
        help="Such as cpu or cuda; auto is the fastest there is.",
    ),
    click.option(
        "--dtype",
        type=click.Choice(["auto", *DTYPES]),
        default="auto",
        show_default=True,
        help="auto: the model's own on an accelerator, float32 elsewhere.",
    ),
    click.option("--trust-remote-code", is_flag=True, help="Let Python code among the model's files run."),
)
"""How a model in this process is run."""

server_options = combine_options(
    click.option(
        "--api-base",
        metavar="URL",
        help="Ask a server that speaks OpenAI's protocol, such as http://localhost:8000/v1.",
    ),
    click.option(
        "--api",
        type=click.Choice(APIS),
        default="auto",
        show_default=True,
        help="Which of the server's ways.",
    ),
    click.option(
        "--key-env",
        default="OPENAI_API_KEY",
        show_default=True,
        metavar="NAME",
        help="Environment variable that holds the server's key.",
    ),
    click.option("--concurrency", type=click.IntRange(min=1), default=8, show_default=True, help="Requests at once."),
    click.option("--requests-per-minute", type=click.FloatRange(min=0, min_open=True), help="Limit of requests."),
    click.option("--tokens-per-minute", type=click.FloatRange(min=0, min_open=True), help="Limit of tokens."),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=60.0,
        show_default=True,
        help="Seconds to wait for a reply.",
    ),
    click.option(
        "--tries",
        type=click.IntRange(min=1),
        default=6,
        show_default=True,
        help="How often a request is made before it counts as failed.",
    ),
    click.option("--price-read", type=click.FloatRange(min=0), help="Of a million tokens that the server reads."),
    click.option("--price-written", type=click.FloatRange(min=0), help="Of a million tokens that it writes."),
)
"""How a server is reached."""
