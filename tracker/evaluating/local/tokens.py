"""What a model reads and what may follow, as tokens; worked examples are left out where they do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracker.errors import SelectionError
from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.prompt_templates.rendered_prompt import Question

TEXTS_AT_ONCE = 200
Ids = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What a model reads before it answers.

    Attributes:
        text: with the worked examples that fit.
        ids: its tokens.
        n_shots: worked examples in it.
        n_over: tokens by which it is too long even without any; 0 where it fits.
    """

    text: str
    ids: Ids
    n_shots: int
    n_over: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoded:
    """A question whose options are compared, as tokens.

    Attributes:
        question: the question.
        context: what comes before each option.
        options: tokens of each option, at least one.
    """

    question: Question
    context: Context
    options: tuple[Ids, ...]

    def cut(self) -> Encoded:
        """The question without the first of its tokens, as many as are too many."""
        ids = self.context.ids[self.context.n_over :]
        return replace(self, context=replace(self.context, ids=ids, n_over=0))

    def shortened(self, n_tokens: int) -> Encoded:
        """The question with the last ``n_tokens`` of its context alone."""
        return replace(self, context=replace(self.context, ids=self.context.ids[-n_tokens:]))

    @property
    def length(self) -> int:
        """Tokens of the context and of the longest option."""
        return len(self.context.ids) + max(map(len, self.options))


def encoded(
    model: LanguageModel,
    questions: Sequence[Question],
    *,
    chat: bool,
    isolated_labels: bool = False,
    must_differ: bool = True,
) -> list[Encoded]:
    """Contexts and options as tokens.

    As lm-evaluation-harness does it, a context is split from its option behind the tokens that it has alone, white
    space at its end goes to the option, and the tokenizer adds the special tokens that it adds by itself. But where it
    ends texts by one, a model that only goes on with a text is not shown that end.

    Args:
        model: whose tokenizer.
        questions: with options.
        chat: whether the question is put as a turn of a conversation; what the model says then begins a turn, and
            nothing stands between.
        isolated_labels: take for each option the last token of the option alone, as the authors of SMART do.
        must_differ: whether options that the tokenizer writes alike are refused.

    Raises:
        SelectionError: several options are the same to the tokenizer.
    """
    done: dict[int, Encoded] = {}
    shots = [len(question.shots) for question in questions]
    todo = list(range(len(questions)))
    while todo:
        again = []
        for first in range(0, len(todo), TEXTS_AT_ONCE):
            part = todo[first : first + TEXTS_AT_ONCE]
            chosen = [questions[at] for at in part]
            texts = [_text(model, questions[at], shots[at], chat) for at in part]
            split = _isolated(model, chosen, texts, chat) if isolated_labels else _split(model, chosen, texts, chat)
            for at, text, (ids, options) in zip(part, texts, split, strict=True):
                over = 0 if model.context is None else len(ids) + _written(options) - model.context
                if model.is_encoder_decoder and model.context is not None:
                    over = len(ids) - model.context
                if over > 0 and shots[at]:
                    shots[at] -= 1
                    again.append(at)
                    continue
                context = Context(text=text, ids=ids, n_shots=shots[at], n_over=max(0, over))
                done[at] = Encoded(question=questions[at], context=context, options=options)
        todo = again
    every = [done[at] for at in range(len(questions))]
    if must_differ:
        _refuse_equal(model, every)
    return every


def contexts(model: LanguageModel, questions: Sequence[Question], *, chat: bool, room: int) -> list[Context]:
    """Contexts alone, for answers that are written.

    Args:
        model: whose tokenizer.
        questions: what is asked.
        chat: whether the question is put as a turn of a conversation.
        room: tokens to be left for the answer.
    """
    limit = None if model.context is None else model.context - (0 if model.is_encoder_decoder else room)
    done: dict[int, Context] = {}
    shots = [len(question.shots) for question in questions]
    todo = list(range(len(questions)))
    while todo:
        texts = [_text(model, questions[at], shots[at], chat) for at in todo]
        again = []
        for at, text, read in zip(todo, texts, token_ids(model, texts, chat=chat), strict=True):
            ids = read or _start(model)
            over = 0 if limit is None else len(ids) - limit
            if over > 0 and shots[at]:
                shots[at] -= 1
                again.append(at)
                continue
            done[at] = Context(text=text, ids=ids, n_shots=shots[at], n_over=max(0, over))
        todo = again
    return [done[at] for at in range(len(questions))]


def why_too_long(model: LanguageModel, context: Context, kept: int = 0) -> str:
    """That a prompt does not fit.

    Args:
        model: who would read it.
        context: which is too long.
        kept: tokens that are kept for the answer.
    """
    room = f", with {kept:,} kept for the answer" if kept else ""
    return f"the prompt is {context.n_over:,} tokens longer than the {model.context:,} that {model.name} reads{room}"


def token_ids(model: LanguageModel, texts: Sequence[str], *, chat: bool = False, bare: bool = False) -> list[Ids]:
    """The tokens of texts.

    What the tokenizer puts behind a text, such as ``</s>`` or ``[SEP]``, is left out for a model that goes on with the
    text; what it puts before it stays.

    Args:
        model: whose tokenizer.
        texts: any number.
        chat: whether they went through the chat template, which writes the special tokens itself.
        bare: whether to add no special tokens in any case.
    """
    tokenizer: Any = model.tokenizer
    starts_so = tokenizer.bos_token
    begun = [chat or bare or bool(starts_so and text.startswith(starts_so)) for text in texts]
    n_ends = 0 if model.is_encoder_decoder or all(begun) else _n_ends(tokenizer)
    made: list[Ids] = [()] * len(texts)
    for complete in (False, True):
        places = [at for at, is_begun in enumerate(begun) if is_begun == complete]
        for first in range(0, len(places), TEXTS_AT_ONCE):
            part = places[first : first + TEXTS_AT_ONCE]
            found = tokenizer(
                [texts[at] for at in part], add_special_tokens=not complete, padding=False, truncation=False,
                return_attention_mask=False, verbose=False,
            )  # fmt: skip
            for at, ids in zip(part, found["input_ids"], strict=True):
                made[at] = tuple(ids if complete else ids[: len(ids) - n_ends])
    return made


def _n_ends(tokenizer: Any) -> int:
    """How many tokens a tokenizer puts behind every text: one that is to be continued has not ended."""
    with_marks, plain = (
        tokenizer("a", add_special_tokens=marks, verbose=False)["input_ids"] for marks in (True, False)
    )
    n_more = len(with_marks) - len(plain)
    first = next((at for at in range(n_more + 1) if with_marks[at : at + len(plain)] == plain), n_more)
    return n_more - first


def _text(model: LanguageModel, question: Question, n_shots: int, chat: bool) -> str:
    if not chat:
        return question.text(n_shots)
    made: str = model.tokenizer.apply_chat_template(
        question.messages(n_shots), tokenize=False, add_generation_prompt=True
    )
    return made


def _split(
    model: LanguageModel, questions: Sequence[Question], texts: Sequence[str], chat: bool
) -> list[tuple[Ids, tuple[Ids, ...]]]:
    """Context and options of each; what stands between them belongs to the option."""
    joined = [["" if chat else question.join] * len(question.options) for question in questions]
    plain, tails = [], []
    for text in texts:
        kept = text if chat else text.rstrip()
        plain.append(kept or text)
        tails.append(text[len(plain[-1]) :])
    alone = token_ids(model, plain, chat=chat)
    follow = [
        [tail + join + option for join, option in zip(joins, question.options, strict=True)]
        for question, joins, tail in zip(questions, joined, tails, strict=True)
    ]
    if model.is_encoder_decoder:
        flat = iter(token_ids(model, [text for one in follow for text in one], bare=True))
        return [(ids, tuple(next(flat) for _ in one)) for ids, one in zip(alone, follow, strict=True)]
    whole = iter(
        token_ids(model, [text + after for text, one in zip(plain, follow, strict=True) for after in one], chat=chat)
    )
    made = []
    for ids, one in zip(alone, follow, strict=True):
        start = ids or _start(model)
        options = tuple(next(whole)[len(ids) :] for _ in one)
        if not all(options):  # the last token of the context swallowed the option
            bare = token_ids(model, one, bare=True)
            options = tuple(option or other for option, other in zip(options, bare, strict=True))
        made.append((start, options))
    return made


def _isolated(
    model: LanguageModel, questions: Sequence[Question], texts: Sequence[str], chat: bool
) -> list[tuple[Ids, tuple[Ids, ...]]]:
    labels = list(dict.fromkeys(option for question in questions for option in question.options))
    last = {label: ids[-1:] for label, ids in zip(labels, token_ids(model, labels, bare=True), strict=True)}
    alone = token_ids(model, texts, chat=chat)
    return [
        (ids or _start(model), tuple(last[option] for option in question.options))
        for ids, question in zip(alone, questions, strict=True)
    ]


def _start(model: LanguageModel) -> Ids:
    """What an empty context is replaced by: the token that texts begin with, else the one that they end with."""
    tokenizer: Any = model.tokenizer
    start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    if start is None:
        raise SelectionError(
            f"{model.name} has no token that texts begin with, and the template leaves nothing to read. Give a "
            "template that says something (--template)."
        )
    return (int(start),)


def _written(options: Sequence[Ids]) -> int:
    """Tokens that an option adds to what the model reads: its last one is only foretold."""
    return max(map(len, options)) - 1


def _refuse_equal(model: LanguageModel, every: Sequence[Encoded]) -> None:
    for one in every:
        said = one.question.options
        if len(set(one.options)) < len(set(said)) or not all(one.options):
            raise SelectionError(
                f"The tokenizer of {model.name} writes several of the labels {', '.join(map(repr, said[:6]))} alike, "
                "so that they cannot be told apart. Use other labels (--labels digits), or --method generation."
            )
