"""Tokenized contexts and options; few-shot examples are dropped if they do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jinja2 import TemplateError
from numpy.typing import NDArray

from tracker.errors import SelectionError
from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.tokenization import TEXTS_AT_ONCE, Ids, tokenize
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.scoring.label_spellings import group_tokens, list_spellings, sum_spellings


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """The tokens that a model reads before it responds.

    Attributes:
        text: with the few-shot examples that fit.
        ids: its tokens.
        n_examples: number of few-shot examples in it.
        n_over: number of excess tokens even without examples; 0 if it fits.
    """

    text: str
    ids: Ids
    n_examples: int
    n_over: int = 0

    def cut(self) -> Context:
        """Truncate the context at its beginning by the number of excess tokens."""
        return replace(self, ids=self.ids[self.n_over :], n_over=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedPrompt:
    """A tokenized prompt with options.

    Attributes:
        prompt: the prompt.
        context: tokens before each option.
        options: tokens of each option, at least one; of each spelling of each label if ``labels`` is not empty.
        labels: index of the label that each of ``options`` spells; empty if they are the options themselves.
        swallowed: indices of options whose first characters the tokenizer joins to the prompt's last token.
    """

    prompt: RenderedPrompt
    context: Context
    options: tuple[Ids, ...]
    labels: tuple[int, ...] = ()
    swallowed: tuple[int, ...] = ()

    def cut(self) -> EncodedPrompt:
        """Truncate the context at its beginning by the number of excess tokens."""
        return replace(self, context=self.context.cut())

    def shorten(self, n_tokens: int) -> EncodedPrompt:
        """Keep only the last ``n_tokens`` of the context."""
        return replace(self, context=replace(self.context, ids=self.context.ids[-n_tokens:]))

    def sum_spellings(self, logprobs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-probability of each option of the prompt, from those of ``options``."""
        return sum_spellings(logprobs, self.labels, len(self.prompt.options)) if self.labels else logprobs

    @property
    def length(self) -> int:
        """Return the tokens of the context and of the longest option."""
        return len(self.context.ids) + max(map(len, self.options))


def encode_prompts(
    model: LanguageModel,
    prompts: Sequence[RenderedPrompt],
    *,
    chat: bool,
    isolated_labels: bool = False,
    must_differ: bool = True,
) -> list[EncodedPrompt]:
    """Tokenize contexts and options.

    As in lm-evaluation-harness, the context is tokenized alone, white space at its end moves to the option, and the
    tokenizer adds its special tokens. Unlike there, an end token after the context is removed for a causal language
    model.

    Args:
        model: its tokenizer is used.
        prompts: prompts with options.
        chat: whether the prompt is sent as a turn of a conversation. The option then begins the model's turn, without a
            separator.
        isolated_labels: use only the last token of each option, as the authors of SMART do.
        must_differ: whether options with the same tokens are an error.

    Raises:
        SelectionError: several options have the same tokens.
    """
    done: dict[int, EncodedPrompt] = {}
    n_examples = [len(prompt.examples) for prompt in prompts]
    todo = list(range(len(prompts)))
    while todo:
        again = []
        for first in range(0, len(todo), TEXTS_AT_ONCE):
            part = todo[first : first + TEXTS_AT_ONCE]
            chosen = [prompts[at] for at in part]
            texts = [_render_text(model, prompts[at], n_examples[at], chat) for at in part]
            split = (
                _encode_isolated_labels(model, chosen, texts, chat)
                if isolated_labels
                else _encode_context_and_options(model, chosen, texts, chat)
            )
            for at, text, (ids, options, swallowed) in zip(part, texts, split, strict=True):
                over = 0 if model.context is None else len(ids) + _count_extra_tokens(options) - model.context
                if model.is_encoder_decoder and model.context is not None:
                    over = len(ids) - model.context
                if over > 0 and n_examples[at]:
                    n_examples[at] -= 1
                    again.append(at)
                    continue
                context = Context(text=text, ids=ids, n_examples=n_examples[at], n_over=max(0, over))
                done[at] = EncodedPrompt(prompt=prompts[at], context=context, options=options, swallowed=swallowed)
        todo = again
    encoded = [done[at] for at in range(len(prompts))]
    if must_differ:
        _check_labels_differ(model, encoded)
    return encoded


def add_spellings(model: LanguageModel, encoded_prompts: Sequence[EncodedPrompt]) -> list[EncodedPrompt]:
    """Return the prompts with all spellings of their labels, over which a label's probability is summed.

    Args:
        model: its tokenizer is used.
        encoded_prompts: prompts whose options are labels.
    """
    labels = tuple(dict.fromkeys(label for encoded in encoded_prompts for label in encoded.prompt.options))
    special = set(model.tokenizer.all_special_ids)
    vocabulary = {token: number for token, number in model.tokenizer.get_vocab().items() if number not in special}
    tokens = group_tokens(vocabulary, labels)
    alone = dict(zip(labels, tokenize(model, labels, bare=True), strict=True))
    results = []
    for encoded in encoded_prompts:
        names = encoded.prompt.options
        options: list[Ids] = []
        label_of: list[int] = []
        for at, (name, ids) in enumerate(zip(names, encoded.options, strict=True)):
            is_distinct = sum(name.strip() == label.strip() for label in names) == 1
            after_prompt = alone[name] or ids if at in encoded.swallowed else ids
            spellings = list_spellings(after_prompt, tokens[name.strip()] if is_distinct else ())
            options += spellings
            label_of += [at] * len(spellings)
        results.append(replace(encoded, options=tuple(options), labels=tuple(label_of)))
    return results


def encode_contexts(model: LanguageModel, prompts: Sequence[RenderedPrompt], *, chat: bool, room: int) -> list[Context]:
    """Tokenize contexts for generated responses.

    Args:
        model: its tokenizer is used.
        prompts: the prompts.
        chat: whether the prompt is sent as a turn of a conversation.
        room: tokens to reserve for the response.
    """
    limit = None if model.context is None else model.context - (0 if model.is_encoder_decoder else room)
    done: dict[int, Context] = {}
    n_examples = [len(prompt.examples) for prompt in prompts]
    todo = list(range(len(prompts)))
    while todo:
        texts = [_render_text(model, prompts[at], n_examples[at], chat) for at in todo]
        again = []
        for at, text, read in zip(todo, texts, tokenize(model, texts, chat=chat), strict=True):
            ids = read or _start_tokens(model)
            over = 0 if limit is None else len(ids) - limit
            if over > 0 and n_examples[at]:
                n_examples[at] -= 1
                again.append(at)
                continue
            done[at] = Context(text=text, ids=ids, n_examples=n_examples[at], n_over=max(0, over))
        todo = again
    return [done[at] for at in range(len(prompts))]


def describe_excess(model: LanguageModel, context: Context, kept: int = 0) -> str:
    """Return the message that a prompt does not fit.

    Args:
        model: the model.
        context: a context that is too long.
        kept: tokens reserved for the response.
    """
    room = f", with {kept:,} reserved for the response" if kept else ""
    return (
        f"the prompt is {context.n_over:,} tokens longer than the context of {model.name} ({model.context:,} "
        f"tokens{room})"
    )


def _render_text(model: LanguageModel, prompt: RenderedPrompt, n_examples: int, chat: bool) -> str:
    if not chat:
        return prompt.text(n_examples)
    messages = prompt.messages(n_examples)
    try:
        text: str = model.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, **model.chat_arguments
        )
    except (TemplateError, TypeError, ValueError) as error:
        if not getattr(model.tokenizer, "chat_template", None):
            raise SelectionError(f"{model.name} has no chat template: leave out --chat.") from None
        roles = ", ".join(dict.fromkeys(turn["role"] for turn in messages))
        raise SelectionError(
            f"The chat template of {model.name} rejects a conversation of {roles}: {error}. Change --system-prompt, "
            "--few-shot or --template-argument, or leave out --chat."
        ) from error
    return text


def _encode_context_and_options(
    model: LanguageModel, prompts: Sequence[RenderedPrompt], texts: Sequence[str], chat: bool
) -> list[tuple[Ids, tuple[Ids, ...], Ids]]:
    """Return context, options and swallowed options of each prompt; the separator between context and option belongs to
    the option.
    """
    joined = [["" if chat else prompt.join] * len(prompt.options) for prompt in prompts]
    plain, tails = [], []
    for text in texts:
        kept = text if chat else text.rstrip()
        plain.append(kept or text)
        tails.append(text[len(plain[-1]) :])
    contexts = tokenize(model, plain, chat=chat)
    continuations = [
        [tail + join + option for join, option in zip(joins, prompt.options, strict=True)]
        for prompt, joins, tail in zip(prompts, joined, tails, strict=True)
    ]
    if model.is_encoder_decoder:
        tokens = iter(tokenize(model, [text for texts in continuations for text in texts], bare=True))
        return [
            (ids, tuple(next(tokens) for _ in options), ())
            for ids, options in zip(contexts, continuations, strict=True)
        ]
    whole_texts = [text + after for text, options in zip(plain, continuations, strict=True) for after in options]
    whole = iter(tokenize(model, whole_texts, chat=chat))
    encoded = []
    for ids, continuation_texts in zip(contexts, continuations, strict=True):
        start = ids or _start_tokens(model)
        both = [next(whole) for _ in continuation_texts]
        swallowed = tuple(at for at, together in enumerate(both) if together[: len(ids)] != ids)
        options = tuple(together[len(ids) :] for together in both)
        if not all(options):  # the last token of the context includes the option
            bare = tokenize(model, continuation_texts, bare=True)
            options = tuple(option or bare_option for option, bare_option in zip(options, bare, strict=True))
        encoded.append((start, options, swallowed))
    return encoded


def _encode_isolated_labels(
    model: LanguageModel, prompts: Sequence[RenderedPrompt], texts: Sequence[str], chat: bool
) -> list[tuple[Ids, tuple[Ids, ...], Ids]]:
    labels = list(dict.fromkeys(option for prompt in prompts for option in prompt.options))
    last = {label: ids[-1:] for label, ids in zip(labels, tokenize(model, labels, bare=True), strict=True)}
    alone = tokenize(model, texts, chat=chat)
    return [
        (ids or _start_tokens(model), tuple(last[option] for option in prompt.options), ())
        for ids, prompt in zip(alone, prompts, strict=True)
    ]


def _start_tokens(model: LanguageModel) -> Ids:
    """Return the replacement of an empty context: the start token, else the end token."""
    tokenizer: Any = model.tokenizer
    start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    if start is None:
        raise SelectionError(
            f"{model.name} has no start token, and the template renders an empty text. Use a template with text "
            "(--template)."
        )
    return (int(start),)


def _count_extra_tokens(options: Sequence[Ids]) -> int:
    """Return the number of tokens that an option adds to the input; its last token is only predicted."""
    return max(map(len, options)) - 1


def _check_labels_differ(model: LanguageModel, encoded: Sequence[EncodedPrompt]) -> None:
    for prompt in encoded:
        labels = prompt.prompt.options
        if len(set(prompt.options)) < len(set(labels)) or not all(prompt.options):
            raise SelectionError(
                f"The tokenizer of {model.name} encodes several of the labels {', '.join(map(repr, labels[:6]))} "
                "identically. Use other labels (--labels digits), or --method generation."
            )
