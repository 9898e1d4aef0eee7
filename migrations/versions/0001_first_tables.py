"""First tables: catalogue, measurements, findings."""

import uuid
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

# On PostgreSQL a foreign key is checked row by row, which makes loading scores several times slower.
# The keys of score to prompt and metric are therefore checked once per statement. The parents found are
# locked as a foreign key would lock them; above READ COMMITTED a delete could not see the scores that
# others have just committed, so it is refused there.
TRIGGERS = [
    """
CREATE FUNCTION score_has_parents() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE orphan bigint;
BEGIN
    PERFORM 1 FROM prompt WHERE id IN (SELECT DISTINCT prompt_id FROM fresh) ORDER BY id FOR KEY SHARE;
    PERFORM 1 FROM metric WHERE id IN (SELECT DISTINCT metric_id FROM fresh) ORDER BY id FOR KEY SHARE;
    SELECT prompt_id INTO orphan FROM (SELECT DISTINCT prompt_id FROM fresh) AS f
        WHERE NOT EXISTS (SELECT 1 FROM prompt WHERE id = f.prompt_id) LIMIT 1;
    IF FOUND THEN
        RAISE foreign_key_violation USING MESSAGE = format('score refers to prompt %s, which does not exist', orphan);
    END IF;
    SELECT metric_id INTO orphan FROM (SELECT DISTINCT metric_id FROM fresh) AS f
        WHERE NOT EXISTS (SELECT 1 FROM metric WHERE id = f.metric_id) LIMIT 1;
    IF FOUND THEN
        RAISE foreign_key_violation USING MESSAGE = format('score refers to metric %s, which does not exist', orphan);
    END IF;
    RETURN NULL;
END $$
""",
    """
CREATE FUNCTION parent_has_no_scores() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE missing integer[]; child boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE feature_not_supported USING MESSAGE =
            format('delete from %I in a READ COMMITTED transaction', TG_TABLE_NAME);
    END IF;
    EXECUTE format('SELECT array_agg(id) FROM (SELECT id FROM gone EXCEPT SELECT id FROM %I) AS g', TG_TABLE_NAME)
        INTO missing;
    IF missing IS NOT NULL THEN
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM score WHERE %I = ANY ($1))', TG_TABLE_NAME || '_id')
            INTO child USING missing;
        IF child THEN
            RAISE foreign_key_violation USING MESSAGE = format('%I still has scores', TG_TABLE_NAME);
        END IF;
    END IF;
    RETURN NULL;
END $$
""",
    """
CREATE FUNCTION parent_is_not_truncated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM score) THEN
        RAISE foreign_key_violation USING MESSAGE = format('%I still has scores', TG_TABLE_NAME);
    END IF;
    RETURN NULL;
END $$
""",
    "CREATE TRIGGER score_inserted AFTER INSERT ON score REFERENCING NEW TABLE AS fresh "
    "FOR EACH STATEMENT EXECUTE FUNCTION score_has_parents()",
    "CREATE TRIGGER score_updated AFTER UPDATE ON score REFERENCING NEW TABLE AS fresh "
    "FOR EACH STATEMENT EXECUTE FUNCTION score_has_parents()",
    *(
        f"CREATE TRIGGER {table}_{done} AFTER {verb} ON {table} REFERENCING OLD TABLE AS gone "
        "FOR EACH STATEMENT EXECUTE FUNCTION parent_has_no_scores()"
        for table in ("prompt", "metric")
        for verb, done in (("DELETE", "deleted"), ("UPDATE", "updated"))
    ),
    *(
        f"CREATE TRIGGER {table}_truncated AFTER TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION parent_is_not_truncated()"
        for table in ("prompt", "metric")
    ),
]


def upgrade():
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    op.create_table(
        "benchmark",
        sa.Column("id", sa.Integer(), nullable=False, comment="key"),
        sa.Column("name", sa.String(), nullable=False, comment="what people call it, such as mmlu_pro"),
        sa.Column(
            "revision", sa.String(), nullable=False, comment="version of its content; '' where there is only one"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_benchmark")),
        sa.UniqueConstraint("name", "revision", name=op.f("uq_benchmark_name_revision")),
        comment="A collection of tasks",
    )
    op.create_table(
        "database",
        sa.Column("id", sa.String(), nullable=False, comment="UUID made when the store was created"),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False, comment="when the store was created, UTC"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_database")),
        comment="Identity of this store; one row",
    )
    op.create_table(
        "encoder",
        sa.Column("id", sa.Integer(), nullable=False, comment="key"),
        sa.Column("name", sa.String(), nullable=False, comment="such as all-MiniLM-L6-v2"),
        sa.Column("revision", sa.String(), nullable=False, comment="version of its weights; '' where unknown"),
        sa.Column("template", sa.String(), nullable=False, comment="which text of the prompt goes in"),
        sa.Column("dimensions", sa.Integer(), nullable=False, comment="length of its vectors"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_encoder")),
        sa.UniqueConstraint("name", "revision", "template", name=op.f("uq_encoder_name_revision_template")),
        comment="What turns a prompt's text into a vector",
    )
    op.create_table(
        "metric",
        sa.Column("id", sa.Integer(), nullable=False, comment="key"),
        sa.Column(
            "name", sa.String(), nullable=False, comment="such as accuracy; a filter of the harness is part of the name"
        ),
        sa.Column("higher_is_better", sa.Boolean(), nullable=False, comment="whether larger scores are better"),
        sa.Column("lower", sa.Double(), nullable=True, comment="smallest possible score; null where unbounded"),
        sa.Column("upper", sa.Double(), nullable=True, comment="largest possible score; null where unbounded"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_metric")),
        sa.UniqueConstraint("name", name=op.f("uq_metric_name")),
        comment="How answers are scored",
    )
    op.create_table(
        "model",
        sa.Column("id", sa.Integer(), nullable=False, comment="key"),
        sa.Column("name", sa.String(), nullable=False, comment="what people call it, such as org/model-7b"),
        sa.Column("organization", sa.String(), nullable=True, comment="who made it"),
        sa.Column("family", sa.String(), nullable=True, comment="models of common descent, such as llama-3"),
        sa.Column("parameters", sa.BigInteger(), nullable=True, comment="number of parameters"),
        sa.Column("released", sa.Date(), nullable=True, comment="day of its release"),
        sa.Column("open_weights", sa.Boolean(), nullable=True, comment="whether its weights can be downloaded"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model")),
        sa.UniqueConstraint("name", name=op.f("uq_model_name")),
        comment="A language model under test",
    )
    op.create_table(
        "publication",
        sa.Column("tracking_uri", sa.String(), nullable=False, comment="the MLflow store, without password"),
        sa.Column("kind", sa.String(), nullable=False, comment="analysis or run"),
        sa.Column("ref_id", sa.Integer(), nullable=False, comment="key of the analysis or run"),
        sa.Column("mlflow_run_id", sa.String(), nullable=False, comment="the MLflow run that shows it"),
        sa.Column(
            "version",
            sa.String(),
            nullable=False,
            comment="checksum of what was published; another one means it must be published anew",
        ),
        sa.Column("published", sa.DateTime(timezone=True), nullable=False, comment="when, UTC"),
        sa.CheckConstraint("kind IN ('analysis', 'run')", name=op.f("ck_publication_kind")),
        sa.PrimaryKeyConstraint("tracking_uri", "kind", "ref_id", name=op.f("pk_publication")),
        comment="What was published where",
    )
    op.create_table(
        "source",
        sa.Column("id", sa.Integer(), nullable=False, comment="key"),
        sa.Column(
            "identity", sa.String(), nullable=False, comment="SHA-256 of content and of the options it was read with"
        ),
        sa.Column("digest", sa.String(), nullable=False, comment="SHA-256 of the bytes on disk"),
        sa.Column("path", sa.String(), nullable=False, comment="name of the file when it was taken in"),
        sa.Column("format", sa.String(), nullable=False, comment="name of the format it was read as"),
        sa.Column("harness", sa.String(), nullable=True, comment="program and version that wrote it, where known"),
        sa.Column("ingested", sa.DateTime(timezone=True), nullable=False, comment="when it was taken in, UTC"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source")),
        sa.UniqueConstraint("identity", name=op.f("uq_source_identity")),
        comment="A file, or the files of one run, as taken in",
    )
    op.create_table(
        "analysis",
        sa.Column("id", sa.Integer(), nullable=False, comment="key; a larger one came later"),
        sa.Column("benchmark_id", sa.Integer(), nullable=True, comment="the benchmark it is about"),
        sa.Column("name", sa.String(), nullable=False, comment="which question, such as prompt-correlation"),
        sa.Column("parameters", JSON, nullable=False, comment="options it ran with, by name"),
        sa.Column(
            "selection", JSON, nullable=False, comment="which data it saw: metric, condition, runs, models, tasks"
        ),
        sa.Column(
            "seed", sa.BigInteger(), nullable=True, comment="seed of its random numbers; null where it draws none"
        ),
        sa.Column("input_digest", sa.String(), nullable=False, comment="SHA-256 of the data it saw"),
        sa.Column("code_version", sa.String(), nullable=False, comment="version of the code that ran"),
        sa.Column("filter_id", sa.Integer(), nullable=True, comment="the finding whose kept prompts it saw"),
        sa.Column("weights_id", sa.Integer(), nullable=True, comment="the finding whose prompt weights it used"),
        sa.Column("encoder_id", sa.Integer(), nullable=True, comment="whose vectors it used"),
        sa.Column("status", sa.String(), nullable=False, comment="complete or failed"),
        sa.Column("error", sa.String(), nullable=True, comment="what went wrong, where it failed"),
        sa.Column("summary", sa.String(), nullable=True, comment="the answer in plain words"),
        sa.Column("timings", JSON, nullable=True, comment="seconds spent to load, compute and record"),
        sa.Column("recorded", sa.DateTime(timezone=True), nullable=False, comment="when it was recorded, UTC"),
        sa.CheckConstraint("status IN ('complete', 'failed')", name=op.f("ck_analysis_status")),
        sa.ForeignKeyConstraint(["benchmark_id"], ["benchmark.id"], name=op.f("fk_analysis_benchmark_id_benchmark")),
        sa.ForeignKeyConstraint(["encoder_id"], ["encoder.id"], name=op.f("fk_analysis_encoder_id_encoder")),
        sa.ForeignKeyConstraint(["filter_id"], ["analysis.id"], name=op.f("fk_analysis_filter_id_analysis")),
        sa.ForeignKeyConstraint(["weights_id"], ["analysis.id"], name=op.f("fk_analysis_weights_id_analysis")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_analysis")),
        comment="One question asked of one selection of data",
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("analysis", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_analysis_benchmark_id"), ["benchmark_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_analysis_name"), ["name"], unique=False)

    op.create_table(
        "model_alias",
        sa.Column("name", sa.String(), nullable=False, comment="the other name"),
        sa.Column("model_id", sa.Integer(), nullable=False, comment="the model"),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name=op.f("fk_model_alias_model_id_model")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_model_alias")),
        comment="Another name of a model",
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer(), nullable=False, comment="key; a larger one came later"),
        sa.Column("benchmark_id", sa.Integer(), nullable=False, comment="what was asked"),
        sa.Column("model_id", sa.Integer(), nullable=False, comment="who answered"),
        sa.Column("condition", sa.String(), nullable=False, comment="full, or answer_only: the question was withheld"),
        sa.Column(
            "variant",
            sa.String(),
            nullable=False,
            comment="wording or perturbation of the prompts; '' is the plain one",
        ),
        sa.Column(
            "label",
            sa.String(),
            nullable=False,
            comment="the harness's time stamp; else '' for the first, then #2, #3",
        ),
        sa.Column(
            "few_shot",
            sa.Integer(),
            nullable=True,
            comment="worked examples before each question; null where unknown or mixed",
        ),
        sa.Column("settings", JSON, nullable=True, comment="how the model was run, by name"),
        sa.Column(
            "limited", sa.Boolean(), nullable=False, comment="whether only a part of the benchmark was asked on purpose"
        ),
        sa.Column(
            "status",
            sa.String(),
            nullable=False,
            comment="complete, or partial while it is being written",
        ),
        sa.Column("n_scores", sa.BigInteger(), nullable=False, comment="how many rows of score it has"),
        sa.Column(
            "checksum",
            sa.String(),
            nullable=False,
            comment="order-free 128-bit checksum of its rows of score, hexadecimal",
        ),
        sa.Column(
            "started",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="when the model was run, UTC; null where unknown",
        ),
        sa.Column("ingested", sa.DateTime(timezone=True), nullable=False, comment="when it was taken in, UTC"),
        sa.CheckConstraint("condition IN ('full', 'answer_only')", name=op.f("ck_run_condition")),
        sa.CheckConstraint("status IN ('partial', 'complete')", name=op.f("ck_run_status")),
        sa.ForeignKeyConstraint(["benchmark_id"], ["benchmark.id"], name=op.f("fk_run_benchmark_id_benchmark")),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name=op.f("fk_run_model_id_model")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
        sa.UniqueConstraint(
            "benchmark_id",
            "model_id",
            "condition",
            "variant",
            "label",
            name=op.f("uq_run_benchmark_id_model_id_condition_variant_label"),
        ),
        comment="One model answering one benchmark once; a larger id came later",
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.create_index("ix_run_model_id", ["model_id"], unique=False)

    op.create_table(
        "task",
        sa.Column("id", sa.Integer(), nullable=False, comment="key"),
        sa.Column("benchmark_id", sa.Integer(), nullable=False, comment="the benchmark it is part of"),
        sa.Column(
            "name",
            sa.String(),
            nullable=False,
            comment="what people call it, such as physics; '' holds prompts without a task",
        ),
        sa.ForeignKeyConstraint(["benchmark_id"], ["benchmark.id"], name=op.f("fk_task_benchmark_id_benchmark")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_task")),
        sa.UniqueConstraint("benchmark_id", "name", name=op.f("uq_task_benchmark_id_name")),
        comment="A named part of a benchmark",
    )
    op.create_table(
        "analysis_run",
        sa.Column("analysis_id", sa.Integer(), nullable=False, comment="the finding"),
        sa.Column("run_id", sa.Integer(), nullable=False, comment="the run"),
        sa.Column("role", sa.String(), nullable=False, comment="what it served as; 'scores' by default"),
        sa.Column("checksum", sa.String(), nullable=False, comment="the run's checksum when it was read"),
        sa.ForeignKeyConstraint(
            ["analysis_id"], ["analysis.id"], name=op.f("fk_analysis_run_analysis_id_analysis"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_analysis_run_run_id_run")),
        sa.PrimaryKeyConstraint("analysis_id", "run_id", "role", name=op.f("pk_analysis_run")),
        comment="Which runs a finding rests on",
    )
    with op.batch_alter_table("analysis_run", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_analysis_run_run_id"), ["run_id"], unique=False)

    op.create_table(
        "finding_artifact",
        sa.Column("analysis_id", sa.Integer(), nullable=False, comment="the finding"),
        sa.Column("name", sa.String(), nullable=False, comment="file name, such as null.png"),
        sa.Column(
            "media_type", sa.String(), nullable=False, comment="such as image/png or application/vnd.apache.parquet"
        ),
        sa.Column("content", sa.LargeBinary(), nullable=False, comment="the file's bytes"),
        sa.ForeignKeyConstraint(
            ["analysis_id"], ["analysis.id"], name=op.f("fk_finding_artifact_analysis_id_analysis"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("analysis_id", "name", name=op.f("pk_finding_artifact")),
        comment="Arrays, tables and pictures of a finding",
    )
    op.create_table(
        "finding_metric",
        sa.Column("analysis_id", sa.Integer(), nullable=False, comment="the finding"),
        sa.Column("name", sa.String(), nullable=False, comment="such as hamming.variance.pvalue"),
        sa.Column("value", sa.Double(), nullable=True, comment="the number; null where it is not given"),
        sa.Column(
            "reason", sa.String(), nullable=True, comment="why it is not given, such as: invariant under this null"
        ),
        sa.Column("headline", sa.Boolean(), nullable=False, comment="whether it is shown in MLflow"),
        sa.CheckConstraint("(value IS NULL) = (reason IS NOT NULL)", name=op.f("ck_finding_metric_value_or_reason")),
        sa.ForeignKeyConstraint(
            ["analysis_id"], ["analysis.id"], name=op.f("fk_finding_metric_analysis_id_analysis"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("analysis_id", "name", name=op.f("pk_finding_metric")),
        comment="A number of a finding, or the reason why there is none",
    )
    op.create_table(
        "prompt",
        sa.Column("id", sa.Integer(), nullable=False, comment="key"),
        sa.Column("task_id", sa.Integer(), nullable=False, comment="the task it is part of"),
        sa.Column(
            "content_hash",
            sa.String(),
            nullable=True,
            comment="SHA-256 of text and choices; null until the text is known",
        ),
        sa.Column(
            "occurrence",
            sa.Integer(),
            nullable=False,
            comment="0 for the first prompt of a task with this content, 1 for the second, ...",
        ),
        sa.Column(
            "text",
            sa.String(),
            nullable=True,
            comment="the question as asked, without few-shot examples; null until known",
        ),
        sa.Column("choices", JSON, nullable=True, comment="options of a multiple-choice prompt, a list of texts"),
        sa.Column(
            "answer", sa.String(), nullable=True, comment="the gold answer: the text, or the letter of the option"
        ),
        sa.Column("split", sa.String(), nullable=True, comment="train, validation, test, ...; null where unknown"),
        sa.Column("details", JSON, nullable=True, comment="further fields of the source, by name"),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_prompt_task_id_task")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prompt")),
        sa.UniqueConstraint(
            "task_id", "content_hash", "occurrence", name=op.f("uq_prompt_task_id_content_hash_occurrence")
        ),
        comment="One item of a task",
    )
    op.create_table(
        "ranking",
        sa.Column("analysis_id", sa.Integer(), nullable=False, comment="the finding"),
        sa.Column("scheme", sa.String(), nullable=False, comment="what they are ranked by, such as medoids"),
        sa.Column("model_id", sa.Integer(), nullable=False, comment="the model"),
        sa.Column("rank", sa.Double(), nullable=False, comment="1 is best; ties share the mean rank"),
        sa.Column("score", sa.Double(), nullable=False, comment="what it is ranked by"),
        sa.Column("low", sa.Double(), nullable=True, comment="lower end of the score's interval"),
        sa.Column("high", sa.Double(), nullable=True, comment="upper end of the score's interval"),
        sa.Column("rank_low", sa.Double(), nullable=True, comment="best rank of the interval"),
        sa.Column("rank_high", sa.Double(), nullable=True, comment="worst rank of the interval"),
        sa.ForeignKeyConstraint(
            ["analysis_id"], ["analysis.id"], name=op.f("fk_ranking_analysis_id_analysis"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name=op.f("fk_ranking_model_id_model")),
        sa.PrimaryKeyConstraint("analysis_id", "scheme", "model_id", name=op.f("pk_ranking")),
        comment="Models in the order of one scheme",
    )
    op.create_table(
        "run_source",
        sa.Column("run_id", sa.Integer(), nullable=False, comment="the run"),
        sa.Column("source_id", sa.Integer(), nullable=False, comment="the file"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_run_source_run_id_run"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_run_source_source_id_source")),
        sa.PrimaryKeyConstraint("run_id", "source_id", name=op.f("pk_run_source")),
        comment="Which files a run came from",
    )
    with op.batch_alter_table("run_source", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_run_source_source_id"), ["source_id"], unique=False)

    op.create_table(
        "task_score",
        sa.Column("run_id", sa.Integer(), nullable=False, comment="the run"),
        sa.Column("metric_id", sa.Integer(), nullable=False, comment="the metric"),
        sa.Column("task_id", sa.Integer(), nullable=False, comment="the task"),
        sa.Column("value", sa.Double(), nullable=False, comment="the score, in the metric's unit; finite"),
        sa.Column("stderr", sa.Double(), nullable=True, comment="standard error as published"),
        sa.Column("n_prompts", sa.Integer(), nullable=True, comment="number of prompts behind it, as published"),
        sa.CheckConstraint(
            "value BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308", name=op.f("ck_task_score_finite")
        ),
        sa.ForeignKeyConstraint(["metric_id"], ["metric.id"], name=op.f("fk_task_score_metric_id_metric")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_task_score_run_id_run"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_task_score_task_id_task")),
        sa.PrimaryKeyConstraint("run_id", "metric_id", "task_id", name=op.f("pk_task_score")),
        comment="A score for a whole task, where nothing finer was published",
    )
    op.create_table(
        "task_value",
        sa.Column("analysis_id", sa.Integer(), nullable=False, comment="the finding"),
        sa.Column("name", sa.String(), nullable=False, comment="which number"),
        sa.Column("task_id", sa.Integer(), nullable=False, comment="the task"),
        sa.Column("value", sa.Double(), nullable=False, comment="the number"),
        sa.ForeignKeyConstraint(
            ["analysis_id"], ["analysis.id"], name=op.f("fk_task_value_analysis_id_analysis"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_task_value_task_id_task")),
        sa.PrimaryKeyConstraint("analysis_id", "name", "task_id", name=op.f("pk_task_value")),
        comment="A number per task",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "answer",
        sa.Column("run_id", sa.Integer(), nullable=False, comment="the run"),
        sa.Column("prompt_id", sa.Integer(), nullable=False, comment="the prompt"),
        sa.Column(
            "extraction",
            sa.String(),
            nullable=False,
            comment="how the answer was read off; '' is the only or plain way",
        ),
        sa.Column(
            "trial", sa.Integer(), nullable=False, comment="0 for the first answer to the prompt, 1 for the second, ..."
        ),
        sa.Column("text", sa.String(), nullable=True, comment="the answer as extracted"),
        sa.Column("probability", sa.Double(), nullable=True, comment="the model's own probability of it, in [0, 1]"),
        sa.Column(
            "status",
            sa.String(),
            nullable=False,
            comment="ok, error (the model failed), empty (nothing could be extracted)",
        ),
        sa.CheckConstraint("status IN ('ok', 'error', 'empty')", name=op.f("ck_answer_status")),
        sa.ForeignKeyConstraint(["prompt_id"], ["prompt.id"], name=op.f("fk_answer_prompt_id_prompt")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_answer_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "prompt_id", "extraction", "trial", name=op.f("pk_answer")),
        comment="What a model said",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "embedding",
        sa.Column("id", sa.Integer(), nullable=False, comment="key"),
        sa.Column("encoder_id", sa.Integer(), nullable=False, comment="what made it"),
        sa.Column("prompt_id", sa.Integer(), nullable=False, comment="the prompt"),
        sa.Column(
            "vector",
            sa.LargeBinary(),
            nullable=False,
            comment="little-endian float32, as many as the encoder has dimensions",
        ),
        sa.ForeignKeyConstraint(["encoder_id"], ["encoder.id"], name=op.f("fk_embedding_encoder_id_encoder")),
        sa.ForeignKeyConstraint(["prompt_id"], ["prompt.id"], name=op.f("fk_embedding_prompt_id_prompt")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_embedding")),
        sa.UniqueConstraint("encoder_id", "prompt_id", name=op.f("uq_embedding_encoder_id_prompt_id")),
        comment="A prompt's vector",
    )
    op.create_table(
        "filter_decision",
        sa.Column("analysis_id", sa.Integer(), nullable=False, comment="the finding"),
        sa.Column("prompt_id", sa.Integer(), nullable=False, comment="the prompt"),
        sa.Column("kept", sa.Boolean(), nullable=False, comment="whether it stays"),
        sa.ForeignKeyConstraint(
            ["analysis_id"], ["analysis.id"], name=op.f("fk_filter_decision_analysis_id_analysis"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["prompt_id"], ["prompt.id"], name=op.f("fk_filter_decision_prompt_id_prompt")),
        sa.PrimaryKeyConstraint("analysis_id", "prompt_id", name=op.f("pk_filter_decision")),
        comment="Whether a filter keeps a prompt",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "filter_reason",
        sa.Column("analysis_id", sa.Integer(), nullable=False, comment="the finding"),
        sa.Column("prompt_id", sa.Integer(), nullable=False, comment="the prompt"),
        sa.Column("step", sa.String(), nullable=False, comment="such as easy, contaminated, similar"),
        sa.Column("cluster", sa.Integer(), nullable=True, comment="number of the group of similar prompts it is in"),
        sa.Column("retained", sa.Boolean(), nullable=False, comment="whether it was kept in spite of the reason"),
        sa.ForeignKeyConstraint(
            ["analysis_id"], ["analysis.id"], name=op.f("fk_filter_reason_analysis_id_analysis"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["prompt_id"], ["prompt.id"], name=op.f("fk_filter_reason_prompt_id_prompt")),
        sa.PrimaryKeyConstraint("analysis_id", "prompt_id", "step", name=op.f("pk_filter_reason")),
        comment="Why a filter singled a prompt out",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "prompt_alias",
        sa.Column("task_id", sa.Integer(), nullable=False, comment="the task of the prompt"),
        sa.Column("namespace", sa.String(), nullable=False, comment="who calls it so: '' for tables, lm_eval, ..."),
        sa.Column("key", sa.String(), nullable=False, comment="the name, such as a row id or a document hash"),
        sa.Column("prompt_id", sa.Integer(), nullable=False, comment="the prompt"),
        sa.ForeignKeyConstraint(["prompt_id"], ["prompt.id"], name=op.f("fk_prompt_alias_prompt_id_prompt")),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_prompt_alias_task_id_task")),
        sa.PrimaryKeyConstraint("task_id", "namespace", "key", name=op.f("pk_prompt_alias")),
        comment="What a harness or a family of files calls a prompt",
    )
    with op.batch_alter_table("prompt_alias", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_prompt_alias_prompt_id"), ["prompt_id"], unique=False)

    op.create_table(
        "prompt_value",
        sa.Column("analysis_id", sa.Integer(), nullable=False, comment="the finding"),
        sa.Column("name", sa.String(), nullable=False, comment="which number"),
        sa.Column("prompt_id", sa.Integer(), nullable=False, comment="the prompt"),
        sa.Column("value", sa.Double(), nullable=False, comment="the number"),
        sa.ForeignKeyConstraint(
            ["analysis_id"], ["analysis.id"], name=op.f("fk_prompt_value_analysis_id_analysis"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["prompt_id"], ["prompt.id"], name=op.f("fk_prompt_value_prompt_id_prompt")),
        sa.PrimaryKeyConstraint("analysis_id", "name", "prompt_id", name=op.f("pk_prompt_value")),
        comment="A number per prompt: weights, slopes, difficulties",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "score",
        sa.Column("run_id", sa.Integer(), nullable=False, comment="the run"),
        sa.Column("metric_id", sa.Integer(), nullable=False, comment="the metric"),
        sa.Column("prompt_id", sa.Integer(), nullable=False, comment="the prompt"),
        sa.Column(
            "trial", sa.Integer(), nullable=False, comment="0 for the first answer to the prompt, 1 for the second, ..."
        ),
        sa.Column("value", sa.Double(), nullable=False, comment="the score, in the metric's unit; finite"),
        sa.CheckConstraint(
            "value BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308", name=op.f("ck_score_finite")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_score_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "metric_id", "prompt_id", "trial", name=op.f("pk_score")),
        *(
            []
            if on_postgresql
            else [
                sa.ForeignKeyConstraint([f"{parent}_id"], [f"{parent}.id"], name=op.f(f"fk_score_{parent}_id_{parent}"))
                for parent in ("metric", "prompt")
            ]
        ),
        comment="A number for one prompt; what was not measured has no row",
        sqlite_with_rowid=False,
    )

    op.execute(
        sa.table("database", sa.column("id", sa.String()), sa.column("created", sa.DateTime(timezone=True)))
        .insert()
        .values(id=str(uuid.uuid4()), created=datetime.now(UTC))
    )
    if on_postgresql:
        for statement in TRIGGERS:
            op.execute(statement)


def downgrade():
    op.drop_table("score")
    op.drop_table("prompt_value")
    with op.batch_alter_table("prompt_alias", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_prompt_alias_prompt_id"))

    op.drop_table("prompt_alias")
    op.drop_table("filter_reason")
    op.drop_table("filter_decision")
    op.drop_table("embedding")
    op.drop_table("answer")
    op.drop_table("task_value")
    op.drop_table("task_score")
    with op.batch_alter_table("run_source", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_run_source_source_id"))

    op.drop_table("run_source")
    op.drop_table("ranking")
    op.drop_table("prompt")
    op.drop_table("finding_metric")
    op.drop_table("finding_artifact")
    with op.batch_alter_table("analysis_run", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_analysis_run_run_id"))

    op.drop_table("analysis_run")
    op.drop_table("task")
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.drop_index("ix_run_model_id")

    op.drop_table("run")
    op.drop_table("model_alias")
    with op.batch_alter_table("analysis", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_analysis_name"))
        batch_op.drop_index(batch_op.f("ix_analysis_benchmark_id"))

    op.drop_table("analysis")
    op.drop_table("source")
    op.drop_table("publication")
    op.drop_table("model")
    op.drop_table("metric")
    op.drop_table("encoder")
    op.drop_table("database")
    op.drop_table("benchmark")
    if op.get_bind().dialect.name == "postgresql":
        for function in ("score_has_parents", "parent_has_no_scores", "parent_is_not_truncated"):
            op.execute(f"DROP FUNCTION {function}() CASCADE")
