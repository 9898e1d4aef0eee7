-- Tables of PostgreSQL stores of version 0019;

CREATE FUNCTION @.attach_partition(parent text, benchmark integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM @.check_partition_right(parent);
    PERFORM @.finish_partition(format('@.%I', parent)::regclass, parent, benchmark);
END $$;

CREATE FUNCTION @.benchmark_has_partitions() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE prefix text; relation regclass;
BEGIN
    FOREACH prefix IN ARRAY ARRAY['score', 'answer'] LOOP
        relation := to_regclass(format('@.%I', concat(prefix, '_', NEW.id)));
        IF relation IS NULL THEN
            PERFORM @.create_partition(format('@.%I', prefix)::regclass, prefix, NEW.id);
        END IF;
        IF NOT EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = relation
                       AND inhparent = to_regclass(format('@.%I', prefix))) THEN
            PERFORM @.finish_partition(format('@.%I', prefix)::regclass, prefix, NEW.id);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

CREATE FUNCTION @.check_partition_right(parent text) RETURNS name
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE caller name := coalesce(nullif(current_setting('role'), 'none'), session_user::text);
BEGIN
    IF parent NOT IN ('score', 'answer') OR NOT has_table_privilege(caller, format('@.%I', parent), 'INSERT') THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may not add partitions to %s', caller, parent);
    END IF;
    RETURN caller;
END $$;

CREATE FUNCTION @.create_partition(parent regclass, prefix text, benchmark integer) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE name text := pg_catalog.concat(prefix, '_', benchmark);
BEGIN
    EXECUTE format('CREATE TABLE @.%I (LIKE %s INCLUDING CONSTRAINTS INCLUDING COMMENTS)', name, parent);
    PERFORM @.keep_for_owner(name);
    EXECUTE format('ALTER TABLE @.%I ALTER benchmark_id SET DEFAULT %s', name, benchmark);
    EXECUTE format('COMMENT ON TABLE @.%I IS %L', name, format('Rows of %s of benchmark %s', prefix, benchmark));
    RETURN name;
END $$;

CREATE FUNCTION @.finish_partition(parent regclass, prefix text, benchmark integer) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    name text := pg_catalog.concat(prefix, '_', benchmark);
    prompts integer[];
    metrics integer[];
    orphan text;
    filled boolean;
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM pg_class AS built, pg_class AS whole
        WHERE built.oid = to_regclass(format('@.%I', name)) AND whole.oid = parent
            AND built.relkind = 'r' AND built.relowner IN (whole.relowner, current_user::regrole)
    ) THEN
        RAISE duplicate_table USING MESSAGE = format('the table %s of another program takes the name of a partition '
            'of %s: rename or drop it', name, prefix);
    END IF;
    IF pg_size_bytes(current_setting('maintenance_work_mem')) < 268435456 THEN
        PERFORM set_config('maintenance_work_mem', '256MB', true);
    END IF;
    EXECUTE format('ALTER TABLE @.%I ADD CONSTRAINT %I PRIMARY KEY (%s)', name, concat('pk_', name),
        CASE prefix WHEN 'score' THEN 'run_id, metric_id, prompt_id, trial'
                    ELSE 'run_id, prompt_id, extraction, trial' END);
    IF prefix = 'score' THEN
        -- One pass over the rows; several processes read them, which they do not for FOR KEY SHARE.
        EXECUTE format('SELECT array_agg(DISTINCT prompt_id), array_agg(DISTINCT metric_id) '
            'FROM (SELECT DISTINCT prompt_id, metric_id FROM @.%I) AS pair', name) INTO prompts, metrics;
        PERFORM 1 FROM @.prompt WHERE id = ANY (prompts) ORDER BY id FOR KEY SHARE;
        PERFORM 1 FROM @.metric WHERE id = ANY (metrics) ORDER BY id FOR KEY SHARE;
        SELECT concat('prompt ', key) INTO orphan FROM unnest(prompts) AS key
            WHERE NOT EXISTS (SELECT 1 FROM @.prompt WHERE id = key) LIMIT 1;
        IF orphan IS NULL THEN
            SELECT concat('metric ', key) INTO orphan FROM unnest(metrics) AS key
                WHERE NOT EXISTS (SELECT 1 FROM @.metric WHERE id = key) LIMIT 1;
        END IF;
        IF orphan IS NOT NULL THEN
            RAISE foreign_key_violation
                USING MESSAGE = format('score refers to %s, which does not exist', orphan);
        END IF;
        EXECUTE format('CREATE TRIGGER score_inserted AFTER INSERT ON @.%I REFERENCING NEW TABLE AS fresh '
            'FOR EACH STATEMENT EXECUTE FUNCTION @.score_has_parents()', name);
        EXECUTE format('CREATE TRIGGER score_updated AFTER UPDATE ON @.%I REFERENCING NEW TABLE AS fresh '
            'FOR EACH STATEMENT EXECUTE FUNCTION @.score_has_parents()', name);
    END IF;
    PERFORM @.keep_for_owner(name);
    -- Checks the references to runs, and that every row is of the benchmark.
    EXECUTE format('ALTER TABLE %s ATTACH PARTITION @.%I FOR VALUES IN (%s)', parent, name, benchmark);
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM @.%I)', name) INTO filled;
    IF filled THEN
        EXECUTE format('ANALYZE @.%I', name);
    END IF;
END $$;

CREATE FUNCTION @.keep_for_owner(name text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE grantee text;
BEGIN
    FOR grantee IN
        SELECT DISTINCT CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END
        FROM pg_class, aclexplode(relacl) AS acl
        WHERE pg_class.oid = to_regclass(format('@.%I', name)) AND acl.grantee <> relowner
    LOOP
        EXECUTE format('REVOKE ALL ON @.%I FROM %s', name, grantee);
    END LOOP;
END $$;

CREATE FUNCTION @.move_to_partition() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
BEGIN
    NEW.benchmark_id := (SELECT benchmark_id FROM @.run WHERE id = NEW.run_id);
    IF NEW.benchmark_id IS NULL THEN
        RAISE foreign_key_violation
            USING MESSAGE = format('%s refers to run %s, which does not exist', TG_ARGV[0], NEW.run_id);
    END IF;
    EXECUTE format('INSERT INTO @.%I SELECT ($1).*', TG_ARGV[0]) USING NEW;
    RETURN NULL;
END $_$;

CREATE FUNCTION @.parent_has_no_scores() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
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
END $_$;

CREATE FUNCTION @.parent_is_not_truncated() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM score) THEN
        RAISE foreign_key_violation USING MESSAGE = format('%I still has scores', TG_TABLE_NAME);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION @.score_has_parents() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
END $$;

CREATE FUNCTION @.start_partition(parent text, benchmark integer) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE caller name := @.check_partition_right(parent); name text := concat(parent, '_', benchmark);
BEGIN
    PERFORM 1 FROM @.benchmark AS known WHERE known.id = start_partition.benchmark FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE foreign_key_violation USING MESSAGE = format('benchmark %s does not exist', benchmark);
    END IF;
    IF EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = to_regclass(format('@.%I', name))
               AND inhparent = to_regclass(format('@.%I', parent))) THEN
        RETURN NULL;
    END IF;
    IF to_regclass(format('@.%I', name)) IS NOT NULL THEN
        RAISE duplicate_table USING MESSAGE = format('the table %s of another program takes the name of a partition '
            'of %s: rename or drop it', name, parent);
    END IF;
    PERFORM @.create_partition(format('@.%I', parent)::regclass, parent, benchmark);
    EXECUTE format('GRANT SELECT, INSERT ON @.%I TO %I', name, caller);
    RETURN name;
END $$;

CREATE TABLE @.answer (
    run_id integer NOT NULL,
    prompt_id integer NOT NULL,
    extraction character varying NOT NULL,
    trial integer NOT NULL,
    text character varying,
    probability double precision,
    status character varying NOT NULL,
    benchmark_id integer DEFAULT 0 CONSTRAINT answer_partitioned_benchmark_id_not_null NOT NULL,
    CONSTRAINT ck_answer_status CHECK ((status IN ('ok', 'error', 'empty', 'truncated')))
)
PARTITION BY LIST (benchmark_id);

COMMENT ON TABLE @.answer IS 'The answer extracted from a model''s response';

COMMENT ON COLUMN @.answer.run_id IS 'the run';

COMMENT ON COLUMN @.answer.prompt_id IS 'the prompt';

COMMENT ON COLUMN @.answer.extraction IS 'how the answer was extracted; '''' is the only or default method. reasoning, finish_reason, judge and judge_prompt hold what the model wrote before its answer, why the text ended, a judge''s verdict, and the prompt of the judge';

COMMENT ON COLUMN @.answer.trial IS '0 for the first answer to the prompt, 1 for the second, ...';

COMMENT ON COLUMN @.answer.text IS 'the answer as extracted';

COMMENT ON COLUMN @.answer.probability IS 'the model''s own probability of it, in [0, 1]';

COMMENT ON COLUMN @.answer.status IS 'ok, error (the model failed), empty (nothing could be extracted), truncated (at the maximum number of tokens)';

COMMENT ON COLUMN @.answer.benchmark_id IS 'the benchmark of the run, whose partition holds the row; PostgreSQL only. It may be left out: the row is then moved to its partition, one at a time';

CREATE TABLE @.answer_unrouted (
    run_id integer CONSTRAINT answer_run_id_not_null NOT NULL,
    prompt_id integer CONSTRAINT answer_prompt_id_not_null NOT NULL,
    extraction character varying CONSTRAINT answer_extraction_not_null NOT NULL,
    trial integer CONSTRAINT answer_trial_not_null NOT NULL,
    text character varying,
    probability double precision,
    status character varying CONSTRAINT answer_status_not_null NOT NULL,
    benchmark_id integer DEFAULT 0 CONSTRAINT answer_partitioned_benchmark_id_not_null NOT NULL,
    CONSTRAINT ck_answer_status CHECK ((status IN ('ok', 'error', 'empty', 'truncated'))),
    CONSTRAINT ck_answer_unrouted CHECK (false)
);

COMMENT ON TABLE @.answer_unrouted IS 'Empty: moves rows without benchmark_id to their partition';

CREATE TABLE @.benchmark (
    id integer NOT NULL,
    name character varying NOT NULL,
    revision character varying NOT NULL,
    default_metric_id integer
);

COMMENT ON TABLE @.benchmark IS 'A collection of tasks';

COMMENT ON COLUMN @.benchmark.id IS 'key';

COMMENT ON COLUMN @.benchmark.name IS 'name, such as mmlu_pro';

COMMENT ON COLUMN @.benchmark.revision IS 'version of its content; '''' where there is only one';

COMMENT ON COLUMN @.benchmark.default_metric_id IS 'the metric of commands that name none, as chosen; null where the first one stored is used';

CREATE SEQUENCE @.benchmark_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE @.benchmark_id_seq OWNED BY @.benchmark.id;

CREATE TABLE @.checksum (
    table_name character varying NOT NULL,
    key bigint NOT NULL,
    high bigint NOT NULL,
    low bigint NOT NULL
);

COMMENT ON TABLE @.checksum IS 'Checksums of what this program wrote; suffrage db check compares them';

COMMENT ON COLUMN @.checksum.table_name IS 'the table of the rows';

COMMENT ON COLUMN @.checksum.key IS 'what the rows belong to, such as the key of their run or finding';

COMMENT ON COLUMN @.checksum.high IS 'sum of the first 64-bit hashes of the rows, modulo 2^64, signed';

COMMENT ON COLUMN @.checksum.low IS 'sum of the second 64-bit hashes';

CREATE TABLE @.database (
    id character varying NOT NULL,
    created timestamp with time zone NOT NULL
);

COMMENT ON TABLE @.database IS 'Identity of this store; one row';

COMMENT ON COLUMN @.database.id IS 'UUID made when the store was created';

COMMENT ON COLUMN @.database.created IS 'when the store was created, UTC';

CREATE TABLE @.embedding (
    id integer NOT NULL,
    encoder_id integer NOT NULL,
    prompt_id integer NOT NULL,
    vector bytea NOT NULL
);

COMMENT ON TABLE @.embedding IS 'A prompt''s vector';

COMMENT ON COLUMN @.embedding.id IS 'key';

COMMENT ON COLUMN @.embedding.encoder_id IS 'the encoder that computed it';

COMMENT ON COLUMN @.embedding.prompt_id IS 'the prompt';

COMMENT ON COLUMN @.embedding.vector IS 'little-endian float32, as many as the encoder has dimensions';

CREATE SEQUENCE @.embedding_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE @.embedding_id_seq OWNED BY @.embedding.id;

CREATE TABLE @.encoder (
    id integer NOT NULL,
    name character varying NOT NULL,
    revision character varying NOT NULL,
    template character varying NOT NULL,
    dimensions integer NOT NULL
);

COMMENT ON TABLE @.encoder IS 'A model that embeds the text of prompts';

COMMENT ON COLUMN @.encoder.id IS 'key';

COMMENT ON COLUMN @.encoder.name IS 'such as all-MiniLM-L6-v2';

COMMENT ON COLUMN @.encoder.revision IS 'version of its weights; '''' where unknown';

COMMENT ON COLUMN @.encoder.template IS 'which text of the prompt is embedded';

COMMENT ON COLUMN @.encoder.dimensions IS 'length of its vectors';

CREATE SEQUENCE @.encoder_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE @.encoder_id_seq OWNED BY @.encoder.id;

CREATE TABLE @.evaluation_lease (
    run_id integer NOT NULL,
    prompt_id integer NOT NULL,
    holder character varying NOT NULL,
    expires double precision NOT NULL
);

COMMENT ON TABLE @.evaluation_lease IS 'A prompt of an unfinished run that a command is evaluating';

COMMENT ON COLUMN @.evaluation_lease.run_id IS 'the run that is being evaluated';

COMMENT ON COLUMN @.evaluation_lease.prompt_id IS 'the prompt';

COMMENT ON COLUMN @.evaluation_lease.holder IS 'the command that evaluates the prompt: machine, process and a random number';

COMMENT ON COLUMN @.evaluation_lease.expires IS 'when another command may evaluate the prompt: seconds since 1970-01-01 UTC, by the clock of the database server, or of the machine for SQLite';

CREATE TABLE @.filter_decision (
    finding_id integer CONSTRAINT filter_decision_analysis_id_not_null NOT NULL,
    prompt_id integer NOT NULL,
    kept boolean NOT NULL
);

COMMENT ON TABLE @.filter_decision IS 'Whether a filter keeps a prompt';

COMMENT ON COLUMN @.filter_decision.finding_id IS 'the finding';

COMMENT ON COLUMN @.filter_decision.prompt_id IS 'the prompt';

COMMENT ON COLUMN @.filter_decision.kept IS 'whether it stays';

CREATE TABLE @.filter_reason (
    finding_id integer CONSTRAINT filter_reason_analysis_id_not_null NOT NULL,
    prompt_id integer NOT NULL,
    step character varying NOT NULL,
    cluster integer,
    retained boolean NOT NULL
);

COMMENT ON TABLE @.filter_reason IS 'Why a filter flagged a prompt';

COMMENT ON COLUMN @.filter_reason.finding_id IS 'the finding';

COMMENT ON COLUMN @.filter_reason.prompt_id IS 'the prompt';

COMMENT ON COLUMN @.filter_reason.step IS 'such as easy, contaminated, similar';

COMMENT ON COLUMN @.filter_reason.cluster IS 'number of the group of similar prompts it is in';

COMMENT ON COLUMN @.filter_reason.retained IS 'whether it was kept in spite of the reason';

CREATE TABLE @.finding (
    id integer CONSTRAINT analysis_id_not_null NOT NULL,
    benchmark_id integer,
    analysis character varying CONSTRAINT analysis_name_not_null NOT NULL,
    parameters jsonb CONSTRAINT analysis_parameters_not_null NOT NULL,
    selection jsonb CONSTRAINT analysis_selection_not_null NOT NULL,
    seed bigint,
    input_digest character varying CONSTRAINT analysis_input_digest_not_null NOT NULL,
    code_version character varying CONSTRAINT analysis_code_version_not_null NOT NULL,
    filter_id integer,
    weights_id integer,
    encoder_id integer,
    status character varying CONSTRAINT analysis_status_not_null NOT NULL,
    error character varying,
    timings jsonb,
    recorded timestamp with time zone CONSTRAINT analysis_recorded_not_null NOT NULL,
    stale character varying,
    headline character varying,
    evidence jsonb,
    caveats jsonb,
    warnings jsonb,
    leader character varying,
    CONSTRAINT ck_finding_status CHECK ((status IN ('complete', 'failed')))
);

COMMENT ON TABLE @.finding IS 'The recorded result of an analysis';

COMMENT ON COLUMN @.finding.id IS 'key; a larger one came later';

COMMENT ON COLUMN @.finding.benchmark_id IS 'the benchmark it is about';

COMMENT ON COLUMN @.finding.analysis IS 'which analysis, such as prompt-correlation';

COMMENT ON COLUMN @.finding.parameters IS 'options it ran with, by name';

COMMENT ON COLUMN @.finding.selection IS 'which data it saw: metric, condition, runs, models, tasks';

COMMENT ON COLUMN @.finding.seed IS 'seed of its random numbers; null where it draws none';

COMMENT ON COLUMN @.finding.input_digest IS 'SHA-256 of the data it saw';

COMMENT ON COLUMN @.finding.code_version IS 'version of the code that ran';

COMMENT ON COLUMN @.finding.filter_id IS 'the finding whose kept prompts it saw';

COMMENT ON COLUMN @.finding.weights_id IS 'the finding whose prompt weights it used';

COMMENT ON COLUMN @.finding.encoder_id IS 'whose vectors it used';

COMMENT ON COLUMN @.finding.status IS 'complete or failed';

COMMENT ON COLUMN @.finding.error IS 'the error message; null where it is complete';

COMMENT ON COLUMN @.finding.timings IS 'seconds spent to load, compute and draw figures';

COMMENT ON COLUMN @.finding.recorded IS 'when it was recorded, UTC';

COMMENT ON COLUMN @.finding.stale IS 'why it no longer holds, where a run it rests on was deleted';

COMMENT ON COLUMN @.finding.headline IS 'the result in one sentence; null where it failed';

COMMENT ON COLUMN @.finding.evidence IS 'list of sentences with the numbers behind the headline';

COMMENT ON COLUMN @.finding.caveats IS 'list of sentences on what limits the headline';

COMMENT ON COLUMN @.finding.warnings IS 'list of further warnings about the data and the method';

COMMENT ON COLUMN @.finding.leader IS 'the models with the best rank or mean, separated by commas; null where none is ranked';

CREATE TABLE @.finding_artifact (
    finding_id integer CONSTRAINT finding_artifact_analysis_id_not_null NOT NULL,
    name character varying NOT NULL,
    media_type character varying NOT NULL,
    content bytea NOT NULL
);

COMMENT ON TABLE @.finding_artifact IS 'Arrays, tables and pictures of a finding';

COMMENT ON COLUMN @.finding_artifact.finding_id IS 'the finding';

COMMENT ON COLUMN @.finding_artifact.name IS 'file name, such as null.png';

COMMENT ON COLUMN @.finding_artifact.media_type IS 'such as image/png or application/vnd.apache.parquet';

COMMENT ON COLUMN @.finding_artifact.content IS 'the file''s bytes';

CREATE SEQUENCE @.finding_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE @.finding_id_seq OWNED BY @.finding.id;

CREATE TABLE @.finding_metric (
    finding_id integer CONSTRAINT finding_metric_analysis_id_not_null NOT NULL,
    name character varying NOT NULL,
    value double precision,
    reason character varying,
    is_main boolean CONSTRAINT finding_metric_headline_not_null NOT NULL,
    "position" integer DEFAULT 0 NOT NULL,
    CONSTRAINT ck_finding_metric_value_or_reason CHECK (((value IS NULL) = (reason IS NOT NULL)))
);

COMMENT ON TABLE @.finding_metric IS 'A number of a finding, or the reason why there is none';

COMMENT ON COLUMN @.finding_metric.finding_id IS 'the finding';

COMMENT ON COLUMN @.finding_metric.name IS 'such as hamming.variance.pvalue';

COMMENT ON COLUMN @.finding_metric.value IS 'the number; null where it is undefined';

COMMENT ON COLUMN @.finding_metric.reason IS 'why it is undefined, such as: invariant under this null';

COMMENT ON COLUMN @.finding_metric.is_main IS 'whether it is shown in MLflow';

COMMENT ON COLUMN @.finding_metric."position" IS 'place in the finding''s own order, from 0';

CREATE TABLE @.finding_run (
    finding_id integer CONSTRAINT analysis_run_analysis_id_not_null NOT NULL,
    run_id integer CONSTRAINT analysis_run_run_id_not_null NOT NULL,
    role character varying CONSTRAINT analysis_run_role_not_null NOT NULL,
    checksum character varying CONSTRAINT analysis_run_checksum_not_null NOT NULL,
    status character varying DEFAULT 'complete'::character varying CONSTRAINT analysis_run_status_not_null NOT NULL
);

COMMENT ON TABLE @.finding_run IS 'Which runs a finding rests on';

COMMENT ON COLUMN @.finding_run.finding_id IS 'the finding';

COMMENT ON COLUMN @.finding_run.run_id IS 'the run';

COMMENT ON COLUMN @.finding_run.role IS 'what it served as; ''scores'' by default';

COMMENT ON COLUMN @.finding_run.checksum IS 'the run''s checksum when it was read';

COMMENT ON COLUMN @.finding_run.status IS 'the run''s status when it was read';

CREATE TABLE @.metric (
    id integer NOT NULL,
    name character varying NOT NULL,
    higher_is_better boolean NOT NULL,
    lower double precision,
    upper double precision
);

COMMENT ON TABLE @.metric IS 'How answers are scored';

COMMENT ON COLUMN @.metric.id IS 'key';

COMMENT ON COLUMN @.metric.name IS 'such as accuracy; a filter of the harness is part of the name';

COMMENT ON COLUMN @.metric.higher_is_better IS 'whether larger scores are better';

COMMENT ON COLUMN @.metric.lower IS 'smallest possible score; null where unbounded';

COMMENT ON COLUMN @.metric.upper IS 'largest possible score; null where unbounded';

CREATE SEQUENCE @.metric_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE @.metric_id_seq OWNED BY @.metric.id;

CREATE TABLE @.model (
    id integer NOT NULL,
    name character varying NOT NULL,
    organization character varying,
    family character varying,
    parameters bigint,
    released date,
    open_weights boolean
);

COMMENT ON TABLE @.model IS 'A language model under test';

COMMENT ON COLUMN @.model.id IS 'key';

COMMENT ON COLUMN @.model.name IS 'name, such as org/model-7b';

COMMENT ON COLUMN @.model.organization IS 'organization that made it';

COMMENT ON COLUMN @.model.family IS 'models of common descent, such as llama-3';

COMMENT ON COLUMN @.model.parameters IS 'number of parameters';

COMMENT ON COLUMN @.model.released IS 'day of its release';

COMMENT ON COLUMN @.model.open_weights IS 'whether its weights can be downloaded';

CREATE TABLE @.model_alias (
    name character varying NOT NULL,
    model_id integer NOT NULL
);

COMMENT ON TABLE @.model_alias IS 'Another name of a model';

COMMENT ON COLUMN @.model_alias.name IS 'the other name';

COMMENT ON COLUMN @.model_alias.model_id IS 'the model';

CREATE SEQUENCE @.model_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE @.model_id_seq OWNED BY @.model.id;

CREATE TABLE @.prompt (
    id integer NOT NULL,
    task_id integer NOT NULL,
    content_hash character varying,
    occurrence integer NOT NULL,
    text character varying,
    choices jsonb,
    answer character varying,
    split character varying,
    details jsonb
);

COMMENT ON TABLE @.prompt IS 'One item of a task';

COMMENT ON COLUMN @.prompt.id IS 'key';

COMMENT ON COLUMN @.prompt.task_id IS 'the task it is part of';

COMMENT ON COLUMN @.prompt.content_hash IS 'SHA-256 of text and choices; null until the text is known';

COMMENT ON COLUMN @.prompt.occurrence IS '0 for the first prompt of a task with this content, 1 for the second, ...';

COMMENT ON COLUMN @.prompt.text IS 'the question, without few-shot examples; null until known';

COMMENT ON COLUMN @.prompt.choices IS 'options of a multiple-choice prompt, a list of texts';

COMMENT ON COLUMN @.prompt.answer IS 'the reference answer: the text, or the letter of the option';

COMMENT ON COLUMN @.prompt.split IS 'train, validation, test, ...; null where unknown';

COMMENT ON COLUMN @.prompt.details IS 'further fields of the source, by name';

CREATE TABLE @.prompt_alias (
    task_id integer NOT NULL,
    namespace character varying NOT NULL,
    key character varying NOT NULL,
    prompt_id integer NOT NULL
);

COMMENT ON TABLE @.prompt_alias IS 'The key of a prompt in a harness or a family of files';

COMMENT ON COLUMN @.prompt_alias.task_id IS 'the task of the prompt';

COMMENT ON COLUMN @.prompt_alias.namespace IS 'source of the key: '''' for tables, lm_eval, ...';

COMMENT ON COLUMN @.prompt_alias.key IS 'the key, such as a row id or a document hash';

COMMENT ON COLUMN @.prompt_alias.prompt_id IS 'the prompt';

CREATE SEQUENCE @.prompt_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE @.prompt_id_seq OWNED BY @.prompt.id;

CREATE TABLE @.prompt_value (
    finding_id integer CONSTRAINT prompt_value_analysis_id_not_null NOT NULL,
    name character varying NOT NULL,
    prompt_id integer NOT NULL,
    value double precision NOT NULL
);

COMMENT ON TABLE @.prompt_value IS 'A number per prompt: weights, slopes, difficulties';

COMMENT ON COLUMN @.prompt_value.finding_id IS 'the finding';

COMMENT ON COLUMN @.prompt_value.name IS 'which number';

COMMENT ON COLUMN @.prompt_value.prompt_id IS 'the prompt';

COMMENT ON COLUMN @.prompt_value.value IS 'the number';

CREATE TABLE @.publication (
    tracking_uri character varying NOT NULL,
    kind character varying NOT NULL,
    ref_id integer NOT NULL,
    mlflow_run_id character varying NOT NULL,
    version character varying NOT NULL,
    published timestamp with time zone NOT NULL,
    CONSTRAINT ck_publication_kind CHECK ((kind IN ('finding', 'run')))
);

COMMENT ON TABLE @.publication IS 'What was published to which MLflow store';

COMMENT ON COLUMN @.publication.tracking_uri IS 'the MLflow store, without password';

COMMENT ON COLUMN @.publication.kind IS 'finding or run';

COMMENT ON COLUMN @.publication.ref_id IS 'key of the finding or run';

COMMENT ON COLUMN @.publication.mlflow_run_id IS 'the MLflow run that shows it';

COMMENT ON COLUMN @.publication.version IS 'checksum of what was published; another one means it must be published anew';

COMMENT ON COLUMN @.publication.published IS 'when, UTC';

CREATE TABLE @.ranking (
    finding_id integer CONSTRAINT ranking_analysis_id_not_null NOT NULL,
    scheme character varying NOT NULL,
    model_id integer NOT NULL,
    rank double precision NOT NULL,
    score double precision NOT NULL,
    low double precision,
    high double precision,
    rank_low double precision,
    rank_high double precision
);

COMMENT ON TABLE @.ranking IS 'Models in the order of one scheme';

COMMENT ON COLUMN @.ranking.finding_id IS 'the finding';

COMMENT ON COLUMN @.ranking.scheme IS 'what they are ranked by, such as medoids';

COMMENT ON COLUMN @.ranking.model_id IS 'the model';

COMMENT ON COLUMN @.ranking.rank IS '1 is best; ties share the mean rank';

COMMENT ON COLUMN @.ranking.score IS 'what it is ranked by';

COMMENT ON COLUMN @.ranking.low IS 'lower end of the score''s interval';

COMMENT ON COLUMN @.ranking.high IS 'upper end of the score''s interval';

COMMENT ON COLUMN @.ranking.rank_low IS 'best rank of the interval';

COMMENT ON COLUMN @.ranking.rank_high IS 'worst rank of the interval';

CREATE TABLE @.run (
    id integer NOT NULL,
    benchmark_id integer NOT NULL,
    model_id integer NOT NULL,
    condition character varying NOT NULL,
    variant character varying NOT NULL,
    label character varying NOT NULL,
    few_shot integer,
    settings jsonb,
    limited boolean NOT NULL,
    status character varying NOT NULL,
    n_scores bigint NOT NULL,
    checksum character varying NOT NULL,
    started timestamp with time zone,
    ingested timestamp with time zone NOT NULL,
    superseded_by integer,
    reason character varying,
    unverified character varying,
    CONSTRAINT ck_run_condition CHECK ((condition IN ('full', 'answer_only'))),
    CONSTRAINT ck_run_status CHECK ((status IN ('partial', 'complete', 'hidden', 'superseded')))
);

COMMENT ON TABLE @.run IS 'One model answering one benchmark once; a larger id came later';

COMMENT ON COLUMN @.run.id IS 'key; a larger one came later';

COMMENT ON COLUMN @.run.benchmark_id IS 'the benchmark that the model was evaluated on';

COMMENT ON COLUMN @.run.model_id IS 'the model that was evaluated';

COMMENT ON COLUMN @.run.condition IS 'full, or answer_only: the question was withheld';

COMMENT ON COLUMN @.run.variant IS 'variant or perturbation of the prompts; '''' is the plain one';

COMMENT ON COLUMN @.run.label IS 'the harness''s time stamp; else '''' for the first, then #2, #3';

COMMENT ON COLUMN @.run.few_shot IS 'few-shot examples before each question; null where unknown or mixed';

COMMENT ON COLUMN @.run.settings IS 'how the model was run, by name';

COMMENT ON COLUMN @.run.limited IS 'whether the evaluation was limited to a part of the benchmark on purpose';

COMMENT ON COLUMN @.run.status IS 'complete, partial (its file was damaged, or its evaluation has not finished), hidden or superseded; the last three are selected only by key';

COMMENT ON COLUMN @.run.n_scores IS 'how many rows of score it has';

COMMENT ON COLUMN @.run.checksum IS 'order-free 128-bit checksum of its rows of score, hexadecimal';

COMMENT ON COLUMN @.run.started IS 'when the model was run, UTC; null where unknown';

COMMENT ON COLUMN @.run.ingested IS 'when it was ingested, UTC';

COMMENT ON COLUMN @.run.superseded_by IS 'the run that replaced it; null where none did';

COMMENT ON COLUMN @.run.reason IS 'why it is not complete, as text';

COMMENT ON COLUMN @.run.unverified IS 'which scores that its harness reports differ from those computed from its rows; null where none does';

CREATE SEQUENCE @.run_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE @.run_id_seq OWNED BY @.run.id;

CREATE TABLE @.run_source (
    run_id integer NOT NULL,
    source_id integer NOT NULL
);

COMMENT ON TABLE @.run_source IS 'Which files a run came from';

COMMENT ON COLUMN @.run_source.run_id IS 'the run';

COMMENT ON COLUMN @.run_source.source_id IS 'the file';

CREATE TABLE @.score (
    run_id integer NOT NULL,
    metric_id integer NOT NULL,
    prompt_id integer NOT NULL,
    trial integer NOT NULL,
    value double precision NOT NULL,
    benchmark_id integer DEFAULT 0 CONSTRAINT score_partitioned_benchmark_id_not_null NOT NULL,
    CONSTRAINT ck_score_finite CHECK (((value >= ('-179769313486231570000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision) AND (value <= ('179769313486231570000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision)))
)
PARTITION BY LIST (benchmark_id);

COMMENT ON TABLE @.score IS 'A number for one prompt; what was not measured has no row';

COMMENT ON COLUMN @.score.run_id IS 'the run';

COMMENT ON COLUMN @.score.metric_id IS 'the metric';

COMMENT ON COLUMN @.score.prompt_id IS 'the prompt';

COMMENT ON COLUMN @.score.trial IS '0 for the first answer to the prompt, 1 for the second, ...';

COMMENT ON COLUMN @.score.value IS 'the score, in the metric''s unit; finite';

COMMENT ON COLUMN @.score.benchmark_id IS 'the benchmark of the run, whose partition holds the row; PostgreSQL only. It may be left out: the row is then moved to its partition, one at a time';

CREATE TABLE @.score_unrouted (
    run_id integer CONSTRAINT score_run_id_not_null NOT NULL,
    metric_id integer CONSTRAINT score_metric_id_not_null NOT NULL,
    prompt_id integer CONSTRAINT score_prompt_id_not_null NOT NULL,
    trial integer CONSTRAINT score_trial_not_null NOT NULL,
    value double precision CONSTRAINT score_value_not_null NOT NULL,
    benchmark_id integer DEFAULT 0 CONSTRAINT score_partitioned_benchmark_id_not_null NOT NULL,
    CONSTRAINT ck_score_finite CHECK (((value >= ('-179769313486231570000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision) AND (value <= ('179769313486231570000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision))),
    CONSTRAINT ck_score_unrouted CHECK (false)
);

COMMENT ON TABLE @.score_unrouted IS 'Empty: moves rows without benchmark_id to their partition';

CREATE TABLE @.sealed_metric (
    run_id integer NOT NULL,
    metric_id integer NOT NULL,
    n_scores bigint NOT NULL,
    mean double precision NOT NULL
);

COMMENT ON TABLE @.sealed_metric IS 'Number and mean of the scores of a sealed run under a metric';

COMMENT ON COLUMN @.sealed_metric.run_id IS 'the run';

COMMENT ON COLUMN @.sealed_metric.metric_id IS 'the metric';

COMMENT ON COLUMN @.sealed_metric.n_scores IS 'how many rows of score are in the files';

COMMENT ON COLUMN @.sealed_metric.mean IS 'their mean, as avg(value) of the database';

CREATE TABLE @.sealed_run (
    run_id integer NOT NULL,
    address character varying NOT NULL,
    digest character varying NOT NULL,
    checksum character varying NOT NULL,
    answer_checksum character varying NOT NULL,
    n_answers bigint NOT NULL,
    rows_in_store boolean NOT NULL,
    sealed timestamp with time zone NOT NULL
);

COMMENT ON TABLE @.sealed_run IS 'A run whose scores and answers are in Parquet files outside the store';

COMMENT ON COLUMN @.sealed_run.run_id IS 'the run';

COMMENT ON COLUMN @.sealed_run.address IS 'the folder of the files, or its address such as s3://bucket/folder';

COMMENT ON COLUMN @.sealed_run.digest IS 'SHA-256 of the manifest in the folder, which has the SHA-256 of the other files';

COMMENT ON COLUMN @.sealed_run.checksum IS 'run.checksum of the scores in the files';

COMMENT ON COLUMN @.sealed_run.answer_checksum IS 'checksum of the answers in the files; all zeros without any';

COMMENT ON COLUMN @.sealed_run.n_answers IS 'how many rows of answer are in the files';

COMMENT ON COLUMN @.sealed_run.rows_in_store IS 'whether the rows are in score and answer as well, to be read';

COMMENT ON COLUMN @.sealed_run.sealed IS 'when it was sealed, UTC';

CREATE TABLE @.source (
    id integer NOT NULL,
    identity character varying NOT NULL,
    digest character varying NOT NULL,
    path character varying NOT NULL,
    format character varying NOT NULL,
    harness character varying,
    ingested timestamp with time zone NOT NULL
);

COMMENT ON TABLE @.source IS 'An ingested file, or the ingested files of one run';

COMMENT ON COLUMN @.source.id IS 'key';

COMMENT ON COLUMN @.source.identity IS 'SHA-256 of content and of the options it was read with';

COMMENT ON COLUMN @.source.digest IS 'SHA-256 of the bytes on disk';

COMMENT ON COLUMN @.source.path IS 'name of the file when it was ingested';

COMMENT ON COLUMN @.source.format IS 'name of the format it was read as';

COMMENT ON COLUMN @.source.harness IS 'program and version that wrote it, where known';

COMMENT ON COLUMN @.source.ingested IS 'when it was ingested, UTC';

CREATE SEQUENCE @.source_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE @.source_id_seq OWNED BY @.source.id;

CREATE TABLE @.source_metric (
    source_id integer NOT NULL,
    benchmark_id integer NOT NULL,
    metric_id integer NOT NULL
);

COMMENT ON TABLE @.source_metric IS 'Under which metrics the scores of a file were stored in a benchmark';

COMMENT ON COLUMN @.source_metric.source_id IS 'the file';

COMMENT ON COLUMN @.source_metric.benchmark_id IS 'the benchmark';

COMMENT ON COLUMN @.source_metric.metric_id IS 'the metric';

CREATE TABLE @.suffrage_version (
    version_num character varying(32) NOT NULL
);

CREATE TABLE @.task (
    id integer NOT NULL,
    benchmark_id integer NOT NULL,
    name character varying NOT NULL
);

COMMENT ON TABLE @.task IS 'A named part of a benchmark';

COMMENT ON COLUMN @.task.id IS 'key';

COMMENT ON COLUMN @.task.benchmark_id IS 'the benchmark it is part of';

COMMENT ON COLUMN @.task.name IS 'name, such as physics; '''' holds prompts without a task';

CREATE TABLE @.task_alias (
    benchmark_id integer NOT NULL,
    name character varying NOT NULL,
    task_id integer NOT NULL
);

COMMENT ON TABLE @.task_alias IS 'Another name of a task in imported files';

COMMENT ON COLUMN @.task_alias.benchmark_id IS 'the benchmark of the task';

COMMENT ON COLUMN @.task_alias.name IS 'the other name, such as mmlu_pro_biology';

COMMENT ON COLUMN @.task_alias.task_id IS 'the task';

CREATE SEQUENCE @.task_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE @.task_id_seq OWNED BY @.task.id;

CREATE TABLE @.task_score (
    run_id integer NOT NULL,
    metric_id integer NOT NULL,
    task_id integer NOT NULL,
    value double precision NOT NULL,
    stderr double precision,
    n_prompts integer,
    CONSTRAINT ck_task_score_finite CHECK (((value >= ('-179769313486231570000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision) AND (value <= ('179769313486231570000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision)))
);

COMMENT ON TABLE @.task_score IS 'A score for a whole task, where nothing finer was published';

COMMENT ON COLUMN @.task_score.run_id IS 'the run';

COMMENT ON COLUMN @.task_score.metric_id IS 'the metric';

COMMENT ON COLUMN @.task_score.task_id IS 'the task';

COMMENT ON COLUMN @.task_score.value IS 'the score, in the metric''s unit; finite';

COMMENT ON COLUMN @.task_score.stderr IS 'standard error as published';

COMMENT ON COLUMN @.task_score.n_prompts IS 'number of prompts behind it, as published';

CREATE TABLE @.task_value (
    finding_id integer CONSTRAINT task_value_analysis_id_not_null NOT NULL,
    name character varying NOT NULL,
    task_id integer NOT NULL,
    value double precision NOT NULL
);

COMMENT ON TABLE @.task_value IS 'A number per task';

COMMENT ON COLUMN @.task_value.finding_id IS 'the finding';

COMMENT ON COLUMN @.task_value.name IS 'which number';

COMMENT ON COLUMN @.task_value.task_id IS 'the task';

COMMENT ON COLUMN @.task_value.value IS 'the number';

CREATE TABLE @.undo_record (
    id integer NOT NULL,
    source_id integer,
    path character varying NOT NULL,
    changes bytea NOT NULL,
    ingested timestamp with time zone NOT NULL
);

COMMENT ON TABLE @.undo_record IS 'What an import added and changed; suffrage undo reverses it';

COMMENT ON COLUMN @.undo_record.id IS 'key; a larger one came later';

COMMENT ON COLUMN @.undo_record.source_id IS 'the imported file; null for an archive of a store';

COMMENT ON COLUMN @.undo_record.path IS 'name of the file when it was ingested';

COMMENT ON COLUMN @.undo_record.changes IS 'keys of the added rows and replaced values: JSON, compressed with zlib';

COMMENT ON COLUMN @.undo_record.ingested IS 'when it was ingested, UTC';

CREATE SEQUENCE @.undo_record_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE @.undo_record_id_seq OWNED BY @.undo_record.id;

ALTER TABLE ONLY @.answer ATTACH PARTITION @.answer_unrouted FOR VALUES IN (0);

ALTER TABLE ONLY @.score ATTACH PARTITION @.score_unrouted FOR VALUES IN (0);

ALTER TABLE ONLY @.benchmark ALTER COLUMN id SET DEFAULT nextval('@.benchmark_id_seq'::regclass);

ALTER TABLE ONLY @.embedding ALTER COLUMN id SET DEFAULT nextval('@.embedding_id_seq'::regclass);

ALTER TABLE ONLY @.encoder ALTER COLUMN id SET DEFAULT nextval('@.encoder_id_seq'::regclass);

ALTER TABLE ONLY @.finding ALTER COLUMN id SET DEFAULT nextval('@.finding_id_seq'::regclass);

ALTER TABLE ONLY @.metric ALTER COLUMN id SET DEFAULT nextval('@.metric_id_seq'::regclass);

ALTER TABLE ONLY @.model ALTER COLUMN id SET DEFAULT nextval('@.model_id_seq'::regclass);

ALTER TABLE ONLY @.prompt ALTER COLUMN id SET DEFAULT nextval('@.prompt_id_seq'::regclass);

ALTER TABLE ONLY @.run ALTER COLUMN id SET DEFAULT nextval('@.run_id_seq'::regclass);

ALTER TABLE ONLY @.source ALTER COLUMN id SET DEFAULT nextval('@.source_id_seq'::regclass);

ALTER TABLE ONLY @.task ALTER COLUMN id SET DEFAULT nextval('@.task_id_seq'::regclass);

ALTER TABLE ONLY @.undo_record ALTER COLUMN id SET DEFAULT nextval('@.undo_record_id_seq'::regclass);

ALTER TABLE ONLY @.benchmark
    ADD CONSTRAINT pk_benchmark PRIMARY KEY (id);

ALTER TABLE ONLY @.checksum
    ADD CONSTRAINT pk_checksum PRIMARY KEY (table_name, key);

ALTER TABLE ONLY @.database
    ADD CONSTRAINT pk_database PRIMARY KEY (id);

ALTER TABLE ONLY @.embedding
    ADD CONSTRAINT pk_embedding PRIMARY KEY (id);

ALTER TABLE ONLY @.encoder
    ADD CONSTRAINT pk_encoder PRIMARY KEY (id);

ALTER TABLE ONLY @.evaluation_lease
    ADD CONSTRAINT pk_evaluation_lease PRIMARY KEY (run_id, prompt_id);

ALTER TABLE ONLY @.filter_decision
    ADD CONSTRAINT pk_filter_decision PRIMARY KEY (finding_id, prompt_id);

ALTER TABLE ONLY @.filter_reason
    ADD CONSTRAINT pk_filter_reason PRIMARY KEY (finding_id, prompt_id, step);

ALTER TABLE ONLY @.finding
    ADD CONSTRAINT pk_finding PRIMARY KEY (id);

ALTER TABLE ONLY @.finding_artifact
    ADD CONSTRAINT pk_finding_artifact PRIMARY KEY (finding_id, name);

ALTER TABLE ONLY @.finding_metric
    ADD CONSTRAINT pk_finding_metric PRIMARY KEY (finding_id, name);

ALTER TABLE ONLY @.finding_run
    ADD CONSTRAINT pk_finding_run PRIMARY KEY (finding_id, run_id, role);

ALTER TABLE ONLY @.metric
    ADD CONSTRAINT pk_metric PRIMARY KEY (id);

ALTER TABLE ONLY @.model
    ADD CONSTRAINT pk_model PRIMARY KEY (id);

ALTER TABLE ONLY @.model_alias
    ADD CONSTRAINT pk_model_alias PRIMARY KEY (name);

ALTER TABLE ONLY @.prompt
    ADD CONSTRAINT pk_prompt PRIMARY KEY (id);

ALTER TABLE ONLY @.prompt_alias
    ADD CONSTRAINT pk_prompt_alias PRIMARY KEY (task_id, namespace, key);

ALTER TABLE ONLY @.prompt_value
    ADD CONSTRAINT pk_prompt_value PRIMARY KEY (finding_id, name, prompt_id);

ALTER TABLE ONLY @.publication
    ADD CONSTRAINT pk_publication PRIMARY KEY (tracking_uri, kind, ref_id);

ALTER TABLE ONLY @.ranking
    ADD CONSTRAINT pk_ranking PRIMARY KEY (finding_id, scheme, model_id);

ALTER TABLE ONLY @.run
    ADD CONSTRAINT pk_run PRIMARY KEY (id);

ALTER TABLE ONLY @.run_source
    ADD CONSTRAINT pk_run_source PRIMARY KEY (run_id, source_id);

ALTER TABLE ONLY @.sealed_metric
    ADD CONSTRAINT pk_sealed_metric PRIMARY KEY (run_id, metric_id);

ALTER TABLE ONLY @.sealed_run
    ADD CONSTRAINT pk_sealed_run PRIMARY KEY (run_id);

ALTER TABLE ONLY @.source
    ADD CONSTRAINT pk_source PRIMARY KEY (id);

ALTER TABLE ONLY @.source_metric
    ADD CONSTRAINT pk_source_metric PRIMARY KEY (source_id, benchmark_id, metric_id);

ALTER TABLE ONLY @.task
    ADD CONSTRAINT pk_task PRIMARY KEY (id);

ALTER TABLE ONLY @.task_alias
    ADD CONSTRAINT pk_task_alias PRIMARY KEY (benchmark_id, name);

ALTER TABLE ONLY @.task_score
    ADD CONSTRAINT pk_task_score PRIMARY KEY (run_id, metric_id, task_id);

ALTER TABLE ONLY @.task_value
    ADD CONSTRAINT pk_task_value PRIMARY KEY (finding_id, name, task_id);

ALTER TABLE ONLY @.undo_record
    ADD CONSTRAINT pk_undo_record PRIMARY KEY (id);

ALTER TABLE ONLY @.suffrage_version
    ADD CONSTRAINT suffrage_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY @.benchmark
    ADD CONSTRAINT uq_benchmark_name_revision UNIQUE (name, revision);

ALTER TABLE ONLY @.embedding
    ADD CONSTRAINT uq_embedding_encoder_id_prompt_id UNIQUE (encoder_id, prompt_id);

ALTER TABLE ONLY @.encoder
    ADD CONSTRAINT uq_encoder_name_revision_template UNIQUE (name, revision, template);

ALTER TABLE ONLY @.metric
    ADD CONSTRAINT uq_metric_name UNIQUE (name);

ALTER TABLE ONLY @.model
    ADD CONSTRAINT uq_model_name UNIQUE (name);

ALTER TABLE ONLY @.prompt
    ADD CONSTRAINT uq_prompt_task_id_content_hash_occurrence UNIQUE (task_id, content_hash, occurrence);

ALTER TABLE ONLY @.run
    ADD CONSTRAINT uq_run_benchmark_id_id UNIQUE (benchmark_id, id);

ALTER TABLE ONLY @.run
    ADD CONSTRAINT uq_run_benchmark_id_model_id_condition_variant_label UNIQUE (benchmark_id, model_id, condition, variant, label);

ALTER TABLE ONLY @.source
    ADD CONSTRAINT uq_source_identity UNIQUE (identity);

ALTER TABLE ONLY @.task
    ADD CONSTRAINT uq_task_benchmark_id_name UNIQUE (benchmark_id, name);

CREATE INDEX ix_evaluation_lease_prompt_id ON @.evaluation_lease USING btree (prompt_id);

CREATE INDEX ix_finding_analysis ON @.finding USING btree (analysis);

CREATE INDEX ix_finding_benchmark_id ON @.finding USING btree (benchmark_id);

CREATE INDEX ix_finding_run_run_id ON @.finding_run USING btree (run_id);

CREATE INDEX ix_prompt_alias_prompt_id ON @.prompt_alias USING btree (prompt_id);

CREATE INDEX ix_run_model_id ON @.run USING btree (model_id);

CREATE INDEX ix_run_source_source_id ON @.run_source USING btree (source_id);

CREATE INDEX ix_run_superseded_by ON @.run USING btree (superseded_by);

CREATE INDEX ix_task_alias_task_id ON @.task_alias USING btree (task_id);

CREATE INDEX ix_undo_record_source_id ON @.undo_record USING btree (source_id);

CREATE TRIGGER answer_moved BEFORE INSERT ON @.answer_unrouted FOR EACH ROW EXECUTE FUNCTION @.move_to_partition('answer');

ALTER TABLE @.answer_unrouted ENABLE ALWAYS TRIGGER answer_moved;

CREATE CONSTRAINT TRIGGER benchmark_inserted AFTER INSERT ON @.benchmark DEFERRABLE INITIALLY IMMEDIATE FOR EACH ROW EXECUTE FUNCTION @.benchmark_has_partitions();

CREATE TRIGGER metric_deleted AFTER DELETE ON @.metric REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.parent_has_no_scores();

CREATE TRIGGER metric_truncated AFTER TRUNCATE ON @.metric FOR EACH STATEMENT EXECUTE FUNCTION @.parent_is_not_truncated();

CREATE TRIGGER metric_updated AFTER UPDATE ON @.metric REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.parent_has_no_scores();

CREATE TRIGGER prompt_deleted AFTER DELETE ON @.prompt REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.parent_has_no_scores();

CREATE TRIGGER prompt_truncated AFTER TRUNCATE ON @.prompt FOR EACH STATEMENT EXECUTE FUNCTION @.parent_is_not_truncated();

CREATE TRIGGER prompt_updated AFTER UPDATE ON @.prompt REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.parent_has_no_scores();

CREATE TRIGGER score_inserted AFTER INSERT ON @.score REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION @.score_has_parents();

CREATE TRIGGER score_moved BEFORE INSERT ON @.score_unrouted FOR EACH ROW EXECUTE FUNCTION @.move_to_partition('score');

ALTER TABLE @.score_unrouted ENABLE ALWAYS TRIGGER score_moved;

CREATE TRIGGER score_updated AFTER UPDATE ON @.score REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION @.score_has_parents();

ALTER TABLE @.answer
    ADD CONSTRAINT fk_answer_prompt_id_prompt FOREIGN KEY (prompt_id) REFERENCES @.prompt(id);

ALTER TABLE @.answer
    ADD CONSTRAINT fk_answer_run_id_run FOREIGN KEY (benchmark_id, run_id) REFERENCES @.run(benchmark_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY @.benchmark
    ADD CONSTRAINT fk_benchmark_default_metric_id_metric FOREIGN KEY (default_metric_id) REFERENCES @.metric(id);

ALTER TABLE ONLY @.embedding
    ADD CONSTRAINT fk_embedding_encoder_id_encoder FOREIGN KEY (encoder_id) REFERENCES @.encoder(id);

ALTER TABLE ONLY @.embedding
    ADD CONSTRAINT fk_embedding_prompt_id_prompt FOREIGN KEY (prompt_id) REFERENCES @.prompt(id);

ALTER TABLE ONLY @.evaluation_lease
    ADD CONSTRAINT fk_evaluation_lease_prompt_id_prompt FOREIGN KEY (prompt_id) REFERENCES @.prompt(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.evaluation_lease
    ADD CONSTRAINT fk_evaluation_lease_run_id_run FOREIGN KEY (run_id) REFERENCES @.run(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.filter_decision
    ADD CONSTRAINT fk_filter_decision_finding_id_finding FOREIGN KEY (finding_id) REFERENCES @.finding(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.filter_decision
    ADD CONSTRAINT fk_filter_decision_prompt_id_prompt FOREIGN KEY (prompt_id) REFERENCES @.prompt(id);

ALTER TABLE ONLY @.filter_reason
    ADD CONSTRAINT fk_filter_reason_finding_id_finding FOREIGN KEY (finding_id) REFERENCES @.finding(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.filter_reason
    ADD CONSTRAINT fk_filter_reason_prompt_id_prompt FOREIGN KEY (prompt_id) REFERENCES @.prompt(id);

ALTER TABLE ONLY @.finding_artifact
    ADD CONSTRAINT fk_finding_artifact_finding_id_finding FOREIGN KEY (finding_id) REFERENCES @.finding(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.finding
    ADD CONSTRAINT fk_finding_benchmark_id_benchmark FOREIGN KEY (benchmark_id) REFERENCES @.benchmark(id);

ALTER TABLE ONLY @.finding
    ADD CONSTRAINT fk_finding_encoder_id_encoder FOREIGN KEY (encoder_id) REFERENCES @.encoder(id);

ALTER TABLE ONLY @.finding
    ADD CONSTRAINT fk_finding_filter_id_finding FOREIGN KEY (filter_id) REFERENCES @.finding(id);

ALTER TABLE ONLY @.finding_metric
    ADD CONSTRAINT fk_finding_metric_finding_id_finding FOREIGN KEY (finding_id) REFERENCES @.finding(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.finding_run
    ADD CONSTRAINT fk_finding_run_finding_id_finding FOREIGN KEY (finding_id) REFERENCES @.finding(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.finding_run
    ADD CONSTRAINT fk_finding_run_run_id_run FOREIGN KEY (run_id) REFERENCES @.run(id);

ALTER TABLE ONLY @.finding
    ADD CONSTRAINT fk_finding_weights_id_finding FOREIGN KEY (weights_id) REFERENCES @.finding(id);

ALTER TABLE ONLY @.model_alias
    ADD CONSTRAINT fk_model_alias_model_id_model FOREIGN KEY (model_id) REFERENCES @.model(id);

ALTER TABLE ONLY @.prompt_alias
    ADD CONSTRAINT fk_prompt_alias_prompt_id_prompt FOREIGN KEY (prompt_id) REFERENCES @.prompt(id);

ALTER TABLE ONLY @.prompt_alias
    ADD CONSTRAINT fk_prompt_alias_task_id_task FOREIGN KEY (task_id) REFERENCES @.task(id);

ALTER TABLE ONLY @.prompt
    ADD CONSTRAINT fk_prompt_task_id_task FOREIGN KEY (task_id) REFERENCES @.task(id);

ALTER TABLE ONLY @.prompt_value
    ADD CONSTRAINT fk_prompt_value_finding_id_finding FOREIGN KEY (finding_id) REFERENCES @.finding(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.prompt_value
    ADD CONSTRAINT fk_prompt_value_prompt_id_prompt FOREIGN KEY (prompt_id) REFERENCES @.prompt(id);

ALTER TABLE ONLY @.ranking
    ADD CONSTRAINT fk_ranking_finding_id_finding FOREIGN KEY (finding_id) REFERENCES @.finding(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.ranking
    ADD CONSTRAINT fk_ranking_model_id_model FOREIGN KEY (model_id) REFERENCES @.model(id);

ALTER TABLE ONLY @.run
    ADD CONSTRAINT fk_run_benchmark_id_benchmark FOREIGN KEY (benchmark_id) REFERENCES @.benchmark(id);

ALTER TABLE ONLY @.run
    ADD CONSTRAINT fk_run_model_id_model FOREIGN KEY (model_id) REFERENCES @.model(id);

ALTER TABLE ONLY @.run_source
    ADD CONSTRAINT fk_run_source_run_id_run FOREIGN KEY (run_id) REFERENCES @.run(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.run_source
    ADD CONSTRAINT fk_run_source_source_id_source FOREIGN KEY (source_id) REFERENCES @.source(id);

ALTER TABLE ONLY @.run
    ADD CONSTRAINT fk_run_superseded_by_run FOREIGN KEY (superseded_by) REFERENCES @.run(id);

ALTER TABLE @.score
    ADD CONSTRAINT fk_score_run_id_run FOREIGN KEY (benchmark_id, run_id) REFERENCES @.run(benchmark_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY @.sealed_metric
    ADD CONSTRAINT fk_sealed_metric_metric_id_metric FOREIGN KEY (metric_id) REFERENCES @.metric(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.sealed_metric
    ADD CONSTRAINT fk_sealed_metric_run_id_run FOREIGN KEY (run_id) REFERENCES @.run(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.sealed_run
    ADD CONSTRAINT fk_sealed_run_run_id_run FOREIGN KEY (run_id) REFERENCES @.run(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.source_metric
    ADD CONSTRAINT fk_source_metric_benchmark_id_benchmark FOREIGN KEY (benchmark_id) REFERENCES @.benchmark(id);

ALTER TABLE ONLY @.source_metric
    ADD CONSTRAINT fk_source_metric_metric_id_metric FOREIGN KEY (metric_id) REFERENCES @.metric(id);

ALTER TABLE ONLY @.source_metric
    ADD CONSTRAINT fk_source_metric_source_id_source FOREIGN KEY (source_id) REFERENCES @.source(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.task_alias
    ADD CONSTRAINT fk_task_alias_benchmark_id_benchmark FOREIGN KEY (benchmark_id) REFERENCES @.benchmark(id);

ALTER TABLE ONLY @.task_alias
    ADD CONSTRAINT fk_task_alias_task_id_task FOREIGN KEY (task_id) REFERENCES @.task(id);

ALTER TABLE ONLY @.task
    ADD CONSTRAINT fk_task_benchmark_id_benchmark FOREIGN KEY (benchmark_id) REFERENCES @.benchmark(id);

ALTER TABLE ONLY @.task_score
    ADD CONSTRAINT fk_task_score_metric_id_metric FOREIGN KEY (metric_id) REFERENCES @.metric(id);

ALTER TABLE ONLY @.task_score
    ADD CONSTRAINT fk_task_score_run_id_run FOREIGN KEY (run_id) REFERENCES @.run(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.task_score
    ADD CONSTRAINT fk_task_score_task_id_task FOREIGN KEY (task_id) REFERENCES @.task(id);

ALTER TABLE ONLY @.task_value
    ADD CONSTRAINT fk_task_value_finding_id_finding FOREIGN KEY (finding_id) REFERENCES @.finding(id) ON DELETE CASCADE;

ALTER TABLE ONLY @.task_value
    ADD CONSTRAINT fk_task_value_task_id_task FOREIGN KEY (task_id) REFERENCES @.task(id);

ALTER TABLE ONLY @.undo_record
    ADD CONSTRAINT fk_undo_record_source_id_source FOREIGN KEY (source_id) REFERENCES @.source(id);

REVOKE ALL ON FUNCTION @.benchmark_has_partitions() FROM PUBLIC;

REVOKE ALL ON FUNCTION @.check_partition_right(parent text) FROM PUBLIC;

REVOKE ALL ON FUNCTION @.create_partition(parent regclass, prefix text, benchmark integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION @.finish_partition(parent regclass, prefix text, benchmark integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION @.keep_for_owner(name text) FROM PUBLIC;

INSERT INTO @.suffrage_version VALUES ('0019');

