"""The log-probability of each option after its question, by a model in this process.

Questions are computed one behind another in one row, and what they begin with alike is computed once and kept.
Whether a model reads such rows as it reads each option by itself is tried on a row of copies of the shortest question;
one that does not is asked option by option.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.memory import halving, is_out_of_memory
from tracker.evaluating.local.packing import Group, groups, n_computed, packed
from tracker.evaluating.local.padded_rows import option_by_option
from tracker.evaluating.local.tokens import Context, Encoded, Ids, encoded, why_too_long
from tracker.evaluating.prompt_templates.rendered_prompt import Question
from tracker.evaluating.responses import Reply

TOKENS_TOGETHER = {"cpu": 512}
MANY_TOKENS_TOGETHER = 2_048
"""On an accelerator."""
TOLERANCE = {"float32": 1e-3, "float64": 1e-3, "bfloat16": 0.08, "float16": 0.02}
"""Of the log-probability of a token, by dtype: more than the order of summation alone moves it by. Of 30 kinds of small
models with random weights, those that read rows moved by 0.009 (bfloat16) and 0.001 (float16) at most, others by 0.1 at
least."""
TRIED = 64
"""Tokens of a context at most, where rows are tried."""
LONGEST_TRIED = 4_096
"""Tokens at most of the row on which a model is tried."""
WINDOWS = ("sliding_window", "attention_chunk_size", "window_size", "attention_window_size")
"""What configurations call the number of tokens before it that a token reads at most, in some of the layers."""


class OptionScorer:
    """Answers questions by comparing their options.

    Args:
        model: who answers.
        method: ``letters`` or ``loglikelihood``.
        chat: whether questions are put as turns of a conversation.
        batch_size: questions that are computed together; None for as many as are fast.
        isolated_labels: take for each label the last of its tokens alone, as the authors of SMART do.
        too_long: what becomes of prompts that do not fit: ``skip``, or ``cut`` at their beginning.
        told: called with a sentence where something is done otherwise than it was asked for.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        method: str,
        chat: bool = False,
        batch_size: int | None = None,
        isolated_labels: bool = False,
        too_long: str = "skip",
        told: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.model, self.method, self.chat, self.batch_size = model, method, chat, batch_size
        self.isolated_labels, self.too_long, self.told = isolated_labels, too_long, told
        self.budget = TOKENS_TOGETHER.get(str(model.device).split(":")[0], MANY_TOKENS_TOGETHER)
        self._asked: Sequence[Question] | None = None
        self._encoded: list[Encoded] = []

    def encode(self, questions: Sequence[Question]) -> list[Encoded]:
        """The questions as tokens, in their order; the same questions are encoded once.

        Raises:
            SelectionError: the tokenizer writes several labels alike.
        """
        if questions is not self._asked:
            self._encoded = encoded(
                self.model,
                questions,
                chat=self.chat,
                isolated_labels=self.isolated_labels,
                must_differ=self.method == "letters",
            )
            self._asked = questions
            if self.method == "letters":
                self._tell_of_beginnings()
        return self._encoded

    def _tell_of_beginnings(self) -> None:
        """A label whose tokens begin with those of another is never likelier than that one."""
        begun = [said for one in self._encoded if (said := _beginning(one)) is not None]
        if begun:
            one, other = begun[0]
            self.told(
                f"in {len(begun):,} prompts a label begins like another one, {other!r} like {one!r}, and can never be "
                "the likelier of the two: use other labels (--labels letters), or --method loglikelihood with texts"
            )

    def contexts(self, questions: Sequence[Question]) -> list[Context]:
        """What the model reads of each; worked examples are left out until question and options fit."""
        return [one.context for one in self.encode(questions)]

    def n_tokens(self, questions: Sequence[Question]) -> list[int]:
        """Tokens of each, with its examples and options."""
        return [n_computed(one, 0) for one in self.encode(questions)]

    def replies(self, questions: Sequence[Question], stored: Callable[[int], bool]) -> Iterator[list[Reply]]:
        """As `tracker.evaluating.responses.Answerer` says."""
        every = self.encode(questions)
        if self.too_long == "cut":
            every = [one.cut() for one in every]
        fits = [one for one in every if not one.context.n_over]
        late = [_too_long(one, self.model) for one in every if one.context.n_over]
        if unsaid := [reply for reply in late if not stored(reply.prompt_id)]:
            yield unsaid
        if fits:
            yield from self._together(fits, stored) if self._reads_rows(fits) else self._apart(fits, stored)

    def _together(self, every: Sequence[Encoded], stored: Callable[[int], bool]) -> Iterator[list[Reply]]:
        for group in groups(every, batch_size=self.batch_size, budget=self.budget):
            yield from self._of_group(group, every, stored)

    def _of_group(self, group: Group, every: Sequence[Encoded], stored: Callable[[int], bool]) -> Iterator[list[Reply]]:
        rows: _Rows | None = None
        for pack in group.packs:
            members = [every[at] for at in pack]
            if all(stored(member.question.prompt_id) for member in members):
                continue
            rows = rows or _Rows(self.model, group.prefix)
            for found in halving(rows.logprobs, members, self._smaller):
                yield [self._reply(one, numbers) for one, numbers in found]

    def _apart(self, every: Sequence[Encoded], stored: Callable[[int], bool]) -> Iterator[list[Reply]]:
        def scored(members: Sequence[Encoded]) -> list[tuple[Encoded, NDArray[np.float64]]]:
            return list(zip(members, option_by_option(self.model, members), strict=True))

        for group in groups(every, batch_size=self.batch_size, budget=self.budget):
            for pack in group.packs:
                members = [every[at] for at in pack]
                if not all(stored(member.question.prompt_id) for member in members):
                    for found in halving(scored, members, self._smaller):
                        yield [self._reply(one, numbers) for one, numbers in found]

    def _reads_rows(self, every: Sequence[Encoded]) -> bool:
        """Whether the model gives the same numbers for questions in one row as for each option by itself."""
        if self.model.is_encoder_decoder:
            return False
        longest = max(one.length for one in every)
        window = _window(self.model.model.config)
        if window is not None and longest >= window:
            self.told(
                f"{self.model.name} reads a window of {window:,} tokens, less than the longest prompt has: "
                "asked option by option, which is slower"
            )
            return False
        short = min(every, key=lambda one: one.length).shortened(TRIED)
        if not self._misread(short, min(self.budget + longest, LONGEST_TRIED)) <= 1:
            self.told(
                f"{self.model.name} cannot read several questions in one row: asked option by option, which is slower"
            )
            return False
        return True

    def _misread(self, short: Encoded, n_tokens: int) -> float:
        """How far off a question is in a row of many, 1 being as far as may be; infinite where there can be no rows.

        The row is filled with copies, because models that count a window or positions along the row go wrong only far
        from its beginning.
        """
        prefix = short.context.ids[: len(short.context.ids) // 2]
        n_copies = max(2, n_tokens // n_computed(short, len(prefix)))
        by_itself = option_by_option(self.model, [short])[0]
        n_summed = np.sqrt([len(option) for option in short.options])  # rounding adds up like a random walk
        far = 0.0
        try:
            for found in halving(_Rows(self.model, prefix).logprobs, [short] * n_copies):
                far = max(far, *(float(np.sqrt((((n - by_itself) / n_summed) ** 2).mean())) for _, n in found))
        except (
            TypeError,
            ValueError,
            RuntimeError,
            AttributeError,
            KeyError,
            IndexError,
            NotImplementedError,
        ) as error:
            if is_out_of_memory(error):
                raise
            return np.inf
        return far / TOLERANCE.get(self.model.dtype, TOLERANCE["bfloat16"])

    def _reply(self, one: Encoded, logprobs: NDArray[np.float64]) -> Reply:
        return Reply(
            prompt_id=one.question.prompt_id,
            logprobs=logprobs,
            n_shots=one.context.n_shots,
            n_tokens_read=n_computed(one, 0),
        )

    def _smaller(self, n: int) -> None:
        self.told(f"memory was too small; going on with {n} prompts together")


class _Rows:
    """Rows of questions after a beginning that is computed once.

    Args:
        model: who reads.
        prefix: tokens of the beginning; none where there is none.
    """

    def __init__(self, model: LanguageModel, prefix: Ids) -> None:
        self.model, self.n_prefix = model, len(prefix)
        self.keeps = "logits_to_keep" in inspect.signature(model.model.forward).parameters
        self.cache: Any = None
        if prefix:
            import torch

            with torch.inference_mode():
                ids = torch.tensor([prefix], device=model.device)
                one = {"logits_to_keep": 1} if self.keeps else {}
                self.cache = model.model(input_ids=ids, use_cache=True, **one).past_key_values

    def logprobs(self, members: Sequence[Encoded]) -> list[tuple[Encoded, NDArray[np.float64]]]:
        """Log-probabilities of the options of each question, ``(n_options,)`` each."""
        import torch

        row = packed(members, self.n_prefix)
        device = self.model.device
        places, back = np.unique(row.predictors, return_inverse=True)
        wanted = torch.from_numpy(places).to(device)
        kind = self.model.model.dtype
        allowed = torch.from_numpy(row.may_read(self.n_prefix)).to(device)
        mask = torch.zeros(allowed.shape, dtype=kind, device=device).masked_fill_(~allowed, torch.finfo(kind).min)
        with torch.inference_mode():
            out = self.model.model(
                input_ids=torch.from_numpy(row.ids)[None].to(device),
                position_ids=torch.from_numpy(row.positions)[None].to(device),
                attention_mask=mask[None, None],
                past_key_values=_again(self.cache),
                use_cache=self.cache is not None,
                **({"logits_to_keep": wanted} if self.keeps else {}),
            )
            logits = out.logits[0] if self.keeps else out.logits[0, wanted]
            logits = logits.float()
            at = torch.from_numpy(back).to(device)
            targets = torch.from_numpy(row.targets).to(device)
            found = logits[at, targets] - logits.logsumexp(dim=-1)[at]
        return list(zip(members, row.summed(found.double().cpu().numpy()), strict=True))


def _beginning(one: Encoded) -> tuple[str, str] | None:
    """Two labels, the tokens of the second of which begin with all of the first's."""
    for short, before in zip(one.question.options, one.options, strict=True):
        for long, ids in zip(one.question.options, one.options, strict=True):
            if len(before) < len(ids) and ids[: len(before)] == before:
                return short, long
    return None


def _window(config: Any) -> int | None:
    """How many tokens a token reads at most, in some of the layers; None where it reads all."""
    text = config.get_text_config()
    sizes = [getattr(text, name, None) for name in WINDOWS]
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None) or {}
    if isinstance(rope, Mapping) and rope.get("rope_type", rope.get("type")) in ("longrope", "dynamic"):
        # beyond that length all positions are read otherwise, and the length that counts is the row's
        usual = getattr(text, "original_max_position_embeddings", None) or text.max_position_embeddings
        sizes.append(rope.get("original_max_position_embeddings") or usual)
    return min((size for size in sizes if isinstance(size, int) and size > 0), default=None)


def _again(cache: Any) -> Any:
    """The keys and values of a beginning for one more reader: what is added to them makes new ones."""
    import copy

    if cache is None:
        return None
    other = copy.copy(cache)
    other.layers = [copy.copy(layer) for layer in cache.layers]
    return other


def _too_long(one: Encoded, model: LanguageModel) -> Reply:
    why = why_too_long(model, one.context)
    return Reply(prompt_id=one.question.prompt_id, n_shots=one.context.n_shots, error=why, is_too_long=True)
