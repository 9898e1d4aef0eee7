-- A store of version 0019, made by: python tests/old_databases/make.py
BEGIN TRANSACTION;
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
INSERT INTO "answer" VALUES(2,1,'',0,'A',0.9,'ok');
INSERT INTO "answer" VALUES(2,2,'',0,'anyone',0.8,'ok');
INSERT INTO "answer" VALUES(2,3,'',0,NULL,NULL,'empty');
INSERT INTO "answer" VALUES(2,4,'',0,'it''s ''nine''',NULL,'ok');
CREATE TABLE benchmark (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	revision VARCHAR NOT NULL, default_metric_id INTEGER CONSTRAINT fk_benchmark_default_metric_id_metric REFERENCES metric (id), 
	CONSTRAINT pk_benchmark PRIMARY KEY (id), 
	CONSTRAINT uq_benchmark_name_revision UNIQUE (name, revision)
);
INSERT INTO "benchmark" VALUES(1,'small','1',NULL);
CREATE TABLE checksum (
	table_name VARCHAR NOT NULL, 
	"key" BIGINT NOT NULL, 
	high BIGINT NOT NULL, 
	low BIGINT NOT NULL, 
	CONSTRAINT pk_checksum PRIMARY KEY (table_name, "key")
)
 WITHOUT ROWID

;
INSERT INTO "checksum" VALUES('answer',2,7318290841621717224,-7230280551888264689);
INSERT INTO "checksum" VALUES('benchmark',1,1715188819261490983,1302920926153317216);
INSERT INTO "checksum" VALUES('database',0,7891838323907382936,6792444880919937674);
INSERT INTO "checksum" VALUES('embedding',1,7932810951811866928,6949506672928536415);
INSERT INTO "checksum" VALUES('encoder',1,-9035523330246583356,-8614355750061253306);
INSERT INTO "checksum" VALUES('filter_decision',1,7045005838601171895,5017197355780025974);
INSERT INTO "checksum" VALUES('filter_reason',1,-2604611761212708765,-3134704469827513770);
INSERT INTO "checksum" VALUES('finding',1,3775055919386507938,6665396405804876533);
INSERT INTO "checksum" VALUES('finding',2,1775719864128131128,5899239266406191857);
INSERT INTO "checksum" VALUES('finding',3,4996263771632111269,3758904252094435705);
INSERT INTO "checksum" VALUES('finding_artifact',2,-2836749533815829877,1213633508812053595);
INSERT INTO "checksum" VALUES('finding_metric',2,1303943406033603528,3409284104665437584);
INSERT INTO "checksum" VALUES('finding_run',2,6720000759441645599,5668128372557667082);
INSERT INTO "checksum" VALUES('metric',1,-4879732714197611890,4167179409497270500);
INSERT INTO "checksum" VALUES('metric',2,-9079906938666636719,508212692580102935);
INSERT INTO "checksum" VALUES('model',1,-2961513257289094672,-2942311332601845350);
INSERT INTO "checksum" VALUES('model',2,-4186783380964607980,7383415931866011796);
INSERT INTO "checksum" VALUES('model_alias',2,-126908536195360685,-8078326207461507898);
INSERT INTO "checksum" VALUES('prompt',1,2090389082699957917,3228200454133853539);
INSERT INTO "checksum" VALUES('prompt',2,6639245205779004910,-2526323494322793736);
INSERT INTO "checksum" VALUES('prompt',3,4092186601784841493,8960059023525548177);
INSERT INTO "checksum" VALUES('prompt',4,-5112240721105976794,2636859338365008196);
INSERT INTO "checksum" VALUES('prompt_alias',1,-1747481831825004923,8032674206003893390);
INSERT INTO "checksum" VALUES('prompt_alias',2,-3125734304034022507,5717604565554816458);
INSERT INTO "checksum" VALUES('prompt_value',2,198077709697151800,-5591914575229050361);
INSERT INTO "checksum" VALUES('publication',2,-1945130087724631227,7953308276080342071);
INSERT INTO "checksum" VALUES('ranking',2,-5166776198934578300,-2561296353308411952);
INSERT INTO "checksum" VALUES('run',1,-1182996581367461606,-892567310110216755);
INSERT INTO "checksum" VALUES('run',2,-8093262690548873773,7569624278447179443);
INSERT INTO "checksum" VALUES('run',3,2329437118243800859,681506243366575975);
INSERT INTO "checksum" VALUES('run',4,-3087913550841472127,-2026858651668548869);
INSERT INTO "checksum" VALUES('run',5,4700337833847900903,8199706115759354339);
INSERT INTO "checksum" VALUES('run_source',1,9188820847688755611,8080351529269966661);
INSERT INTO "checksum" VALUES('run_source',2,-8013107518052513757,-8598079475472690864);
INSERT INTO "checksum" VALUES('run_source',3,3797791890033147170,1802059221652748966);
INSERT INTO "checksum" VALUES('sealed_metric',2,5322964410741062358,-9211090132086294612);
INSERT INTO "checksum" VALUES('sealed_run',2,7960384427113995277,6898337608103789275);
INSERT INTO "checksum" VALUES('source',1,9050781235156489579,-8414070401143596823);
INSERT INTO "checksum" VALUES('source_metric',1,-6994066838283849295,6194955369208510402);
INSERT INTO "checksum" VALUES('sqlite_master',0,3242340892486344947,8294056304439177434);
INSERT INTO "checksum" VALUES('sqlite_sequence',0,-6638584510242702175,310509922698217771);
INSERT INTO "checksum" VALUES('task',1,-7334265689132620862,2301519509566159172);
INSERT INTO "checksum" VALUES('task',2,8022985453144597700,-6248535068660872079);
INSERT INTO "checksum" VALUES('task_alias',1,3485250980634772017,-5661934341527344914);
INSERT INTO "checksum" VALUES('task_score',1,3555137136232942010,-9051789745927342639);
INSERT INTO "checksum" VALUES('task_score',2,-2190694694707907347,-515715380984704344);
INSERT INTO "checksum" VALUES('task_value',2,5254472695629371394,2565727983815945082);
INSERT INTO "checksum" VALUES('undo_record',1,3870455302134443300,-1421656089983875890);
CREATE TABLE "database" (
	id VARCHAR NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT pk_database PRIMARY KEY (id)
);
INSERT INTO "database" VALUES('e83c41da-1e86-4852-bd80-abaeb0cce23b','2026-11-30 03:39:26.271504');
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
INSERT INTO "embedding" VALUES(1,1,1,X'0000803F000000BF');
CREATE TABLE encoder (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	revision VARCHAR NOT NULL, 
	template VARCHAR NOT NULL, 
	dimensions INTEGER NOT NULL, 
	CONSTRAINT pk_encoder PRIMARY KEY (id), 
	CONSTRAINT uq_encoder_name_revision_template UNIQUE (name, revision, template)
);
INSERT INTO "encoder" VALUES(1,'encoder','','question+choices',2);
CREATE TABLE evaluation_lease (
	run_id INTEGER NOT NULL, 
	prompt_id INTEGER NOT NULL, 
	holder VARCHAR NOT NULL, 
	expires DOUBLE NOT NULL, 
	CONSTRAINT pk_evaluation_lease PRIMARY KEY (run_id, prompt_id), 
	CONSTRAINT fk_evaluation_lease_prompt_id_prompt FOREIGN KEY(prompt_id) REFERENCES prompt (id) ON DELETE CASCADE, 
	CONSTRAINT fk_evaluation_lease_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);
INSERT INTO "evaluation_lease" VALUES(1,1,'machine/1/0',1.5);
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
INSERT INTO "filter_decision" VALUES(1,1,1);
INSERT INTO "filter_decision" VALUES(1,2,0);
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
INSERT INTO "filter_reason" VALUES(1,2,'similar',1,0);
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
INSERT INTO "finding" VALUES(1,1,'filter','{"n": 3}','{"benchmark": "small"}',NULL,'2222222222222222222222222222222222222222222222222222222222222222','1',NULL,NULL,NULL,'complete',NULL,NULL,'2026-11-30 03:39:26.590145',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "finding" VALUES(2,1,'prompt-correlation','{"n": 3}','{"benchmark": "small"}',1099511627776,'2222222222222222222222222222222222222222222222222222222222222222','1',1,1,1,'complete',NULL,'{"load": 0.1}','2026-11-30 03:39:26.590598','its run 9 of small was deleted','They agree more than chance allows.','["The mean similarity is 0.5."]','["Two models."]','["One prompt has no text."]',NULL);
INSERT INTO "finding" VALUES(3,NULL,'failed','{"n": 3}','{"benchmark": "small"}',NULL,'2222222222222222222222222222222222222222222222222222222222222222','1',NULL,NULL,NULL,'failed','too few prompts',NULL,'2026-11-30 03:39:26.590834',NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE "finding_artifact" (
	finding_id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	media_type VARCHAR NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT pk_finding_artifact PRIMARY KEY (finding_id, name), 
	CONSTRAINT fk_finding_artifact_finding_id_finding FOREIGN KEY(finding_id) REFERENCES "finding" (id) ON DELETE CASCADE
);
INSERT INTO "finding_artifact" VALUES(2,'x.bin','application/octet-stream',X'0001');
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
INSERT INTO "finding_metric" VALUES(2,'hamming.mean',0.5,NULL,1,0);
INSERT INTO "finding_metric" VALUES(2,'hamming.mean.pvalue',NULL,'invariant under this null',1,0);
CREATE TABLE "finding_run" (
	finding_id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	role VARCHAR NOT NULL, 
	checksum VARCHAR NOT NULL, status VARCHAR DEFAULT 'complete' NOT NULL, 
	CONSTRAINT pk_finding_run PRIMARY KEY (finding_id, run_id, role), 
	CONSTRAINT fk_finding_run_finding_id_finding FOREIGN KEY(finding_id) REFERENCES "finding" (id) ON DELETE CASCADE, 
	CONSTRAINT fk_finding_run_run_id_run FOREIGN KEY(run_id) REFERENCES run (id)
);
INSERT INTO "finding_run" VALUES(2,1,'scores','','complete');
CREATE TABLE metric (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	higher_is_better BOOLEAN NOT NULL, 
	lower DOUBLE, 
	upper DOUBLE, 
	CONSTRAINT pk_metric PRIMARY KEY (id), 
	CONSTRAINT uq_metric_name UNIQUE (name)
);
INSERT INTO "metric" VALUES(1,'accuracy',1,0.0,1.0);
INSERT INTO "metric" VALUES(2,'loss',0,NULL,NULL);
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
INSERT INTO "model" VALUES(1,'small','o','f',7000000000,'2024-04-01',NULL);
INSERT INTO "model" VALUES(2,'large',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE model_alias (
	name VARCHAR NOT NULL, 
	model_id INTEGER NOT NULL, 
	CONSTRAINT pk_model_alias PRIMARY KEY (name), 
	CONSTRAINT fk_model_alias_model_id_model FOREIGN KEY(model_id) REFERENCES model (id)
);
INSERT INTO "model_alias" VALUES('big',2);
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
INSERT INTO "prompt" VALUES(1,1,'12deb77e9f7a0fd0290742d37b99342fca77e9ce27ce05645dbf14dee4106ded',0,'Who may sue?','["anyone", "no one"]','A','test','{"year": 2023}');
INSERT INTO "prompt" VALUES(2,1,'12deb77e9f7a0fd0290742d37b99342fca77e9ce27ce05645dbf14dee4106ded',1,'Who may sue?','["anyone", "no one"]','A','test',NULL);
INSERT INTO "prompt" VALUES(3,2,'ebe5f6a0c1860c55007f37235f3c79248038adeb7d478355ffba99ca9204eee2',0,'What is g?',NULL,'9.81','test',NULL);
INSERT INTO "prompt" VALUES(4,2,NULL,0,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE prompt_alias (
	task_id INTEGER NOT NULL, 
	namespace VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	prompt_id INTEGER NOT NULL, 
	CONSTRAINT pk_prompt_alias PRIMARY KEY (task_id, namespace, "key"), 
	CONSTRAINT fk_prompt_alias_prompt_id_prompt FOREIGN KEY(prompt_id) REFERENCES prompt (id), 
	CONSTRAINT fk_prompt_alias_task_id_task FOREIGN KEY(task_id) REFERENCES task (id)
);
INSERT INTO "prompt_alias" VALUES(1,'','1',1);
INSERT INTO "prompt_alias" VALUES(1,'','2',2);
INSERT INTO "prompt_alias" VALUES(2,'','1',3);
INSERT INTO "prompt_alias" VALUES(2,'','2',4);
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
INSERT INTO "prompt_value" VALUES(2,'weight.medoids',1,0.75);
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
INSERT INTO "publication" VALUES('sqlite:///mlflow.db','finding',2,'33333333333333333333333333333333','','2026-11-30 03:39:26.592979');
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
INSERT INTO "ranking" VALUES(2,'mean',1,1.5,0.5,0.25,0.75,NULL,NULL);
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
INSERT INTO "run" VALUES(1,1,1,'full','','',5,'{"temperature": 0.0}',0,'complete',3,'a92b62d9d902537a8ff02d8112394f1d','2024-05-01 12:00:00.000000','2026-11-30 03:39:26.541077',NULL,NULL,NULL);
INSERT INTO "run" VALUES(2,1,2,'full','','',NULL,NULL,0,'complete',8,'41a9ef5af2517508690ad7fe81e0f995',NULL,'2026-11-30 03:39:26.543178',NULL,NULL,NULL);
INSERT INTO "run" VALUES(3,1,2,'answer_only','','',NULL,NULL,0,'complete',4,'7228ce23f05787745dec58c46fb29532',NULL,'2026-11-30 03:39:26.543440',NULL,NULL,NULL);
INSERT INTO "run" VALUES(4,1,1,'full','','#2',NULL,NULL,0,'superseded',0,'00000000000000000000000000000000',NULL,'2026-11-30 03:39:26.659084',1,NULL,NULL);
INSERT INTO "run" VALUES(5,1,2,'full','','#2',NULL,NULL,0,'hidden',0,'00000000000000000000000000000000',NULL,'2026-11-30 03:39:26.659361',NULL,'odd',NULL);
CREATE TABLE run_source (
	run_id INTEGER NOT NULL, 
	source_id INTEGER NOT NULL, 
	CONSTRAINT pk_run_source PRIMARY KEY (run_id, source_id), 
	CONSTRAINT fk_run_source_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE, 
	CONSTRAINT fk_run_source_source_id_source FOREIGN KEY(source_id) REFERENCES source (id)
);
INSERT INTO "run_source" VALUES(1,1);
INSERT INTO "run_source" VALUES(2,1);
INSERT INTO "run_source" VALUES(3,1);
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
INSERT INTO "score" VALUES(1,1,1,0,1.0);
INSERT INTO "score" VALUES(1,1,2,0,0.0);
INSERT INTO "score" VALUES(1,1,3,0,1.0);
INSERT INTO "score" VALUES(2,1,1,0,1.0);
INSERT INTO "score" VALUES(2,1,2,0,1.0);
INSERT INTO "score" VALUES(2,1,3,0,0.5);
INSERT INTO "score" VALUES(2,1,4,0,0.1);
INSERT INTO "score" VALUES(2,2,1,0,0.1);
INSERT INTO "score" VALUES(2,2,2,0,0.2);
INSERT INTO "score" VALUES(2,2,3,0,3.33333333333333314829e-01);
INSERT INTO "score" VALUES(2,2,4,0,2.0);
INSERT INTO "score" VALUES(3,1,1,0,0.0);
INSERT INTO "score" VALUES(3,1,2,0,0.0);
INSERT INTO "score" VALUES(3,1,3,0,0.0);
INSERT INTO "score" VALUES(3,1,4,0,1.0);
CREATE TABLE sealed_metric (
	run_id INTEGER NOT NULL, 
	metric_id INTEGER NOT NULL, 
	n_scores BIGINT NOT NULL, 
	mean DOUBLE NOT NULL, 
	CONSTRAINT pk_sealed_metric PRIMARY KEY (run_id, metric_id), 
	CONSTRAINT fk_sealed_metric_metric_id_metric FOREIGN KEY(metric_id) REFERENCES metric (id) ON DELETE CASCADE, 
	CONSTRAINT fk_sealed_metric_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);
INSERT INTO "sealed_metric" VALUES(2,1,4,0.65);
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
INSERT INTO "sealed_run" VALUES(2,'/sealed/small-1-444444444444','4444444444444444444444444444444444444444444444444444444444444444','55555555555555555555555555555555','66666666666666666666666666666666',4,1,'2026-11-30 03:39:26.591062');
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
INSERT INTO "source" VALUES(1,'1111111111111111111111111111111111111111111111111111111111111111','0000000000000000000000000000000000000000000000000000000000000000','results.csv','made','harness 1.0','2026-11-30 03:39:26.548367');
CREATE TABLE source_metric (
	source_id INTEGER NOT NULL, 
	benchmark_id INTEGER NOT NULL, 
	metric_id INTEGER NOT NULL, 
	CONSTRAINT pk_source_metric PRIMARY KEY (source_id, benchmark_id, metric_id), 
	CONSTRAINT fk_source_metric_source_id_source FOREIGN KEY(source_id) REFERENCES source (id) ON DELETE CASCADE, 
	CONSTRAINT fk_source_metric_benchmark_id_benchmark FOREIGN KEY(benchmark_id) REFERENCES benchmark (id), 
	CONSTRAINT fk_source_metric_metric_id_metric FOREIGN KEY(metric_id) REFERENCES metric (id)
);
INSERT INTO "source_metric" VALUES(1,1,1);
INSERT INTO "source_metric" VALUES(1,1,2);
CREATE TABLE suffrage_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT suffrage_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "suffrage_version" VALUES('0019');
CREATE TABLE task (
	id INTEGER NOT NULL, 
	benchmark_id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	CONSTRAINT pk_task PRIMARY KEY (id), 
	CONSTRAINT fk_task_benchmark_id_benchmark FOREIGN KEY(benchmark_id) REFERENCES benchmark (id), 
	CONSTRAINT uq_task_benchmark_id_name UNIQUE (benchmark_id, name)
);
INSERT INTO "task" VALUES(1,1,'law');
INSERT INTO "task" VALUES(2,1,'physics');
CREATE TABLE task_alias (
	benchmark_id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	task_id INTEGER NOT NULL, 
	CONSTRAINT pk_task_alias PRIMARY KEY (benchmark_id, name), 
	CONSTRAINT fk_task_alias_benchmark_id_benchmark FOREIGN KEY(benchmark_id) REFERENCES benchmark (id), 
	CONSTRAINT fk_task_alias_task_id_task FOREIGN KEY(task_id) REFERENCES task (id)
);
INSERT INTO "task_alias" VALUES(1,'small_law',1);
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
INSERT INTO "task_score" VALUES(1,1,1,0.5,NULL,NULL);
INSERT INTO "task_score" VALUES(1,1,2,1.0,NULL,NULL);
INSERT INTO "task_score" VALUES(2,1,1,1.0,0.1,2);
INSERT INTO "task_score" VALUES(2,1,2,0.3,NULL,NULL);
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
INSERT INTO "task_value" VALUES(2,'difficulty',1,-1.0);
CREATE TABLE undo_record (
	id INTEGER NOT NULL, 
	source_id INTEGER, 
	path VARCHAR NOT NULL, 
	changes BLOB NOT NULL, 
	ingested DATETIME NOT NULL, 
	CONSTRAINT pk_undo_record PRIMARY KEY (id), 
	CONSTRAINT fk_undo_record_source_id_source FOREIGN KEY(source_id) REFERENCES source (id)
);
INSERT INTO "undo_record" VALUES(1,1,'results.csv',X'7801558E3B0EC3200C86EFC2EC85B653AE825045C152A386870C690694BBC714D4B48BA5CFFFC3AEC238874E4C553C30D8A737F4129352526B103E3A5C3A81BAB44D3179C863E1B1D06CFF3C39AE64F15B426B386550D756D32DF79F3048901A144FE0433B9CDF644EB32412459F4A2376DD5A0B615A8CFD3CCF818DE652906F55866C2361F3B2CD84BC210D78A32DB1C37E008B915148','2026-11-30 03:39:26.584120');
CREATE INDEX ix_run_source_source_id ON run_source (source_id);
CREATE INDEX ix_prompt_alias_prompt_id ON prompt_alias (prompt_id);
CREATE INDEX ix_run_model_id ON run (model_id);
CREATE INDEX ix_run_superseded_by ON run (superseded_by);
CREATE INDEX ix_finding_benchmark_id ON finding (benchmark_id);
CREATE INDEX ix_finding_analysis ON finding (analysis);
CREATE INDEX ix_finding_run_run_id ON finding_run (run_id);
CREATE INDEX ix_undo_record_source_id ON undo_record (source_id);
CREATE INDEX ix_task_alias_task_id ON task_alias (task_id);
CREATE INDEX ix_evaluation_lease_prompt_id ON evaluation_lease (prompt_id);
CREATE VIEW leaderboard AS
SELECT benchmark.name AS benchmark, benchmark.revision AS revision, board.metric AS metric,
       board.condition AS condition, board.variant AS variant, board.model AS model, board.run_id AS run_id,
       board.unit AS unit, board.n AS n, board.coverage AS coverage, board.mean AS mean,
       board.unverified AS unverified, board.rank AS rank
FROM benchmark JOIN (
    WITH scored AS (
        SELECT run_id, metric_id, 'prompt' AS unit, count(DISTINCT prompt_id) AS n
        FROM score 
        GROUP BY run_id, metric_id
        UNION ALL
        SELECT run_id, metric_id, 'task' AS unit, count(*) AS n
        FROM task_score 
        GROUP BY run_id, metric_id
    ), latest AS (
        SELECT run.benchmark_id, run.model_id, run.condition, run.variant, scored.metric_id, scored.unit,
               CAST(max(scored.n * 4294967296 + run.id) % 4294967296 AS INTEGER) AS run_id
        FROM run JOIN scored ON scored.run_id = run.id
        WHERE run.status = 'complete'
        GROUP BY run.benchmark_id, run.model_id, run.condition, run.variant, scored.metric_id, scored.unit
    ), measured AS (
        SELECT score.run_id, score.metric_id, 'prompt' AS unit, score.prompt_id AS item, avg(score.value) AS value
        FROM score 
        GROUP BY score.run_id, score.metric_id, score.prompt_id
        UNION ALL
        SELECT task_score.run_id, task_score.metric_id, 'task' AS unit, task_score.task_id AS item, task_score.value
        FROM task_score 
    ), chosen AS (
        SELECT latest.benchmark_id, latest.model_id, latest.condition, latest.variant, latest.metric_id, latest.unit,
               latest.run_id, measured.item, measured.value
        FROM latest
        JOIN measured ON measured.run_id = latest.run_id AND measured.metric_id = latest.metric_id
                     AND measured.unit = latest.unit
    ), expected AS (
        SELECT benchmark_id, condition, variant, metric_id, unit, count(DISTINCT item) AS n
        FROM chosen
        GROUP BY benchmark_id, condition, variant, metric_id, unit
    ), summary AS (
        SELECT chosen.benchmark_id, chosen.model_id, chosen.condition, chosen.variant, chosen.metric_id, chosen.unit,
               chosen.run_id, count(*) AS n, avg(chosen.value) AS mean
        FROM chosen
        GROUP BY chosen.benchmark_id, chosen.model_id, chosen.condition, chosen.variant, chosen.metric_id,
                 chosen.unit, chosen.run_id
    ), compared AS (
        SELECT summary.*, CAST(summary.n AS DOUBLE PRECISION) / expected.n AS coverage,
               CASE WHEN summary.n = expected.n THEN 1
                    WHEN metric.lower IS NULL OR metric.upper IS NULL THEN 0
                    WHEN summary.n >= 0.95 * expected.n THEN 1
                    ELSE 0 END AS ranked,
               CASE WHEN metric.higher_is_better THEN -summary.mean ELSE summary.mean END AS badness,
               metric.name AS metric
        FROM summary
        JOIN metric ON metric.id = summary.metric_id
        JOIN expected ON expected.benchmark_id = summary.benchmark_id AND expected.condition = summary.condition
                  AND expected.variant = summary.variant AND expected.metric_id = summary.metric_id
                  AND expected.unit = summary.unit
    )
    SELECT compared.benchmark_id, compared.metric, compared.condition, compared.variant, model.name AS model,
           compared.run_id, compared.unit, compared.n, compared.coverage, compared.mean, run.unverified,
           CASE WHEN compared.ranked = 1 THEN
               rank() OVER (
                   PARTITION BY compared.benchmark_id, compared.metric_id, compared.condition, compared.variant,
                                compared.unit, compared.ranked
                   ORDER BY compared.badness
               ) + (count(*) OVER (
                   PARTITION BY compared.benchmark_id, compared.metric_id, compared.condition, compared.variant,
                                compared.unit, compared.ranked, compared.badness
               ) - 1) / 2.0
           END AS rank
    FROM compared
    JOIN model ON model.id = compared.model_id
    JOIN run ON run.id = compared.run_id
) AS board
WHERE board.benchmark_id = benchmark.id;
CREATE VIEW run_history AS
SELECT benchmark.name AS benchmark, model.name AS model, run.id AS run_id, run.condition AS condition,
       run.variant AS variant, run.label AS label, run.few_shot AS few_shot, run.status AS status,
       run.started AS started, run.ingested AS ingested, run.n_scores AS n_scores,
       metric.name AS metric, summary.n AS n, summary.mean AS mean, run.unverified AS unverified
FROM benchmark JOIN (
    SELECT run_id, metric_id, count(*) AS n, avg(value) AS mean
    FROM score 
    GROUP BY run_id, metric_id
    UNION ALL
    SELECT run_id, metric_id, count(*) AS n, avg(value) AS mean
    FROM task_score 
    GROUP BY run_id, metric_id
) AS summary
JOIN run ON run.id = summary.run_id AND run.benchmark_id = benchmark.id
JOIN model ON model.id = run.model_id
JOIN metric ON metric.id = summary.metric_id
WHERE run.status = 'complete';
CREATE VIEW prompt_weight AS
SELECT finding_id, substr(name, 8) AS scheme, prompt_id, value AS weight
FROM prompt_value
WHERE name LIKE 'weight.%';
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('finding',3);
INSERT INTO "sqlite_sequence" VALUES('run',5);
COMMIT;
CREATE VIRTUAL TABLE prompt_search USING fts5(text, content='prompt', content_rowid='id', tokenize='unicode61 remove_diacritics 2');
CREATE TRIGGER prompt_indexed AFTER INSERT ON prompt BEGIN INSERT INTO prompt_search (rowid, text) VALUES (new.id, new.text); END;
CREATE TRIGGER prompt_unindexed AFTER DELETE ON prompt BEGIN INSERT INTO prompt_search (prompt_search, rowid, text) VALUES ('delete', old.id, old.text); END;
CREATE TRIGGER prompt_reindexed AFTER UPDATE OF id, text ON prompt WHEN old.id <> new.id OR old.text IS NOT new.text BEGIN INSERT INTO prompt_search (prompt_search, rowid, text) VALUES ('delete', old.id, old.text); INSERT INTO prompt_search (rowid, text) VALUES (new.id, new.text); END;
INSERT INTO prompt_search (prompt_search) VALUES ('rebuild');
