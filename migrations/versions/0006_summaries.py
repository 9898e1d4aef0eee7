"""Store the summary of a finding as headline, evidence and caveats, with its warnings; reword comments.

The summary of an earlier finding becomes a headline, its first sentence, and evidence, the rest.
Going back, the parts are joined; the warnings are lost.
"""

import re

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
COLUMNS = (
    ("headline", sa.String(), "the result in one sentence; null where it failed"),
    ("evidence", JSON, "list of sentences with the numbers behind the headline"),
    ("caveats", JSON, "list of sentences on what limits the headline"),
    ("warnings", JSON, "list of further warnings about the data and the method"),
)
STATUSES = "complete, partial (its file was damaged, or its evaluation has not finished), hidden or superseded"
COMMENTS = (
    (
        "source",
        None,
        "A file, or the files of one run, as taken in",
        "An ingested file, or the ingested files of one run",
    ),
    ("source", "path", "name of the file when it was taken in", "name of the file when it was ingested"),
    ("source", "ingested", "when it was taken in, UTC", "when it was ingested, UTC"),
    ("run", "benchmark_id", "what was asked", "the benchmark that the model was evaluated on"),
    ("run", "model_id", "who answered", "the model that was evaluated"),
    (
        "run",
        "variant",
        "wording or perturbation of the prompts; '' is the plain one",
        "variant or perturbation of the prompts; '' is the plain one",
    ),
    (
        "run",
        "few_shot",
        "worked examples before each question; null where unknown or mixed",
        "few-shot examples before each question; null where unknown or mixed",
    ),
    (
        "run",
        "limited",
        "whether only a part of the benchmark was asked on purpose",
        "whether the evaluation was limited to a part of the benchmark on purpose",
    ),
    (
        "run",
        "status",
        f"{STATUSES}; the last three are taken only by key",
        f"{STATUSES}; the last three are selected only by key",
    ),
    (
        "run",
        "superseded_by",
        "the run that took its place; null where none did",
        "the run that replaced it; null where none did",
    ),
    ("run", "reason", "why it is not complete, as people said it", "why it is not complete, as text"),
    ("run", "ingested", "when it was taken in, UTC", "when it was ingested, UTC"),
    ("answer", None, "What a model said", "The answer extracted from a model's response"),
    (
        "answer",
        "extraction",
        "how the answer was read off; '' is the only or plain way",
        "how the answer was extracted; '' is the only or default method",
    ),
    (
        "prompt",
        "text",
        "the question as asked, without few-shot examples; null until known",
        "the question, without few-shot examples; null until known",
    ),
    (
        "prompt",
        "answer",
        "the gold answer: the text, or the letter of the option",
        "the reference answer: the text, or the letter of the option",
    ),
    ("benchmark", "name", "what people call it, such as mmlu_pro", "name, such as mmlu_pro"),
    (
        "task",
        "name",
        "what people call it, such as physics; '' holds prompts without a task",
        "name, such as physics; '' holds prompts without a task",
    ),
    ("model", "name", "what people call it, such as org/model-7b", "name, such as org/model-7b"),
    ("model", "organization", "who made it", "organization that made it"),
    (
        "prompt_alias",
        None,
        "What a harness or a family of files calls a prompt",
        "The key of a prompt in a harness or a family of files",
    ),
    (
        "prompt_alias",
        "namespace",
        "who calls it so: '' for tables, lm_eval, ...",
        "source of the key: '' for tables, lm_eval, ...",
    ),
    (
        "prompt_alias",
        "key",
        "the name, such as a row id or a document hash",
        "the key, such as a row id or a document hash",
    ),
    (
        "finding",
        "timings",
        "seconds spent to load, compute and record",
        "seconds spent to load, compute and draw figures",
    ),
    ("finding", "error", "what went wrong, where it failed", "the error message; null where it is complete"),
    ("finding_metric", "value", "the number; null where it is not given", "the number; null where it is undefined"),
    (
        "finding_metric",
        "reason",
        "why it is not given, such as: invariant under this null",
        "why it is undefined, such as: invariant under this null",
    ),
    ("encoder", None, "What turns a prompt's text into a vector", "A model that embeds the text of prompts"),
    ("encoder", "template", "which text of the prompt goes in", "which text of the prompt is embedded"),
    ("embedding", "encoder_id", "what made it", "the encoder that computed it"),
    ("filter_reason", None, "Why a filter singled a prompt out", "Why a filter flagged a prompt"),
    ("publication", None, "What was published where", "What was published to which MLflow store"),
)
"""Table, column (None: of the table itself), comment before and after. SQLite keeps none."""
FIRST_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def upgrade():
    for name, kind, comment in COLUMNS:
        op.add_column("finding", sa.Column(name, kind, nullable=True, comment=comment))
    finding = _finding_table()
    connection = op.get_bind()
    for key, summary in connection.execute(sa.select(finding.c.id, finding.c.summary)).all():
        if summary is not None:
            headline, *rest = FIRST_SENTENCE.split(summary, maxsplit=1)
            values = {"headline": headline, "evidence": rest, "caveats": [], "warnings": []}
            connection.execute(sa.update(finding).where(finding.c.id == key).values(values))
    op.drop_column("finding", "summary")
    op.execute("ALTER TABLE finding_metric RENAME COLUMN headline TO is_main")
    _change_comments({(table, column): after for table, column, _, after in COMMENTS})


def downgrade():
    _change_comments({(table, column): before for table, column, before, _ in COMMENTS})
    op.execute("ALTER TABLE finding_metric RENAME COLUMN is_main TO headline")
    op.add_column("finding", sa.Column("summary", sa.String(), nullable=True, comment="the answer in plain words"))
    finding = _finding_table()
    connection = op.get_bind()
    parts = sa.select(finding.c.id, finding.c.headline, finding.c.evidence, finding.c.caveats)
    for key, headline, evidence, caveats in connection.execute(parts).all():
        if headline is not None:
            summary = " ".join([headline, *(evidence or []), *(caveats or [])])
            connection.execute(sa.update(finding).where(finding.c.id == key).values(summary=summary))
    for name, _, _ in reversed(COLUMNS):
        op.drop_column("finding", name)


def _finding_table():
    return sa.table(
        "finding",
        sa.column("id", sa.Integer()),
        sa.column("summary", sa.String()),
        *(sa.column(name, kind) for name, kind, _ in COLUMNS),
    )


def _change_comments(comments):
    if op.get_bind().dialect.name == "sqlite":
        return
    for (table, column), comment in comments.items():
        subject = f"TABLE {table}" if column is None else f"COLUMN {table}.{column}"
        quoted = comment.replace("'", "''")
        op.get_bind().exec_driver_sql(f"COMMENT ON {subject} IS '{quoted}'")
