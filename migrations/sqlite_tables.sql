-- Tables of SQLite stores of version 0019;

CREATE TABLE suffrage_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT suffrage_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE benchmark (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	revision VARCHAR NOT NULL, default_metric_id INTEGER CONSTRAINT fk_benchmark_default_metric_id_metric REFERENCES metric (id), 
	CONSTRAINT pk_benchmark PRIMARY KEY (id), 
	CONSTRAINT uq_benchmark_name_revision UNIQUE (name, revision)
);

CREATE TABLE "database" (
	id VARCHAR NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT pk_database PRIMARY KEY (id)
);

CREATE TABLE encoder (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	revision VARCHAR NOT NULL, 
	template VARCHAR NOT NULL, 
	dimensions INTEGER NOT NULL, 
	CONSTRAINT pk_encoder PRIMARY KEY (id), 
	CONSTRAINT uq_encoder_name_revision_template UNIQUE (name, revision, template)
);

CREATE TABLE metric (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	higher_is_better BOOLEAN NOT NULL, 
	lower DOUBLE, 
	upper DOUBLE, 
	CONSTRAINT pk_metric PRIMARY KEY (id), 
	CONSTRAINT uq_metric_name UNIQUE (name)
);

CREATE TABLE model (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	organization VARCHAR, 
	family VARCHAR, 
	parameters BIGINT, 
	released DATE, 
	open_weights BOOLEAN, 
	CONSTRAINT pk_model PRIMARY KEY (id), 
	CONSTRAINT uq_model_name UNIQUE (name)
);

CREATE TABLE source (
	id INTEGER NOT NULL, 
	identity VARCHAR NOT NULL, 
	digest VARCHAR NOT NULL, 
	path VARCHAR NOT NULL, 
	format VARCHAR NOT NULL, 
	harness VARCHAR, 
	ingested DATETIME NOT NULL, 
	CONSTRAINT pk_source PRIMARY KEY (id), 
	CONSTRAINT uq_source_identity UNIQUE (identity)
);

CREATE TABLE model_alias (
	name VARCHAR NOT NULL, 
	model_id INTEGER NOT NULL, 
	CONSTRAINT pk_model_alias PRIMARY KEY (name), 
	CONSTRAINT fk_model_alias_model_id_model FOREIGN KEY(model_id) REFERENCES model (id)
);

CREATE TABLE task (
	id INTEGER NOT NULL, 
	benchmark_id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	CONSTRAINT pk_task PRIMARY KEY (id), 
	CONSTRAINT fk_task_benchmark_id_benchmark FOREIGN KEY(benchmark_id) REFERENCES benchmark (id), 
	CONSTRAINT uq_task_benchmark_id_name UNIQUE (benchmark_id, name)
);

CREATE TABLE prompt (
	id INTEGER NOT NULL, 
	task_id INTEGER NOT NULL, 
	content_hash VARCHAR, 
	occurrence INTEGER NOT NULL, 
	text VARCHAR, 
	choices JSON, 
	answer VARCHAR, 
	split VARCHAR, 
	details JSON, 
	CONSTRAINT pk_prompt PRIMARY KEY (id), 
	CONSTRAINT fk_prompt_task_id_task FOREIGN KEY(task_id) REFERENCES task (id), 
	CONSTRAINT uq_prompt_task_id_content_hash_occurrence UNIQUE (task_id, content_hash, occurrence)
);

CREATE TABLE run_source (
	run_id INTEGER NOT NULL, 
	source_id INTEGER NOT NULL, 
	CONSTRAINT pk_run_source PRIMARY KEY (run_id, source_id), 
	CONSTRAINT fk_run_source_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE, 
	CONSTRAINT fk_run_source_source_id_source FOREIGN KEY(source_id) REFERENCES source (id)
);

CREATE INDEX ix_run_source_source_id ON run_source (source_id);

CREATE TABLE task_score (
	run_id INTEGER NOT NULL, 
	metric_id INTEGER NOT NULL, 
	task_id INTEGER NOT NULL, 
	value DOUBLE NOT NULL, 
	stderr DOUBLE, 
	n_prompts INTEGER, 
	CONSTRAINT pk_task_score PRIMARY KEY (run_id, metric_id, task_id), 
	CONSTRAINT ck_task_score_finite CHECK (value BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308), 
	CONSTRAINT fk_task_score_metric_id_metric FOREIGN KEY(metric_id) REFERENCES metric (id), 
	CONSTRAINT fk_task_score_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE, 
	CONSTRAINT fk_task_score_task_id_task FOREIGN KEY(task_id) REFERENCES task (id)
);

CREATE TABLE embedding (
	id INTEGER NOT NULL, 
	encoder_id INTEGER NOT NULL, 
	prompt_id INTEGER NOT NULL, 
	vector BLOB NOT NULL, 
	CONSTRAINT pk_embedding PRIMARY KEY (id), 
	CONSTRAINT fk_embedding_encoder_id_encoder FOREIGN KEY(encoder_id) REFERENCES encoder (id), 
	CONSTRAINT fk_embedding_prompt_id_prompt FOREIGN KEY(prompt_id) REFERENCES prompt (id), 
	CONSTRAINT uq_embedding_encoder_id_prompt_id UNIQUE (encoder_id, prompt_id)
);

CREATE TABLE prompt_alias (
	task_id INTEGER NOT NULL, 
	namespace VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	prompt_id INTEGER NOT NULL, 
	CONSTRAINT pk_prompt_alias PRIMARY KEY (task_id, namespace, "key"), 
	CONSTRAINT fk_prompt_alias_prompt_id_prompt FOREIGN KEY(prompt_id) REFERENCES prompt (id), 
	CONSTRAINT fk_prompt_alias_task_id_task FOREIGN KEY(task_id) REFERENCES task (id)
);

CREATE INDEX ix_prompt_alias_prompt_id ON prompt_alias (prompt_id);

CREATE TABLE score (
	run_id INTEGER NOT NULL, 
	metric_id INTEGER NOT NULL, 
	prompt_id INTEGER NOT NULL, 
	trial INTEGER NOT NULL, 
	value DOUBLE NOT NULL, 
	CONSTRAINT pk_score PRIMARY KEY (run_id, metric_id, prompt_id, trial), 
	CONSTRAINT ck_score_finite CHECK (value BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308), 
	CONSTRAINT fk_score_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE, 
	CONSTRAINT fk_score_metric_id_metric FOREIGN KEY(metric_id) REFERENCES metric (id), 
	CONSTRAINT fk_score_prompt_id_prompt FOREIGN KEY(prompt_id) REFERENCES prompt (id)
)
 WITHOUT ROWID

;

CREATE TABLE "run" (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	benchmark_id INTEGER NOT NULL, 
	model_id INTEGER NOT NULL, 
	condition VARCHAR NOT NULL, 
	variant VARCHAR NOT NULL, 
	label VARCHAR NOT NULL, 
	few_shot INTEGER, 
	settings JSON, 
	limited BOOLEAN NOT NULL, 
	status VARCHAR NOT NULL, 
	n_scores BIGINT NOT NULL, 
	checksum VARCHAR NOT NULL, 
	started DATETIME, 
	ingested DATETIME NOT NULL, 
	superseded_by INTEGER, 
	reason VARCHAR, unverified VARCHAR, 
	CONSTRAINT uq_run_benchmark_id_model_id_condition_variant_label UNIQUE (benchmark_id, model_id, condition, variant, label), 
	CONSTRAINT fk_run_model_id_model FOREIGN KEY(model_id) REFERENCES model (id), 
	CONSTRAINT fk_run_benchmark_id_benchmark FOREIGN KEY(benchmark_id) REFERENCES benchmark (id), 
	CONSTRAINT ck_run_condition CHECK (condition IN ('full', 'answer_only')), 
	CONSTRAINT ck_run_status CHECK (status IN ('partial', 'complete', 'hidden', 'superseded')), 
	CONSTRAINT fk_run_superseded_by_run FOREIGN KEY(superseded_by) REFERENCES run (id)
);

CREATE INDEX ix_run_model_id ON run (model_id);

CREATE INDEX ix_run_superseded_by ON run (superseded_by);

CREATE TABLE "finding" (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	benchmark_id INTEGER, 
	analysis VARCHAR NOT NULL, 
	parameters JSON NOT NULL, 
	selection JSON NOT NULL, 
	seed BIGINT, 
	input_digest VARCHAR NOT NULL, 
	code_version VARCHAR NOT NULL, 
	filter_id INTEGER, 
	weights_id INTEGER, 
	encoder_id INTEGER, 
	status VARCHAR NOT NULL, 
	error VARCHAR, 
	timings JSON, 
	recorded DATETIME NOT NULL, stale VARCHAR, headline VARCHAR, evidence JSON, caveats JSON, warnings JSON, leader VARCHAR, 
	CONSTRAINT ck_finding_status CHECK (status IN ('complete', 'failed')), 
	CONSTRAINT fk_finding_benchmark_id_benchmark FOREIGN KEY(benchmark_id) REFERENCES benchmark (id), 
	CONSTRAINT fk_finding_encoder_id_encoder FOREIGN KEY(encoder_id) REFERENCES encoder (id), 
	CONSTRAINT fk_finding_filter_id_finding FOREIGN KEY(filter_id) REFERENCES "finding" (id), 
	CONSTRAINT fk_finding_weights_id_finding FOREIGN KEY(weights_id) REFERENCES "finding" (id)
);

CREATE TABLE "finding_run" (
	finding_id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	role VARCHAR NOT NULL, 
	checksum VARCHAR NOT NULL, status VARCHAR DEFAULT 'complete' NOT NULL, 
	CONSTRAINT pk_finding_run PRIMARY KEY (finding_id, run_id, role), 
	CONSTRAINT fk_finding_run_finding_id_finding FOREIGN KEY(finding_id) REFERENCES "finding" (id) ON DELETE CASCADE, 
	CONSTRAINT fk_finding_run_run_id_run FOREIGN KEY(run_id) REFERENCES run (id)
);

CREATE TABLE "finding_artifact" (
	finding_id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	media_type VARCHAR NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT pk_finding_artifact PRIMARY KEY (finding_id, name), 
	CONSTRAINT fk_finding_artifact_finding_id_finding FOREIGN KEY(finding_id) REFERENCES "finding" (id) ON DELETE CASCADE
);

CREATE TABLE "finding_metric" (
	finding_id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	value DOUBLE, 
	reason VARCHAR, 
	is_main BOOLEAN NOT NULL, position INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_finding_metric PRIMARY KEY (finding_id, name), 
	CONSTRAINT ck_finding_metric_value_or_reason CHECK ((value IS NULL) = (reason IS NOT NULL)), 
	CONSTRAINT fk_finding_metric_finding_id_finding FOREIGN KEY(finding_id) REFERENCES "finding" (id) ON DELETE CASCADE
);

CREATE TABLE "prompt_value" (
	finding_id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	prompt_id INTEGER NOT NULL, 
	value DOUBLE NOT NULL, 
	CONSTRAINT pk_prompt_value PRIMARY KEY (finding_id, name, prompt_id), 
	CONSTRAINT fk_prompt_value_finding_id_finding FOREIGN KEY(finding_id) REFERENCES "finding" (id) ON DELETE CASCADE, 
	CONSTRAINT fk_prompt_value_prompt_id_prompt FOREIGN KEY(prompt_id) REFERENCES prompt (id)
)
 WITHOUT ROWID

;

CREATE TABLE "task_value" (
	finding_id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	task_id INTEGER NOT NULL, 
	value DOUBLE NOT NULL, 
	CONSTRAINT pk_task_value PRIMARY KEY (finding_id, name, task_id), 
	CONSTRAINT fk_task_value_finding_id_finding FOREIGN KEY(finding_id) REFERENCES "finding" (id) ON DELETE CASCADE, 
	CONSTRAINT fk_task_value_task_id_task FOREIGN KEY(task_id) REFERENCES task (id)
)
 WITHOUT ROWID

;

CREATE TABLE "filter_decision" (
	finding_id INTEGER NOT NULL, 
	prompt_id INTEGER NOT NULL, 
	kept BOOLEAN NOT NULL, 
	CONSTRAINT pk_filter_decision PRIMARY KEY (finding_id, prompt_id), 
	CONSTRAINT fk_filter_decision_finding_id_finding FOREIGN KEY(finding_id) REFERENCES "finding" (id) ON DELETE CASCADE, 
	CONSTRAINT fk_filter_decision_prompt_id_prompt FOREIGN KEY(prompt_id) REFERENCES prompt (id)
)
 WITHOUT ROWID

;

CREATE TABLE "filter_reason" (
	finding_id INTEGER NOT NULL, 
	prompt_id INTEGER NOT NULL, 
	step VARCHAR NOT NULL, 
	cluster INTEGER, 
	retained BOOLEAN NOT NULL, 
	CONSTRAINT pk_filter_reason PRIMARY KEY (finding_id, prompt_id, step), 
	CONSTRAINT fk_filter_reason_finding_id_finding FOREIGN KEY(finding_id) REFERENCES "finding" (id) ON DELETE CASCADE, 
	CONSTRAINT fk_filter_reason_prompt_id_prompt FOREIGN KEY(prompt_id) REFERENCES prompt (id)
)
 WITHOUT ROWID

;

CREATE TABLE "ranking" (
	finding_id INTEGER NOT NULL, 
	scheme VARCHAR NOT NULL, 
	model_id INTEGER NOT NULL, 
	rank DOUBLE NOT NULL, 
	score DOUBLE NOT NULL, 
	low DOUBLE, 
	high DOUBLE, 
	rank_low DOUBLE, 
	rank_high DOUBLE, 
	CONSTRAINT pk_ranking PRIMARY KEY (finding_id, scheme, model_id), 
	CONSTRAINT fk_ranking_finding_id_finding FOREIGN KEY(finding_id) REFERENCES "finding" (id) ON DELETE CASCADE, 
	CONSTRAINT fk_ranking_model_id_model FOREIGN KEY(model_id) REFERENCES model (id)
);

CREATE INDEX ix_finding_benchmark_id ON finding (benchmark_id);

CREATE INDEX ix_finding_analysis ON finding (analysis);

CREATE INDEX ix_finding_run_run_id ON finding_run (run_id);

CREATE TABLE "publication" (
	tracking_uri VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	ref_id INTEGER NOT NULL, 
	mlflow_run_id VARCHAR NOT NULL, 
	version VARCHAR NOT NULL, 
	published DATETIME NOT NULL, 
	CONSTRAINT pk_publication PRIMARY KEY (tracking_uri, kind, ref_id), 
	CONSTRAINT ck_publication_kind CHECK (kind IN ('finding', 'run'))
);

CREATE TABLE source_metric (
	source_id INTEGER NOT NULL, 
	benchmark_id INTEGER NOT NULL, 
	metric_id INTEGER NOT NULL, 
	CONSTRAINT pk_source_metric PRIMARY KEY (source_id, benchmark_id, metric_id), 
	CONSTRAINT fk_source_metric_source_id_source FOREIGN KEY(source_id) REFERENCES source (id) ON DELETE CASCADE, 
	CONSTRAINT fk_source_metric_benchmark_id_benchmark FOREIGN KEY(benchmark_id) REFERENCES benchmark (id), 
	CONSTRAINT fk_source_metric_metric_id_metric FOREIGN KEY(metric_id) REFERENCES metric (id)
);

CREATE TABLE undo_record (
	id INTEGER NOT NULL, 
	source_id INTEGER, 
	path VARCHAR NOT NULL, 
	changes BLOB NOT NULL, 
	ingested DATETIME NOT NULL, 
	CONSTRAINT pk_undo_record PRIMARY KEY (id), 
	CONSTRAINT fk_undo_record_source_id_source FOREIGN KEY(source_id) REFERENCES source (id)
);

CREATE INDEX ix_undo_record_source_id ON undo_record (source_id);

CREATE TABLE task_alias (
	benchmark_id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	task_id INTEGER NOT NULL, 
	CONSTRAINT pk_task_alias PRIMARY KEY (benchmark_id, name), 
	CONSTRAINT fk_task_alias_benchmark_id_benchmark FOREIGN KEY(benchmark_id) REFERENCES benchmark (id), 
	CONSTRAINT fk_task_alias_task_id_task FOREIGN KEY(task_id) REFERENCES task (id)
);

CREATE INDEX ix_task_alias_task_id ON task_alias (task_id);

CREATE TABLE "answer" (
	run_id INTEGER NOT NULL, 
	prompt_id INTEGER NOT NULL, 
	extraction VARCHAR NOT NULL, 
	trial INTEGER NOT NULL, 
	text VARCHAR, 
	probability DOUBLE, 
	status VARCHAR NOT NULL, 
	CONSTRAINT pk_answer PRIMARY KEY (run_id, prompt_id, extraction, trial), 
	CONSTRAINT fk_answer_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE, 
	CONSTRAINT fk_answer_prompt_id_prompt FOREIGN KEY(prompt_id) REFERENCES prompt (id), 
	CONSTRAINT ck_answer_status CHECK (status IN ('ok', 'error', 'empty', 'truncated'))
)
 WITHOUT ROWID

;

CREATE TABLE evaluation_lease (
	run_id INTEGER NOT NULL, 
	prompt_id INTEGER NOT NULL, 
	holder VARCHAR NOT NULL, 
	expires DOUBLE NOT NULL, 
	CONSTRAINT pk_evaluation_lease PRIMARY KEY (run_id, prompt_id), 
	CONSTRAINT fk_evaluation_lease_prompt_id_prompt FOREIGN KEY(prompt_id) REFERENCES prompt (id) ON DELETE CASCADE, 
	CONSTRAINT fk_evaluation_lease_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE INDEX ix_evaluation_lease_prompt_id ON evaluation_lease (prompt_id);

CREATE TABLE checksum (
	table_name VARCHAR NOT NULL, 
	"key" BIGINT NOT NULL, 
	high BIGINT NOT NULL, 
	low BIGINT NOT NULL, 
	CONSTRAINT pk_checksum PRIMARY KEY (table_name, "key")
)
 WITHOUT ROWID

;

CREATE TABLE sealed_run (
	run_id INTEGER NOT NULL, 
	address VARCHAR NOT NULL, 
	digest VARCHAR NOT NULL, 
	checksum VARCHAR NOT NULL, 
	answer_checksum VARCHAR NOT NULL, 
	n_answers BIGINT NOT NULL, 
	rows_in_store BOOLEAN NOT NULL, 
	sealed DATETIME NOT NULL, 
	CONSTRAINT pk_sealed_run PRIMARY KEY (run_id), 
	CONSTRAINT fk_sealed_run_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE TABLE sealed_metric (
	run_id INTEGER NOT NULL, 
	metric_id INTEGER NOT NULL, 
	n_scores BIGINT NOT NULL, 
	mean DOUBLE NOT NULL, 
	CONSTRAINT pk_sealed_metric PRIMARY KEY (run_id, metric_id), 
	CONSTRAINT fk_sealed_metric_metric_id_metric FOREIGN KEY(metric_id) REFERENCES metric (id) ON DELETE CASCADE, 
	CONSTRAINT fk_sealed_metric_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

INSERT INTO sqlite_sequence VALUES ('finding', 0);

INSERT INTO sqlite_sequence VALUES ('run', 0);

INSERT INTO suffrage_version VALUES ('0019');

