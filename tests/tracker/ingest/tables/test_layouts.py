"""Tables with faulty readings in the past, ambiguous tables, and the options that state a layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracker.errors import BadInputError
from tracker.ingest.measurement import ParsedFile, ReadOptions, Scores, TaskScores
from tracker.ingest.parsing.detection import find_files, parse_file


def read(folder: Path, text: str, name: str = "table.csv", **options: Any) -> ParsedFile:
    path = folder / name
    path.write_text(text)
    return parse_file(path, ReadOptions(benchmark="b", **options))


def task_scores(parsed: ParsedFile) -> dict[str, dict[str, float]]:
    content: dict[str, dict[str, float]] = {}
    for block in parsed.measurements:
        assert isinstance(block, TaskScores)
        content.setdefault(block.run.model, {}).update(zip(block.tasks, block.values.tolist(), strict=True))
    return content


def error(folder: Path, text: str, name: str = "table.csv", **options: Any) -> str:
    with pytest.raises(BadInputError) as caught:
        read(folder, text, name, **options)
    return str(caught.value)


class TestLeaderboards:
    @pytest.mark.parametrize(
        "heading", ["", "name", "system", "Model/adapter", "Model ↓ [ sort ]", "method", "run", "LLM"]
    )
    def test_the_model_column_may_have_any_usual_name(self, tmp_path: Path, heading: str) -> None:
        content = task_scores(read(tmp_path, f"{heading},MMLU,GSM8K\norg/a,.71,.55\norg/b,.61,.65\n"))
        assert content == {"org/a": {"MMLU": 0.71, "GSM8K": 0.55}, "org/b": {"MMLU": 0.61, "GSM8K": 0.65}}

    @pytest.mark.parametrize("model", ["", "Model", "name"])
    def test_a_column_of_sizes_names_no_models(self, tmp_path: Path, model: str) -> None:
        parsed = read(tmp_path, f"{model},Params,ARC\nacorn-7b,7B,61.3%\n🥇 folio-72b,72B,70.1%\nkite,3B,60%\n")
        assert list(task_scores(parsed)) == ["acorn-7b", "folio-72b", "kite"]

    def test_percentages_are_scores_and_side_columns_are_details(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, "Model,MMLU,Params (B),Cost\nm-a,71.2%,7,0.5\nm-b,61%,13,2\n")
        assert task_scores(parsed) == {"m-a": {"MMLU": 71.2}, "m-b": {"MMLU": 61}}
        first = parsed.measurements[0]
        assert isinstance(first, TaskScores)
        assert first.run.model_facts == {"parameters": 7_000_000_000}
        assert first.run.settings == {"Params (B)": "7", "Cost": "0.5"}

    def test_percentages_are_fractions_under_a_metric_that_is_one(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, "Model,MMLU,ARC\nm-a,71.2% ± 1%,60%\nm-b,61%,50%\n", metric="accuracy")
        assert task_scores(parsed)["m-a"] == {"MMLU": 0.712, "ARC": 0.6}
        first = parsed.measurements[0]
        assert isinstance(first, TaskScores)
        assert first.stderr is not None
        np.testing.assert_allclose(first.stderr, [0.01, np.nan])

    def test_standard_errors_belong_to_the_column_that_they_name(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, "model,MMLU,MMLU stderr,ARC,ARC ±\nm-a,71,0.5,60,0.7\nm-b,61,0.4,50,0.6\n")
        first = parsed.measurements[0]
        assert isinstance(first, TaskScores)
        assert (first.tasks, first.stderr is not None and first.stderr.tolist()) == (["MMLU", "ARC"], [0.5, 0.7])

    def test_averages_in_rows_and_columns_are_skipped(self, tmp_path: Path) -> None:
        content = task_scores(read(tmp_path, "model,MMLU,ARC,Average\nm-a,70,60,65\nm-b,50,40,45\nMean,60,50,55\n"))
        assert content == {"m-a": {"MMLU": 70, "ARC": 60}, "m-b": {"MMLU": 50, "ARC": 40}}

    def test_columns_may_be_models_and_rows_tasks(self, tmp_path: Path) -> None:
        content = task_scores(read(tmp_path, "Benchmark,GPT-4,Claude 3\nMMLU,86,87\nGSM8K,92,95\n"))
        assert content == {"GPT-4": {"MMLU": 86, "GSM8K": 92}, "Claude 3": {"MMLU": 87, "GSM8K": 95}}

    def test_arrows_give_the_direction(self, tmp_path: Path) -> None:
        down = read(tmp_path, "model,MMLU error ↓,ARC error ↓\nm-a,30,40\nm-b,20,10\n").measurements[0]
        up = read(tmp_path, "model,MMLU ↑,ARC ↑\nm-a,30,40\nm-b,20,10\n").measurements[0]
        assert isinstance(down, TaskScores)
        assert isinstance(up, TaskScores)
        assert (down.metric.higher_is_better, up.metric.higher_is_better) == (False, True)
        assert up.tasks == ["MMLU", "ARC"]
        message = error(tmp_path, "model,MMLU ↑,ARC error ↓\nm-a,30,40\nm-b,20,10\n")
        assert "--task-columns '*↓*' --metric loss" in message
        assert "their sign were reversed" in error(tmp_path, "model,MMLU ↓,ARC ↓\nm-a,-30,-40\nm-b,-20,0\n")

    def test_columns_on_two_scales_are_an_error_that_bounds_resolve(self, tmp_path: Path) -> None:
        text = "model,MMLU,ARC\nm-a,.7,60\nm-b,.5,40\n"
        assert "scores in 0–1: 'MMLU'; with larger scores: 'ARC'" in error(tmp_path, text)
        assert task_scores(read(tmp_path, text, lower=0.0, upper=100.0))["m-a"] == {"MMLU": 0.7, "ARC": 60}
        assert "rows with scores in 0–1: 'm-a'" in error(tmp_path, "model,MMLU,ARC\nm-a,.7,.6\nm-b,50,40\n")

    def test_numbers_with_thousands_separators_but_not_with_decimal_commas(self, tmp_path: Path) -> None:
        assert task_scores(read(tmp_path, 'model,Elo\nm-a,"1,374"\nm-b,"1,250.5"\n'))["m-b"] == {"Elo": 1250.5}
        assert "write decimals with a point" in error(tmp_path, 'model,MMLU\nm-a,"0,374"\nm-b,"1,250"\n')

    def test_task_scores_have_one_split(self, tmp_path: Path) -> None:
        text = "model,split,MMLU,ARC\nm-a,test,70,60\nm-a,dev,50,40\n"
        assert "--split test" in error(tmp_path, text)
        assert task_scores(read(tmp_path, text, splits=("dev",))) == {"m-a": {"MMLU": 50, "ARC": 40}}

    @pytest.mark.parametrize(
        "heading",
        [
            "Overall Acc",
            "Average (5)",
            "Avg of 5",
            "Overall (no subtitles)",
            "**Average**",
            "平均分",
            "Average ⬆️",
        ],
    )
    def test_a_heading_of_an_average_is_no_task(self, tmp_path: Path, heading: str) -> None:
        text = f"Model,MMLU,{heading},GSM8K\norg/a,71.5,3,55\norg/b,61,4,65\n"
        assert set(task_scores(read(tmp_path, text))["org/a"]) == {"MMLU", "GSM8K"}
        kept = task_scores(read(tmp_path, text, task_columns=("MMLU", heading)))
        assert set(kept["org/a"]) == {"MMLU", heading.removesuffix(" ⬆️")}

    def test_an_average_of_some_columns_is_no_task(self, tmp_path: Path) -> None:
        rows = [[31.3 + 7 * n, 40.1 + 3 * n * n % 19, 55.7 - 2 * n, 22.9 + n] for n in range(8)]
        for row in rows:
            row.insert(2, (row[0] + row[1]) / 2)
        lines = [f"org/m{n},{','.join(f'{value:.3f}' for value in row)}" for n, row in enumerate(rows)]
        parsed = read(tmp_path, "\n".join(["Model,Algebra,Geometry,Maths_AVG,History,Law", *lines]) + "\n")
        assert set(task_scores(parsed)["org/m0"]) == {"Algebra", "Geometry", "History", "Law"}
        assert any(warning.startswith("skipped 'Maths_AVG': averages") for warning in parsed.warnings)

    def test_an_average_alone_is_the_score(self, tmp_path: Path) -> None:
        content = task_scores(read(tmp_path, "id,Model,Average,Notes\nr1,org/a,71.5,x\nr2,org/b,61,y\n"))
        assert content == {"org/a": {"Average": 71.5}, "org/b": {"Average": 61}}

    def test_rows_that_summarize_or_describe_tasks_are_no_models(self, tmp_path: Path) -> None:
        rows = ["Mean of all models", "Std. dev.", "Max", "# questions", "**Average**", "# shots"]
        text = "Model,MMLU,GSM8K\norg/a,71.5,55\norg/b,61,65\n" + "".join(f"{row},90,12\n" for row in rows)
        assert set(task_scores(read(tmp_path, text))) == {"org/a", "org/b"}

    def test_columns_with_units_or_counts_are_details(self, tmp_path: Path) -> None:
        sides = ("RTFx", "Speed (tok/s)", "Cost to run ($)", "Latency 95th Percentile (s)", "Blended USD/1M Tokens",
                 "Energy (kWh)", "Requests/min", "Timeouts", "Time to answer", "Total Passes", "CI low")  # fmt: skip
        row = ",".join(["40"] * len(sides))
        text = f"Model,MMLU,GSM8K,{','.join(sides)}\norg/a,71.5,55,{row}\norg/b,61,65,{row}\n"
        assert task_scores(read(tmp_path, text)) == {
            "org/a": {"MMLU": 71.5, "GSM8K": 55},
            "org/b": {"MMLU": 61, "GSM8K": 65},
        }

    @pytest.mark.parametrize("headings", ["AMI WER,LS Clean WER", "WikiText-2 ppl,C4 perplexity"])
    def test_metrics_in_headings_give_the_direction(self, tmp_path: Path, headings: str) -> None:
        first = read(tmp_path, f"Model,{headings}\norg/a,7.5,5.5\norg/b,6,6.5\n").measurements[0]
        assert isinstance(first, TaskScores)
        assert first.metric.higher_is_better is False
        mixed = error(tmp_path, "Model,MMLU acc,MMLU ECE\norg/a,.7,.1\norg/b,.6,.2\n")
        assert "smaller is better in 'MMLU ECE', larger in 'MMLU acc'" in mixed
        assert "--task-columns 'MMLU ECE' --metric loss" in mixed

    @pytest.mark.parametrize("cell", ["{} (0.3)", "{} [70.0, 80.0]", "{}/100", r"\textbf{{{}}}", "{} +1.2/-1.3", "'{}"])
    def test_a_column_of_scores_in_another_notation_is_an_error(self, tmp_path: Path, cell: str) -> None:
        rows = [("org/a", 71.5, 55), ("org/b", 61.2, 65)]
        text = "Model,MMLU,GSM8K,Kind\n" + "".join(f'{m},"{cell.format(x)}",{y},4-bit\n' for m, x, y in rows)
        message = error(tmp_path, text)
        assert "column 'MMLU' has" in message
        assert "or skip the column: --ignore-columns MMLU" in message
        assert task_scores(read(tmp_path, text, ignore_columns=("MMLU",)))["org/a"] == {"GSM8K": 55}
        assert "Write decimals with a point" in error(tmp_path, 'Model,MMLU,GSM8K\norg/a,"71,5",55\norg/b,"61,2",65\n')

    def test_counts_beside_percentages_are_an_error(self, tmp_path: Path) -> None:
        text = "Model,Pass,Solved\n" + "".join(f"org/m{n},{30 + n}.5%,{15 + n}\n" for n in range(4))
        assert "columns in percent: 'Pass'; with whole numbers: 'Solved'" in error(tmp_path, text)
        assert task_scores(read(tmp_path, text, lower=0.0, upper=100.0))["org/m0"] == {"Pass": 30.5, "Solved": 15}
        tasks = text.replace("Solved", "GSM8K")
        assert task_scores(read(tmp_path, tasks))["org/m0"] == {"Pass": 30.5, "GSM8K": 15}

    def test_rows_of_tasks_give_the_direction(self, tmp_path: Path) -> None:
        text = "Dataset,gpt-4,claude-3\nAMI WER,5,6\nLS ↓,7,8\n"
        first = read(tmp_path, text).measurements[0]
        assert isinstance(first, TaskScores)
        assert (first.metric.higher_is_better, list(first.tasks)) == (False, ["AMI WER", "LS"])
        mixed = error(tmp_path, "Dataset,gpt-4,claude-3\nAMI WER,5,6\nMMLU,70,80\n")
        assert "smaller is better in 'AMI WER', larger in 'MMLU'" in mixed

    def test_a_single_cell_on_another_scale_is_an_error(self, tmp_path: Path) -> None:
        text = "Model,MMLU,GSM8K\norg/a,71.5,55\norg/b,{},65\norg/c,68,50\n"
        assert "0.664 in the row 'org/b' stands among scores from 68" in error(tmp_path, text.format(0.664))
        assert "-1 stands for a missing score" in error(tmp_path, text.format(-1))
        assert task_scores(read(tmp_path, text.format(0.664), lower=0.0, upper=100.0))["org/b"]["MMLU"] == 0.664
        assert task_scores(read(tmp_path, text.format("—")))["org/b"]["GSM8K"] == 65

    def test_numbers_beyond_100_are_an_error_beside_negative_ones_too(self, tmp_path: Path) -> None:
        message = error(tmp_path, "Model,MMLU,GSM8K,Relevance\norg/a,71.5,55,-2\norg/b,61,65,3230.4\n")
        assert "with larger numbers: 'Relevance'" in message

    @pytest.mark.parametrize(
        "text",
        [
            "Model,Metric,FLEURS,AMI\norg/a,WER,2.0,15.9\norg/b,WER,1.5,13.9\n",
            "model,task,score\norg/a,fleurs_wer,2.0\norg/a,ami_wer,15.9\norg/b,fleurs_wer,1.5\norg/b,ami_wer,9\n",
            "Model,Average WER,FLEURS,AMI\norg/a,9.1,2.0,15.9\norg/b,7.7,1.5,13.9\n",
        ],
    )
    def test_metrics_in_cells_tasks_and_averages_give_the_direction(self, tmp_path: Path, text: str) -> None:
        metrics = [block.metric for block in read(tmp_path, text).measurements if isinstance(block, TaskScores)]
        assert {metric.higher_is_better for metric in metrics} == {False}

    def test_a_rating_with_a_thousands_point_is_an_error_that_bounds_resolve(self, tmp_path: Path) -> None:
        text = "Model,Elo\norg/a-7b,1.251\norg/b-7b,1.200\norg/c-7b,1.092\n"
        assert "1251 with a thousands point" in error(tmp_path, text)
        assert task_scores(read(tmp_path, text, lower=0, upper=2))["org/a-7b"] == {"Elo": 1.251}
        assert "1200 with a thousands point" in error(tmp_path, "Model,Score\norg/a-7b,1.200\norg/b-7b,987\n")
        content = task_scores(read(tmp_path, "Model,wikitext,ptb\norg/a,17.483,20.112\norg/b,11.770,13.812\n"))
        assert content["org/b"] == {"wikitext": 11.77, "ptb": 13.812}

    def test_a_summary_of_some_columns_is_no_task(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, "Model,AST Summary,Simple AST,Parallel AST,Recall\norg/a,88,92,81,75\norg/b,7,8,9,1\n")
        assert task_scores(parsed)["org/a"] == {"Simple AST": 92, "Parallel AST": 81, "Recall": 75}
        assert any("skipped averages: AST Summary" in text for text in parsed.warnings)

    def test_rows_that_describe_the_models_are_no_tasks(self, tmp_path: Path) -> None:
        text = "Task,org/a-7b,org/b-7b\nParameters,7,13\nRTFx,145,235\nAMI,15.9,13.9\nEarnings22,11.3,12.2\n"
        parsed = read(tmp_path, text)
        assert task_scores(parsed)["org/a-7b"] == {"AMI": 15.9, "Earnings22": 11.3}
        assert "skipped rows that describe the models: 'Parameters', 'RTFx'" in parsed.warnings
        assert {block.metric.higher_is_better for block in parsed.measurements if isinstance(block, TaskScores)} == {
            False
        }
        turned = "Model,RTFx,AMI,Earnings22\norg/a-7b,145,15.9,11.3\norg/b-7b,235,13.9,12.2\n"
        metrics = [block.metric for block in read(tmp_path, turned).measurements if isinstance(block, TaskScores)]
        assert {metric.higher_is_better for metric in metrics} == {False}

    def test_rows_of_settings_are_skipped(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, "Model,ARC,MMLU\n,25-shot,5-shot\norg/a-7b,45.3,14.2\norg/b-7b,62.5,37.8\n")
        assert task_scores(parsed) == {"org/a-7b": {"ARC": 45.3, "MMLU": 14.2}, "org/b-7b": {"ARC": 62.5, "MMLU": 37.8}}
        assert "skipped rows with settings instead of scores: line 2" in parsed.warnings
        text = "Model,ARC,MMLU\norg/a-7b,45.3 (25-shot),14.2 (5-shot)\norg/b-7b,62.5 (25-shot),37.8 (5-shot)\n"
        assert "'45.3 (25-shot)', which is not a number" in error(tmp_path, text)
        assert task_scores(read(tmp_path, "Task,Setting,org/a-7b,org/b-7b\nARC,25-shot,45,14\nMMLU,5-shot,62,37\n"))

    @pytest.mark.parametrize(("title", "n"), [("Results\n", 1), ("Results,,\n,,\n", 2), ("# 2024\n", 1)])
    def test_a_title_above_the_names_is_an_error_with_the_command_to_delete_it(
        self, tmp_path: Path, title: str, n: int
    ) -> None:
        message = error(tmp_path, f"{title}Model,ARC,MMLU\norg/a-7b,45.3,14.2\norg/b-7b,62.5,37.8\n")
        assert "begins with a title" in message
        assert f"tail -n +{n + 1}" in message

    def test_weights_of_a_regression_are_no_scores(self, tmp_path: Path) -> None:
        text = ",np.tanh(std_delta_len),instruction_difficulty\norg/a,-1.5,0.8\norg/b,-1.2,0.4\n"
        assert "holds weights of a regression" in error(tmp_path, text)


class TestManyColumns:
    def test_each_of_3000_columns_is_a_prompt(self, tmp_path: Path) -> None:
        names = [f"q{number}" for number in range(3000)]
        rows = [",".join([model, *("01"[(number + shift) % 3 == 0] for number in range(3000))])
                for shift, model in enumerate(("m-a", "m-b"))]  # fmt: skip
        first, second = read(tmp_path, "\n".join([",".join(["model", *names]), *rows])).measurements
        assert isinstance(first, Scores)
        assert first.prompts.keys == names
        assert first.prompts is second.prompts


class TestSingleScores:
    @pytest.mark.parametrize("heading", ["scenario", "dataset", "subset", "benchmark"])
    def test_the_task_column_may_have_any_usual_name(self, tmp_path: Path, heading: str) -> None:
        rows = [f"{model},{task},{value}" for value, (model, task) in enumerate((m, t) for m in "abc" for t in "wxyz")]
        content = task_scores(read(tmp_path, f"model,{heading},score\n" + "\n".join(rows)))
        assert content["b"] == {"w": 4, "x": 5, "y": 6, "z": 7}

    def test_json_lines_have_the_names_of_csv(self, tmp_path: Path) -> None:
        lines = '{"llm": "a", "question_id": 1, "value": 1, "mood": 2}\n{"llm": "b", "question_id": 1, "value": 0}\n'
        parsed = read(tmp_path, lines, "table.jsonl")
        first = parsed.measurements[0]
        assert isinstance(first, Scores)
        assert (first.run.model, first.values.tolist()) == ("a", [1])
        assert parsed.warnings == ["skipped unknown columns: mood"]

    def test_an_unknown_column_that_distinguishes_rows_needs_an_option(self, tmp_path: Path) -> None:
        text = "model,prompt_id,phase,score\na,1,x,1\na,1,y,0\nb,1,x,0\nb,1,y,0\n"
        assert "--map trial=phase" in error(tmp_path, text)

    def test_ids_of_rows_are_no_prompts(self, tmp_path: Path) -> None:
        rows = [(model, task, score) for model, score in (("org/a", 0.5), ("org/b", 0.7)) for task in ("GPQA", "MATH")]
        lines = [f"r{n},{task},{model},{score}" for n, (model, task, score) in enumerate(rows)]
        content = task_scores(read(tmp_path, "\n".join(["id,task,model,Best score", *lines]) + "\n"))
        assert content == {"org/a": {"GPQA": 0.5, "MATH": 0.5}, "org/b": {"GPQA": 0.7, "MATH": 0.7}}
        lines = [f"r{n},{model},{n % 2}" for n, model in enumerate(["org/a", "org/b"] * 3)]
        message = error(tmp_path, "\n".join(["id,model,score", *lines]) + "\n")
        assert "each 'id' is in one row, so no two models share a prompt" in message
        assert "--map prompt=id" in message

    def test_an_outcome_is_no_model(self, tmp_path: Path) -> None:
        text = "instance_id,match,job\n" + "".join(f"django__django-{n},{n % 2 == 0},j{n}\n" for n in range(14))
        assert "no column model: 'match' holds the scores of one model" in error(tmp_path, text)
        parsed = read(tmp_path, text, model="org/a", columns={"score": "match"})
        assert [block.run.model for block in parsed.measurements if isinstance(block, Scores)] == ["org/a"]

    def test_one_flag_of_each_model_is_no_prompt(self, tmp_path: Path) -> None:
        text = "model,distilled,notes\n" + "".join(f"org/model-{n}b,{n % 3 == 0},x y\n" for n in range(30))
        assert "unclear what the rows and columns are" in error(tmp_path, text)


class TestErrors:
    @pytest.mark.parametrize(
        "text",
        [
            "model_a,model_b,winner\nx,y,model_a\n",
            "left,right,winner\nx,y,left\n",
            "id,model_x,model_y,winner\n1,2,3,tie\n",
        ],
    )
    def test_votes_are_rejected_in_files_and_folders(self, tmp_path: Path, text: str) -> None:
        message = error(tmp_path, text)
        assert "pairwise votes" in message
        assert find_files([tmp_path]) == [tmp_path / "table.csv"]

    def test_a_row_without_a_model_is_reported_once(self, tmp_path: Path) -> None:
        message = error(tmp_path, "Model,MMLU,GSM8K\norg/a,71,55\n,61,65\norg/b,62,66\n")
        assert message.count("line 3, column 'Model': the model has no name") == 1

    def test_an_ambiguous_table_has_a_command_for_each_reading(self, tmp_path: Path) -> None:
        message = error(tmp_path, "whatever,x,y\nfoo,.71,.55\nbar,.61,.65\n")
        assert message.count("suffrage ingest") >= 2
        assert message.count("rows are") >= 2

    def test_prompts_with_columns_like_scores_are_rejected(self, tmp_path: Path) -> None:
        text = "id,question,answer,human_score\n1,Why?,A,.5\n2,How?,B,.75\n"
        assert "'human_score' may hold scores" in error(tmp_path, text)
        assert read(tmp_path, text, ignore_columns=("human*",)).format == "prompt-table"

    def test_an_option_that_names_a_missing_column_lists_the_columns(self, tmp_path: Path) -> None:
        text = "name,MMLU,ARC\nm-a,.7,.6\n"
        message = error(tmp_path, text, columns={"model": "nmae"})
        assert "no such column. Did you mean 'name'? Columns: name, MMLU, ARC." in message
        assert "unknown field. Choose from: model" in error(tmp_path, text, columns={"modle": "name"})
        assert "--ignore-columns 'X*': no such column" in error(tmp_path, text, ignore_columns=("X*",))


class TestOptions:
    def test_columns_may_be_chosen(self, tmp_path: Path) -> None:
        text = "who,extra,MMLU,ARC\nfoo,1,.7,.6\nbar,2,.5,.4\n"
        options = {"columns": {"model": "who"}, "task_columns": ("M*", "ARC")}
        assert task_scores(read(tmp_path, text, **options))["foo"] == {"MMLU": 0.7, "ARC": 0.6}

    def test_the_reading_is_described(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, "Model,MMLU,ARC,Params,Average\nm-a,.7,.6,7B,.65\nm-b,.5,.4,8B,.45\n")
        assert parsed.reading == (
            "each row is a model (column Model); tasks = MMLU, ARC; details = Params; skipped = Average"
        )
