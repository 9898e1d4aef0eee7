"""Write what a filter keeps as a file for other programs, or for a human to review."""

from __future__ import annotations

from pathlib import Path

import click

from tracker.cli.exports.destination import force_option, output_option, say_all, spreadsheet_option, told_format
from tracker.cli.options import database_option
from tracker.cli.output import inform


@click.command("filter")
@click.argument("key", metavar="ID", type=int)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["lm-eval", "csv", "parquet", "jsonl"]),
    help="What to write; else told from the name of the file, else csv.",
)
@output_option
@force_option
@spreadsheet_option
@click.option(
    "--number-by-order",
    is_flag=True,
    help="lm-eval: where numbers of documents are not known, count each task's prompts from 0 in the order in which "
    "they were taken in. That this is the harness's order is for you to know.",
)
@click.option(
    "--review",
    "n_review",
    type=click.IntRange(min=1),
    metavar="N",
    help="Instead of the kept prompts: up to N for each reason, drawn at random, to be read and judged.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the draw for --review.")
@database_option
def command(
    key: int,
    file_format: str | None,
    output: Path | None,
    force: bool,
    for_spreadsheets: bool,
    number_by_order: bool,
    n_review: int | None,
    seed: int,
    database: str | None,
) -> None:
    """Write the prompts that the filter of finding ID keeps. IDs: `suffrage analyses`.

    csv, jsonl and parquet hold name, task, text, choices, gold answer and split of each prompt, with the reasons for
    which it was singled out though it stays. lm-eval is the file that lm-evaluation-harness takes as --samples. With
    --review 100 the prompts that were singled out are sampled instead, with empty columns for a verdict.
    """
    told = told_format(file_format, output, for_spreadsheets=for_spreadsheets, json="lm-eval")
    if n_review is not None and told == "lm-eval":
        raise click.UsageError("--review is for people: choose --format csv, jsonl or parquet.")
    if number_by_order and told != "lm-eval":
        raise click.UsageError("--number-by-order belongs to --format lm-eval.")
    if output is not None:
        from tracker.exporting.table_files import check_output_path

        check_output_path(output, force=force)
    content, remarks = _content(key, told, number_by_order, n_review, seed, for_spreadsheets, database)
    say_all(remarks)
    if output is None:
        click.echo(content, nl=False)
        return
    from tracker.exporting.table_files import write_file

    write_file(output, content, force=force)
    inform(f"Wrote {output}.")


def _content(
    key: int,
    told: str,
    number_by_order: bool,
    n_review: int | None,
    seed: int,
    for_spreadsheets: bool,
    database: str | None,
) -> tuple[bytes, list[str]]:
    """What is to be written, and what the reader should be told."""
    import io

    from tracker.database import connect, transaction
    from tracker.exporting.formats.filtered_prompts import filtered_prompts
    from tracker.exporting.table_files import StreamedTable, write_rows

    with transaction(connect(database), write=False) as session:
        filtered = filtered_prompts(session, key)
    if told == "lm-eval":
        from tracker.exporting.formats.harness_samples import harness_samples

        samples = harness_samples(filtered, number_by_order=number_by_order)
        return samples.as_json(), [*filtered.warnings, *samples.remarks]
    if n_review is not None:
        from tracker.exporting.formats.review import review_sample

        table = review_sample(filtered, n_review, seed=seed)
        drawn = table["reason"].to_pylist()
        counts = [
            f"{drawn.count(step):,} of {len(reason.prompt_ids):,} {step}"
            for step, reason in filtered.filter.reasons.items()
        ]
        remarks = [f"Drawn for review: {', '.join(counts)}."]
    else:
        from tracker.exporting.formats.kept_prompts import kept_prompts

        table, remarks = kept_prompts(filtered), list(filtered.warnings)
    content = io.BytesIO()
    write_rows(content, StreamedTable.of(table), told, for_spreadsheets=for_spreadsheets)
    return content.getvalue(), remarks
