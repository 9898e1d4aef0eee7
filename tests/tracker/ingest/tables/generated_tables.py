"""Tables with known content, as people write them: orientations, names, notations, side columns, file types."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

MODELS = (
    """gpt-4o-2024-08-06|meta-llama/Llama-3.1-8B-Instruct|Qwen2.5-72B-Instruct|claude-3-5-sonnet-20241022
o1-preview|mistralai/Mixtral-8x7B-v0.1|command-r-plus|Yi-34B-Chat|phi-3-mini-4k|deepseek-coder-33b
Athene-70B|Magnum v4|OpenR1|Human|Our method|ERNIE 4.0|Snowflake Arctic|NV-Embed-v2|Cogito|Sky-T1
LLM360/K2|WizardLM-2 8x22B|Tiger|Bielik-11B|baseline|XLM-R|Nemotron-4 340B|StepFun-1|Falcon 180B|Aya 23
T0pp|Reka Core|solar-pro|QwQ-32B-Preview|Amazon Nova Pro|LFM-40B|Gemini 1.5 Pro
stabilityai/stablelm-2-12b|google/flan-t5-xxl|bigscience/bloomz-7b1|EleutherAI/pythia-12b|Random guess
text-davinci-003|KAT-V1|internlm2_5-20b-chat|THUDM/glm-4-9b|CohereForAI/aya-101|Orca 2 (13B)|PaLM 540B
Grok-2 mini|Hunyuan-Large|DCLM-7B|Sonar Huge
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
TASKS = """MMLU|MMLU-Pro|GSM8K|ARC-C|HellaSwag|TruthfulQA|Winogrande|HumanEval|MBPP|BBH|GPQA Diamond|IFEval|MATH-500
DROP|BoolQ|PIQA|Date Understanding|Penguins in a Table|Object Counting|Navigate|Ruin Names|Hyperbaton
Snarks|Causal Judgement|Code|Language|Tool use|Creative writing|Zebra puzzle|Spatial|Czech exams
JCommonsenseQA|COPA|CB|WiC|Sports|Ethics|Swahili|Irony|AIME 2024|Size Comparison|Time Awareness
Word Sorting|Cost Estimation|Dyck Languages|Geometric Shapes|mmlu_college_biology|high_school_physics
LiveCodeBench v5|SWE-bench Verified|MT-Bench|Toxicity|Calibration|Web of Lies|XSum|WMT22 de-en|FLORES-101
law|business
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
MODEL_HEADINGS = (
    "model", "Model", "", "name", "system", "Model/adapter", "Model ↓ [ sort ]", "model_name", "LLM", "method",
    "Models", "Model Name", "run", "Agent", "Unnamed: 0",
)  # fmt: skip
TASK_HEADINGS = ("task", "Benchmark", "Dataset", "scenario", "", "subset", "Eval", "Benchmark (Metric)")
PROMPT_HEADINGS = ("prompt_id", "id", "question_id", "", "item", "idx", "instance_id", "key")
SIDES: Sequence[tuple[str, Callable[[random.Random], str]]] = (
    ("Params (B)", lambda chance: str(chance.choice([7, 13, 70, 1.5, 405]))),
    ("#Params", lambda chance: chance.choice(["7B", "70B", "1.5T", "340M"])),
    ("Cost ($)", lambda chance: f"{chance.uniform(0.1, 30):.2f}"),
    ("Output $/M", lambda chance: f"${chance.uniform(0.1, 30):.2f}"),
    ("avg_tokens", lambda chance: str(chance.randint(100, 4000))),
    ("n_total", lambda chance: str(chance.choice([805, 1319]))),
    ("avg_length", lambda chance: f"{chance.uniform(500, 2500):,.0f}"),
    ("standard_error", lambda chance: f"{chance.uniform(0.1, 1.5):.2f}"),
    ("rating_q025", lambda chance: f"{chance.uniform(-20, -3):.1f}"),
    ("License", lambda chance: chance.choice(["MIT", "apache-2.0", "proprietary"])),
    ("Organization", lambda chance: chance.choice(["Meta", "OpenAI", "01.AI"])),
    ("Release Date", lambda chance: chance.choice(["2024-05-31", "2023-11-02"])),
    ("Year", lambda chance: chance.choice(["2022", "2023", "2024"])),
    ("Context length", lambda chance: chance.choice(["8192", "128000", "4096"])),
    ("Hub ❤️", lambda chance: f"{chance.randint(0, 9000):,}"),
    ("🏅", lambda chance: chance.choice(["🥇", "🥈", "🥉", ""])),
    ("95% CI", lambda chance: chance.choice(["+3/-4", "+5/-5"])),
    ("Latency (s)", lambda chance: f"{chance.uniform(0.1, 9):.2f}"),
    ("Precision", lambda chance: chance.choice(["bf16", "fp8"])),
    ("Votes", lambda chance: f"{chance.randint(500, 40000)}"),
)

Truth = dict[tuple[str, str, str], float]
"""Score of each model on each task or prompt; the first part is ``task`` or ``prompt``."""


@dataclass(frozen=True, kw_only=True)
class GeneratedTable:
    """A table and its content.

    Attributes:
        name: name of the file.
        data: its bytes.
        truth: what it holds.
        layout: what its rows are.
    """

    name: str
    data: bytes
    truth: Truth
    layout: str

    def write(self, folder: Path) -> Path:
        """Write the table, and return its path."""
        path = folder / self.name
        path.write_bytes(self.data)
        return path


class TableGenerator:
    """Draws tables.

    Args:
        seed: seed of the draws.
    """

    LAYOUTS = (
        ("leaderboard",) * 8 + ("tasks",) * 2 + ("prompts",) * 4 + ("models",) * 2 + ("long",) * 3 + ("scores",) * 3
    )

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def draw(self, number: int) -> GeneratedTable:
        """Return a table of a random layout."""
        layout = self.chance.choice(self.LAYOUTS)
        header, rows, truth = getattr(self, f"_draw_{layout}")()
        if self.chance.random() < 0.5 and not (header and header[0] in ("", "Unnamed: 0")):
            order = list(range(len(header)))
            self.chance.shuffle(order)
            header, rows = [header[place] for place in order], [[row[place] for place in order] for row in rows]
        return self._encode(number, layout, header, rows, truth)

    def _encode(
        self, number: int, layout: str, header: list[str], rows: list[list[str]], truth: Truth
    ) -> GeneratedTable:
        kinds = ["csv", "csv", "tsv", "semicolon", "parquet"] + ["jsonl"] * (2 if layout in ("long", "scores") else 0)
        kind = self.chance.choice(kinds)
        name = f"{number:03}_{layout}"
        if kind == "jsonl":
            lines = [json.dumps(dict(zip(header, map(_typed, row), strict=True)), ensure_ascii=False) for row in rows]
            return GeneratedTable(name=f"{name}.jsonl", data="\n".join(lines).encode(), truth=truth, layout=layout)
        if kind == "parquet":
            columns = {heading: pa.array(_column([row[place] for row in rows])) for place, heading in enumerate(header)}
            sink = pa.BufferOutputStream()
            pa.parquet.write_table(pa.table(columns), sink)
            return GeneratedTable(name=f"{name}.parquet", data=sink.getvalue().to_pybytes(), truth=truth, layout=layout)
        has_thousands = any("," in cell and cell.replace(",", "").isdigit() for row in rows for cell in row)
        mark = {"csv": ",", "tsv": "\t", "semicolon": "," if has_thousands else ";"}[kind]
        text = io.StringIO()
        csv.writer(text, delimiter=mark, lineterminator="\n").writerows([header, *rows])
        suffix = "tsv" if kind == "tsv" else "csv"
        return GeneratedTable(name=f"{name}.{suffix}", data=text.getvalue().encode(), truth=truth, layout=layout)

    def _names(self, names: Sequence[str], low: int, high: int) -> list[str]:
        return self.chance.sample(list(names), self.chance.randint(low, high))

    def _task_score(self, notation: str) -> tuple[str, float]:
        value = self.chance.uniform(12, 97)
        if notation == "fraction":
            return f"{value / 100:.3f}", float(f"{value / 100:.3f}")
        text = f"{value:.1f}"
        if notation == "percent":
            return f"{text}%", float(text)
        return (f"{text} ± {self.chance.uniform(0.1, 2):.1f}", float(text)) if notation == "±" else (text, float(text))

    def _draw_leaderboard(self) -> tuple[list[str], list[list[str]], Truth]:
        models, tasks = self._names(MODELS, 3, 30), self._names(TASKS, 2, 12)
        notation = self.chance.choice(["fraction", "plain", "plain", "percent", "±"])
        heading = self.chance.choice(MODEL_HEADINGS)
        sides = self.chance.sample(SIDES, self.chance.choice([0, 0, 1, 2, 3]))
        arrows = heading.endswith("[ sort ]") or self.chance.random() < 0.1
        header = [heading, *(f"{task} ↑ [ sort ]" if arrows else task for task in tasks), *(side for side, _ in sides)]
        has_average, has_rank = self.chance.random() < 0.3, self.chance.random() < 0.15
        rows, truth = [], {}
        for model in models:
            cells = [self._task_score(notation) for _ in tasks]
            truth |= {("task", model, task): value for task, (_, value) in zip(tasks, cells, strict=True)}
            row = [model, *(text for text, _ in cells), *(draw(self.chance) for _, draw in sides)]
            if has_average:
                row.append(f"{sum(value for _, value in cells) / len(cells):.2f}")
            rows.append(row)
        header += [self.chance.choice(["Average", "avg", "Mean", "Overall"])] if has_average else []
        if has_rank:
            header, rows = ["Rank", *header], [[str(place), *row] for place, row in enumerate(rows, 1)]
        if self.chance.random() < 0.2:
            header, rows = self._add_columns_of_tasks(header, rows, tasks)
        if self.chance.random() < 0.15:
            rows.append([self.chance.choice(["Average", "Mean"]), *rows[0][1:]] if not has_rank else rows[-1])
        for row, model in zip(rows, models, strict=False):
            if self.chance.random() < 0.1:
                place = self.chance.randrange(len(tasks)) + (1 if has_rank else 0) + 1
                row[place] = self.chance.choice(["", "-", "N/A"])
                truth.pop(("task", model, tasks[place - 1 - (1 if has_rank else 0)]))
        if heading not in ("", "Unnamed: 0") and self.chance.random() < 0.15 and not has_rank:
            header, rows = ["", *header], [[str(place), *row] for place, row in enumerate(rows)]
        return header, rows, truth

    def _add_columns_of_tasks(
        self, header: list[str], rows: list[list[str]], tasks: Sequence[str]
    ) -> tuple[list[str], list[list[str]]]:
        """Add a column that describes each task's scores, such as ``MMLU stderr``."""
        suffix = self.chance.choice([" stderr", "_stderr", " tokens", " ±", " n", " (cost)"])
        added = [[f"{self.chance.uniform(0.1, 2):.2f}" for _ in tasks] for _ in rows]
        return [*header, *(f"{task}{suffix}" for task in tasks)], [
            [*row, *cells] for row, cells in zip(rows, added, strict=True)
        ]

    def _draw_tasks(self) -> tuple[list[str], list[list[str]], Truth]:
        models, tasks = self._names(MODELS, 2, 8), self._names(TASKS, 3, 15)
        notation = self.chance.choice(["fraction", "plain", "percent"])
        rows, truth = [], {}
        for task in tasks:
            cells = [self._task_score(notation) for _ in models]
            truth |= {("task", model, task): value for model, (_, value) in zip(models, cells, strict=True)}
            rows.append([task, *(text for text, _ in cells)])
        header = [self.chance.choice(TASK_HEADINGS), *models]
        if self.chance.random() < 0.3:
            extra, cells = self.chance.choice(
                [("# Shots", ["5", "0", "25"]), ("Type", ["knowledge", "reasoning"]), ("n", ["1319", "164"])]
            )
            header, rows = [*header, extra], [[*row, self.chance.choice(cells)] for row in rows]
        if self.chance.random() < 0.2:
            rows.append(["Average", *rows[0][1:]])
        return header, rows, truth

    def _prompt_names(self, n: int) -> list[str]:
        style = self.chance.randrange(8)
        start = self.chance.choice([0, 1, 1000])
        return [
            (
                f"q{start + number}", str(start + number), f"alpaca/{number:04}", f"HumanEval/{number}",
                f"{self.chance.getrandbits(64):016x}", f"mmlu_anatomy_{number:03}", f"item-{number}",
                f"What is the answer to puzzle number {number}?",
            )[style]
            for number in range(n)
        ]  # fmt: skip

    def _prompt_score(self, style: str) -> tuple[str, float]:
        value = self.chance.random() if style == "continuous" else float(self.chance.random() < 0.6)
        text = f"{value:.3f}" if style == "continuous" else str(int(value))
        return text, float(text)

    def _draw_prompts(self) -> tuple[list[str], list[list[str]], Truth]:
        models, prompts = self._names(MODELS, 2, 12), self._prompt_names(self.chance.choice([8, 40, 150]))
        style, has_task = self.chance.choice(["binary", "binary", "continuous"]), self.chance.random() < 0.3
        header = [self.chance.choice(PROMPT_HEADINGS), *models, *(["category"] if has_task else [])]
        rows, truth = [], {}
        for prompt in prompts:
            cells = [self._prompt_score(style) for _ in models]
            truth |= {("prompt", model, prompt): value for model, (_, value) in zip(models, cells, strict=True)}
            category = [self.chance.choice(["algebra", "law"])] if has_task else []
            rows.append([prompt, *(text for text, _ in cells), *category])
        extra = self.chance.choice(["", "", "difficulty", "question", "length", "answer", "split"])
        if extra == "question" and not header[0]:
            extra = ""  # an unnamed number beside a question counts the rows
        if extra:
            draws: dict[str, Callable[[int], str]] = {
                "difficulty": lambda number: self.chance.choice(["easy", "hard"]),
                "question": lambda number: f"Why does case {number} differ from the one before?",
                "length": lambda number: str(self.chance.randint(20, 900)),
                "answer": lambda number: self.chance.choice("ABCD"),
                "split": lambda number: "test",
            }
            header, rows = [*header, extra], [[*row, draws[extra](number)] for number, row in enumerate(rows)]
        return header, rows, truth

    def _draw_models(self) -> tuple[list[str], list[list[str]], Truth]:
        models, prompts = self._names(MODELS, 2, 12), self._prompt_names(self.chance.choice([12, 60]))
        style = self.chance.choice(["binary", "binary", "continuous"])
        rows, truth = [], {}
        for model in models:
            cells = [self._prompt_score(style) for _ in prompts]
            truth |= {("prompt", model, prompt): value for prompt, (_, value) in zip(prompts, cells, strict=True)}
            rows.append([model, *(text for text, _ in cells)])
        return [self.chance.choice(MODEL_HEADINGS), *prompts], rows, truth

    def _draw_long(self) -> tuple[list[str], list[list[str]], Truth]:
        models, tasks = self._names(MODELS, 2, 5), self._names(TASKS, 2, 4)
        prompts = self._prompt_names(10)
        model_heading = self.chance.choice(("model", "Model", "system", "LLM", "model_name", "name", "Model/adapter"))
        has_split = self.chance.random() < 0.3
        header = [
            model_heading,
            self.chance.choice(("scenario", "dataset", "subset", "task", "category", "section")),
            self.chance.choice(("prompt_id", "id", "question_id", "instance_id")),
            self.chance.choice(("score", "correct", "accuracy", "value", "is_correct")),
            *(["split"] if has_split else []),
        ]
        rows, truth = [], {}
        for model in models:
            for number, prompt in enumerate(prompts):
                text, value = self._prompt_score("binary")
                truth["prompt", model, prompt] = value
                rows.append([model, tasks[number % len(tasks)], prompt, text, *(["test"] if has_split else [])])
        extra = self.chance.choice(["", "", "latency", "tokens", "judge", "timestamp", "trial"])
        if extra:
            draws: dict[str, Callable[[], str]] = {
                "latency": lambda: f"{self.chance.uniform(0.1, 9):.2f}",
                "tokens": lambda: str(self.chance.randint(20, 900)),
                "judge": lambda: "gpt-4",
                "timestamp": lambda: "2024-05-31",
                "trial": lambda: "0",
            }
            header, rows = [*header, extra], [[*row, draws[extra]()] for row in rows]
        if self.chance.random() < 0.5:
            self.chance.shuffle(rows)
        return header, rows, truth

    def _draw_scores(self) -> tuple[list[str], list[list[str]], Truth]:
        models, tasks = self._names(MODELS, 2, 8), self._names(TASKS, 3, 8)
        notation = self.chance.choice(["fraction", "plain", "percent"])
        header = [
            self.chance.choice(("model", "Model", "system", "LLM", "model_name", "name", "contestant")),
            self.chance.choice(("scenario", "dataset", "subset", "task", "benchmark", "exam", "eval_name", "suite")),
            self.chance.choice(("score", "value", "accuracy", "result", "points")),
        ]
        rows, truth = [], {}
        for model in models:
            for task in tasks:
                text, value = self._task_score(notation)
                truth["task", model, task] = value
                rows.append([model, task, text])
        extra = self.chance.choice(["", "", "stderr", "n", "cost", "date", "metric"])
        if extra:
            draws: dict[str, Callable[[], str]] = {
                "stderr": lambda: f"{self.chance.uniform(0.1, 2):.2f}",
                "n": lambda: str(self.chance.choice([1319, 164])),
                "cost": lambda: f"{self.chance.uniform(0.1, 30):.2f}",
                "date": lambda: "2024-05-31",
                "metric": lambda: "points",
            }
            header, rows = [*header, extra], [[*row, draws[extra]()] for row in rows]
        if self.chance.random() < 0.5:
            self.chance.shuffle(rows)
        return header, rows, truth


def _typed(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def _column(cells: Sequence[str]) -> list[Any]:
    """Return a column of numbers if all cells are, else of texts."""
    try:
        return [float(cell) if "." in cell else int(cell) for cell in cells]
    except ValueError:
        return list(cells)
