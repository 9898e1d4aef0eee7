"""Marks of published tables: titles of groups, medals, links, underlines, line breaks, and side columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracker.errors import BadInputError
from tracker.ingest.measurement import ParsedFile, ReadOptions, TaskScores
from tracker.ingest.parsing.detection import parse_file


def read(folder: Path, text: str) -> tuple[ParsedFile, dict[str, dict[str, float]]]:
    path = folder / "table.csv"
    path.write_text(text)
    parsed = parse_file(path, ReadOptions(benchmark="b"))
    blocks = [block for block in parsed.measurements if isinstance(block, TaskScores)]
    return parsed, {block.run.model: dict(zip(block.tasks, block.values.tolist(), strict=True)) for block in blocks}


def test_titles_of_groups_are_no_models(tmp_path: Path) -> None:
    text = "Model,4K,8K\n**Open models**,,\norg/a,71.2,60.1\n**Llama 70B**,,\n- w/o CoT,50.3,40.2\n- w/ CoT,55.1,47.5\n"
    parsed, content = read(tmp_path, text)
    assert content == {
        "org/a": {"4K": 71.2, "8K": 60.1},
        "Llama 70B w/o CoT": {"4K": 50.3, "8K": 40.2},
        "Llama 70B w/ CoT": {"4K": 55.1, "8K": 47.5},
    }
    assert "skipped rows without scores: '**Open models**', '**Llama 70B**'" in parsed.warnings


def test_medals_links_underlines_and_line_breaks_are_marks(tmp_path: Path) -> None:
    lines = [
        "排名,模型,机构,OPEN<br/>多轮",
        "-,[甲](https://x.org/a_(b)) (7B),CLUE,<ins>89.5</ins>",
        "🏅️,乙,360,**88.1**",
        "🥈,丙,百度,80.2",
        "3,丁,阿里,79.4",
        "4,戊,腾讯,<b>70.0</b>",
    ]
    parsed, content = read(tmp_path, "\n".join(lines) + "\n")
    values = {model: scores["OPEN 多轮"] for model, scores in content.items()}
    assert values == {"甲 (7B)": 89.5, "乙": 88.1, "丙": 80.2, "丁": 79.4, "戊": 70.0}
    first = parsed.measurements[1]
    assert isinstance(first, TaskScores)
    assert first.run.settings == {"排名": "🏅️", "机构": "360"}


def test_a_column_of_texts_may_hold_a_number(tmp_path: Path) -> None:
    lines = ["Model,Made by,Reading", "org/a,360,50.1", "org/b,Acme,61.2", "org/c,Zeta,70.3", "org/d,Umbra,42.4"]
    parsed, content = read(tmp_path, "\n".join(lines) + "\n")
    assert content["org/a"] == {"Reading": 50.1}
    assert "stored as details of the models, not as tasks: Made by" in parsed.warnings
    with pytest.raises(BadInputError, match="column 'Logic': 'failed' is not a number"):
        read(tmp_path, "Model,Reading,Logic\norg/a,50.1,failed\norg/b,60.2,failed\norg/c,70.3,45.1\n")


@pytest.mark.parametrize("heading", ["image_gflops", "mparams", "infer_img_size", "embed_dim", "crop_pct"])
def test_sizes_and_operations_are_details(tmp_path: Path, heading: str) -> None:
    _, content = read(tmp_path, f"model,{heading},Reading\norg/a,224,50.1\norg/b,384,61.2\norg/c,512,70.3\n")
    assert content["org/b"] == {"Reading": 61.2}


def test_models_of_one_name_are_distinguished_by_a_side_column(tmp_path: Path) -> None:
    lines = [
        "Model,Params (B),Tuned,Reading,Logic",
        "Llama,7,web,40.1,3.5",
        "Llama,13,web,50.2,9.1",
        "**Kite**,7,,45.3,8.2",
    ]
    parsed, content = read(tmp_path, "\n".join(lines) + "\n")
    assert {model: scores["Reading"] for model, scores in content.items()} == {
        "Llama (7B)": 40.1,
        "Llama (13B)": 50.2,
        "Kite": 45.3,
    }
    assert any(
        "'Params (B)' distinguishes these models: 'Llama (7B)', 'Llama (13B)'" in text for text in parsed.warnings
    )
    dated = [line.replace(",7,web", ",7,2024-01-02").replace(",13,web", ",7,2024-03-04") for line in lines]
    _, content = read(tmp_path, "\n".join(dated) + "\n")
    assert list(content) == ["Llama", "Kite"]


def test_models_below_a_cell_that_spans_rows_are_distinguished_by_it(tmp_path: Path) -> None:
    lines = [
        "Method,Model,Reading,Logic",
        "ReAct,gpt-4,53.5,50.1",
        ",claude-2,5.5,3.5",
        "DFS,gpt-4,60.1,71.5",
        ",claude-2,20.5,31.2",
    ]
    _, content = read(tmp_path, "\n".join(lines) + "\n")
    assert list(content) == ["gpt-4 (ReAct)", "claude-2 (ReAct)", "gpt-4 (DFS)", "claude-2 (DFS)"]


def test_a_score_that_is_named_like_an_average_is_stored_with_a_warning(tmp_path: Path) -> None:
    parsed, content = read(tmp_path, "model,AVG_mtbench,Reading\norg/a,71.25,28.75\norg/b,60.5,39.5\n")
    assert content["org/b"] == {"AVG_mtbench": 60.5, "Reading": 39.5}
    assert any("stored 'AVG_mtbench': named like averages" in text for text in parsed.warnings)


def test_errors_beside_accuracies_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="smaller is better in 'top1_err', larger in 'top1'"):
        read(tmp_path, "model,top1,top1_err\norg/a,71.25,28.75\norg/b,60.5,39.5\n")
