"""Option scoring and generation of a model of a billion parameters on a CUDA device, beside lm-evaluation-harness and
vLLM where they are installed.

The model is a Llama of random weights in bfloat16: time does not depend on what the weights are. Prompts are those of
`benchmarks.evaluation`. The rate of the device is measured in the same run, by products of large bfloat16 matrices.
The work is counted low: two operations per weight of the layers for each token that goes through the model. Attention
and the output layer are left out. Tokenising is measured apart, for Suffrage and for the peers; only the harness's
generation tokenises in its measured time. Of several batch sizes, the peer's fastest on its first prompts is measured.
Peak memory is that of the device.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks._device_costs import matrix_rate, seconds, seconds_and_peak
from benchmarks._gpu_peers import N_TRIED, Peer, generation_peers, option_peers
from benchmarks._peers import DeviceMissingError
from benchmarks._random_model import Shape, counted, random_model
from benchmarks.evaluation import N_EXAMPLES, Method, prompts
from tracker.evaluating.local.generation import TextGenerator
from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.option_scorer import OptionScorer
from tracker.evaluating.local.row_scorer import MaskRoute
from tracker.evaluating.local.tokens import EncodedPrompt
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Sampling

METHODS: tuple[Method, ...] = ("loglikelihood", "letters")
N_WARM = 64


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A model on a device, and the rate of the device.

    Attributes:
        label: begins the names of all rows.
        rate: operations a second of matrix products.
    """

    model: LanguageModel
    shape: Shape
    label: str
    rate: float

    @property
    def device(self) -> str:
        """The device of the model."""
        return self.model.device

    def work(self, n_tokens: int, spent: float) -> dict[str, float]:
        """Operations a second for tokens that went through the model, and their share of the rate of the device."""
        done = 2 * sum(p.numel() for p in self.model.model.model.layers.parameters()) * n_tokens / spent
        shares = {"teraflops": done / 1e12, "device_teraflops": self.rate / 1e12}
        return {**shares, "share_of_matrix_rate": done / self.rate}


class SizedScorer(OptionScorer):
    """Scores options in rows of a given number of tokens."""

    row_size: int | None = None

    def _choose_rows(self, encoded_prompts: Sequence[EncodedPrompt]) -> tuple[MaskRoute | None, int]:
        route, size = super()._choose_rows(encoded_prompts)
        return route, self.row_size or size


def measurements() -> Iterator[dict[str, Any]]:
    """One line per row of the table."""
    import torch

    if not torch.cuda.is_available():
        raise DeviceMissingError("CUDA")
    yield from measured("cuda:0", Shape(), torch.cuda.get_device_name(0))


def measured(device: str, shape: Shape, label: str) -> Iterator[dict[str, Any]]:
    """The same on any device."""
    model = random_model(device, shape)
    parameters = f"Llama of random weights, {model.n_parameters / 1e9:.2f} billion parameters, {model.dtype}"
    bench = Bench(model=model, shape=shape, label=f"{label}, {parameters}", rate=matrix_rate(device, shape.side))
    yield tokenising(bench)
    for method in METHODS:
        for fixed in (True, False):
            yield from option_scoring(bench, method, fixed)
    for size in shape.row_sizes:
        yield score(bench, prompts("loglikelihood", False, shape.n_prompts), "loglikelihood", row_size=size)
    yield from generation(bench)


def tokenising(bench: Bench) -> dict[str, Any]:
    """Rendered prompts to tokens, on the CPU."""
    rendered = prompts("loglikelihood", False, bench.shape.n_prompts)
    scorer = OptionScorer(bench.model, method="loglikelihood")
    spent = seconds("cpu", lambda: scorer.encode(rendered))
    n_tokens = sum(scorer.n_tokens(rendered))
    name = f"{bench.label}: tokenising {len(rendered):,} prompts with {N_EXAMPLES} varying examples"
    return {"name": name, "ours_s": spent, "tokens_per_s": n_tokens / spent}


def option_scoring(bench: Bench, method: Method, fixed: bool) -> Iterator[dict[str, Any]]:
    """Option scoring in rows as Suffrage chooses them, beside each peer."""
    rendered = prompts(method, fixed, bench.shape.n_prompts)
    row = score(bench, rendered, method, examples="fixed" if fixed else "varying")
    yield from beside(bench, row, fastest(bench, option_peers(bench.model, rendered)), len(rendered))


def score(
    bench: Bench,
    rendered: Sequence[RenderedPrompt],
    method: Method,
    *,
    examples: str = "varying",
    row_size: int | None = None,
) -> dict[str, Any]:
    """Time, tokens and memory of option scoring."""
    scorer = SizedScorer(bench.model, method=method)
    scorer.row_size = row_size
    respond_to(scorer, rendered[:N_WARM])
    n_read = sum(scorer.n_tokens(rendered))  # these tokens are kept: they are not made again
    with counted(bench.model) as count:
        spent, peak_mb = seconds_and_peak(bench.device, lambda: respond_to(scorer, rendered))
    rows = "" if row_size is None else f", rows of {row_size:,} tokens"
    return {
        "name": f"{bench.label}: {len(rendered):,} prompts by {method}, {N_EXAMPLES} {examples} examples{rows}",
        "ours_s": spent,
        "prompts_per_s": len(rendered) / spent,
        "tokens_read_per_s": n_read / spent,
        "tokens_computed_per_s": count.n_tokens / spent,
        "share_of_tokens_computed": count.n_tokens / n_read,
        "peak_mb": round(peak_mb),
        **bench.work(count.n_tokens, spent),
    }


def generation(bench: Bench) -> Iterator[dict[str, Any]]:
    """Greedy generation with fixed examples, beside each peer."""
    shape = bench.shape
    rendered = prompts("loglikelihood", True, shape.n_generated)
    generator = TextGenerator(bench.model, Sampling(max_tokens=shape.max_tokens))
    respond_to(generator, rendered[:N_WARM])
    n_read = sum(generator.n_tokens(rendered))
    with counted(bench.model) as count:
        spent, peak_mb = seconds_and_peak(bench.device, lambda: respond_to(generator, rendered))
    row = {
        "name": f"{bench.label}: generating {shape.max_tokens} tokens for {len(rendered):,} prompts, "
        f"{N_EXAMPLES} fixed examples",
        "ours_s": spent,
        "tokens_written_per_s": len(rendered) * shape.max_tokens / spent,
        "tokens_read_per_s": n_read / spent,
        "batch_size": generator.together,
        "peak_mb": round(peak_mb),
        **bench.work(count.n_tokens, spent),
    }
    peers = fastest(bench, generation_peers(bench.model, rendered, shape.max_tokens))
    yield from beside(bench, row, peers, len(rendered))


def respond_to(backend: OptionScorer | TextGenerator, rendered: Sequence[RenderedPrompt]) -> None:
    """Respond to all prompts.

    Raises:
        RuntimeError: a prompt has no response.
    """
    responses = [response for block in backend.respond(rendered, lambda _: False) for response in block]
    if len(responses) != len(rendered) or any(response.error for response in responses):
        raise RuntimeError(f"{len(responses)} responses to {len(rendered)} prompts")


def fastest(bench: Bench, peers: Iterator[Peer]) -> Iterator[Peer]:
    """Each peer with the fastest of its batch sizes on the first prompts; the name of a peer ends at its comma."""
    tried: dict[str, tuple[float, Peer]] = {}
    for peer in peers:
        name, work = peer
        family = name.partition(",")[0]
        spent = seconds(bench.device, lambda work=work: work(N_TRIED))
        if family == "vLLM":  # its files are there only now
            yield peer
        elif family not in tried or spent < tried[family][0]:
            tried[family] = (spent, peer)
    yield from (peer for _, peer in tried.values())


def beside(bench: Bench, row: dict[str, Any], peers: Iterator[Peer], n_prompts: int) -> Iterator[dict[str, Any]]:
    """The row beside each peer; alone if none is installed."""
    is_alone = True
    for name, work in peers:
        spent, peak_mb = seconds_and_peak(bench.device, lambda work=work: work(n_prompts))
        costs = {"peer": name, "peer_s": spent, "peer_peak_mb": round(peak_mb), "ratio": spent / row["ours_s"]}
        yield {**row, **costs}
        is_alone = False
    if is_alone:
        yield row


if __name__ == "__main__":
    for measurement in measurements():
        print(json.dumps(measurement), flush=True)
