"""Generate the responses of one batch of rows.

Rows with the same context read it once. Finished rows leave the batch when they are half of it: no prompt takes their
place, since the last digits of a response would then depend on what was stored before. The continuous batching of
transformers is not used for that reason; on a CPU it took 100 times as long for 8 prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracker.evaluating.local.decoding.generate import find_filler, generate, pad_rows
from tracker.evaluating.local.decoding.prefix_cache import PrefixCache, has_attention_layers
from tracker.evaluating.local.decoding.stop_strings import StopCriterion, find_ending_tokens
from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.sampling import GumbelSampler
from tracker.evaluating.local.tokenization import Ids
from tracker.evaluating.responses import Sampling


class Decoder:
    """Generates tokens after contexts.

    Args:
        model: generates the tokens.
        sampling: sampling options.
    """

    def __init__(self, model: LanguageModel, sampling: Sampling) -> None:
        self.model, self.sampling = model, sampling
        self.ends = find_ending_tokens(model.model, model.tokenizer, sampling.stop)
        self.filler = find_filler(model.tokenizer, self.ends)

    def decode(
        self, contexts: Sequence[Ids], streams: Sequence[int], *, prefix: PrefixCache | None = None, reuses: bool = True
    ) -> list[tuple[dict[str, Any], int]]:
        """Return text, reasoning and finish reason of each row, and the number of generated tokens.

        Args:
            contexts: tokens that each row reads.
            streams: key of each row's random stream.
            prefix: keys and values of a prefix of all contexts.
            reuses: whether the model's cache can be copied from row to row.
        """
        model, sampling = self.model, self.sampling
        inputs = self._read(contexts, prefix, reuses)
        n_read = 1 if model.is_encoder_decoder else inputs["input_ids"].shape[1]
        shrinks = reuses and not model.is_encoder_decoder
        criterion = StopCriterion(model.tokenizer, len(contexts), n_read, self.ends, sampling.stop, shrinks=shrinks)
        tokens: list[list[int]] = [[] for _ in contexts]
        while True:
            processors = []
            if sampling.temperature > 0:
                keys = [streams[row] for row in criterion.active]
                processors.append(GumbelSampler(keys, n_read, sampling.temperature, sampling.top_p))
            out = generate(
                model, filler=self.filler, ends=self.ends, logits_processor=processors, stopping_criteria=[criterion],
                max_new_tokens=sampling.max_tokens - len(tokens[criterion.active[0]]), **inputs,
            )  # fmt: skip
            for row, ids in zip(criterion.active, out.sequences[:, n_read:].tolist(), strict=True):
                tokens[row] = ids
            n_written = out.sequences.shape[1] - n_read
            places = criterion.drop_ended()
            if not places or n_written >= sampling.max_tokens or not has_attention_layers(out.past_key_values):
                break
            inputs = _keep_rows(inputs, out, places)
        return [criterion.answer(row, ids) for row, ids in enumerate(tokens)]

    def _read(self, contexts: Sequence[Ids], prefix: PrefixCache | None, reuses: bool) -> dict[str, Any]:
        """Return the inputs of the first call; contexts of several rows are computed once."""
        import torch

        model = self.model
        ids, mask = pad_rows(model, contexts, self.filler)
        inputs = {"input_ids": ids, "attention_mask": mask}
        distinct = list(dict.fromkeys(contexts))
        place = {context: at for at, context in enumerate(distinct)}
        repeats = torch.tensor([place[context] for context in contexts], device=model.device)
        is_repeated = (reuses or model.is_encoder_decoder) and len(distinct) < len(contexts)
        if model.is_encoder_decoder:
            return _encode_once(model, inputs, repeats, len(distinct)) if is_repeated else inputs
        width = ids.shape[1]
        if prefix is not None:
            rows = distinct if is_repeated else contexts
            inputs["past_key_values"] = prefix.expand([width - len(row) for row in rows])
        if is_repeated and width > 1:
            firsts = [contexts.index(context) for context in distinct]
            before = {"input_ids": ids[firsts, :-1], "attention_mask": mask[firsts, :-1]}
            cache = inputs.get("past_key_values")
            if cache is None or cache.get_seq_length() < width - 1:
                # rows that are padding up to the last column attend to it; what they cache stays masked
                more = {} if cache is None else {"past_key_values": cache}
                cache = generate(model, filler=self.filler, max_new_tokens=1, **before, **more).past_key_values
            cache.reorder_cache(repeats)
            inputs["past_key_values"] = cache
        return inputs


def _encode_once(model: LanguageModel, inputs: dict[str, Any], repeats: Any, n_distinct: int) -> dict[str, Any]:
    """Return inputs of an encoder-decoder whose encoder has read each context once."""
    import torch
    from transformers.modeling_outputs import BaseModelOutput

    firsts = [int((repeats == at).nonzero()[0]) for at in range(n_distinct)]
    with torch.inference_mode():
        encoded = model.model.get_encoder()(
            input_ids=inputs["input_ids"][firsts], attention_mask=inputs["attention_mask"][firsts]
        ).last_hidden_state
    return {
        "encoder_outputs": BaseModelOutput(last_hidden_state=encoded[repeats]),
        "attention_mask": inputs["attention_mask"],
    }


def _keep_rows(inputs: dict[str, Any], out: Any, places: Sequence[int]) -> dict[str, Any]:
    """Return the inputs with which the rows at some places go on."""
    import torch

    kept = torch.tensor(places, device=out.sequences.device)
    ids, cache = out.sequences[kept], out.past_key_values
    mask = inputs["attention_mask"][kept]
    written = mask.new_ones((len(places), ids.shape[1] - mask.shape[1]))
    cache.reorder_cache(kept)
    return {"input_ids": ids, "attention_mask": torch.cat([mask, written], dim=1), "past_key_values": cache}
