"""What a user in a hurry types wrongly, and what the message must contain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

State = Literal["stored", "empty", "none"]
"""Of the store ``suffrage.db`` in the current folder: benchmarks, no benchmark, no file."""


@dataclass(frozen=True, kw_only=True)
class WrongInput:
    """A command line that cannot work.

    Attributes:
        id: name of the test.
        arguments: as the shell passes them.
        expected: parts of the message on stderr: the problem and the fix.
        code: exit code; 2 is a wrong command line, 1 is any other error.
        state: of the store in the current folder.
        environment: variables that the user has set.
        hidden: modules that are not installed.
    """

    id: str
    arguments: list[str]
    expected: tuple[str, ...]
    code: int = 1
    state: State = "stored"
    environment: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()


def wrong(id: str, arguments: str | list[str], *expected: str, **options: object) -> WrongInput:
    """A wrong input; arguments without spaces in them are given as one text."""
    as_list = arguments.split() if isinstance(arguments, str) else arguments
    return WrongInput(id=id, arguments=as_list, expected=expected, **options)  # type: ignore[arg-type]


COMMAND_LINES = [
    wrong("command-typo", "leaderbord mmlu_pro", "Did you mean 'leaderboard'?", code=2),
    wrong("empty-path", ["ingest", "", "--benchmark", "b"], "the path is empty", "unset", code=2),
    wrong("empty-benchmark", ["leaderboard", ""], "No benchmark ''", "suffrage benchmarks"),
    wrong("long-benchmark", ["leaderboard", "a" * 5_000], "No benchmark 'aaa"),
    wrong("no-limit", "ingest scores.csv --limits columns=0", "'columns=0'", "is not valid"),
    wrong("no-utf-8", ["leaderboard", "x\udcff"], "is not UTF-8 text", code=2),
    wrong("command-case", "Leaderboard mmlu_pro", "Did you mean 'leaderboard'?", code=2),
    wrong("subcommand-typo", "runs shw 1", "Did you mean 'show'?", code=2),
    wrong("analysis-as-command", "rank-intervals mmlu_pro", "suffrage analyze rank-intervals mmlu_pro", code=2),
    wrong("file-as-command", "scores.csv", "suffrage ingest scores.csv", code=2),
    wrong("benchmark-as-command", "mmlu_pro", "No such command 'mmlu_pro'", "suffrage --help", code=2),
    wrong("option-typo", "leaderboard mmlu_pro --metrc accuracy", "Did you mean '--metric'?", code=2),
    wrong("option-with-one-dash", "leaderboard mmlu_pro -metric accuracy", "Did you mean '--metric'?", code=2),
    wrong(
        "option-before-command",
        "--database suffrage.db leaderboard mmlu_pro",
        "Options come after the command",
        "suffrage leaderboard mmlu_pro --database suffrage.db",
        code=2,
    ),
    wrong(
        "unknown-option-before-command",
        "--db suffrage.db leaderboard mmlu_pro",
        "No such option '--db'. Did you mean '--database'?",
        "Help: suffrage leaderboard --help",
        code=2,
    ),
    wrong(
        "group-option-before-command",
        "--yes runs delete 1",
        "Options come after the command: suffrage runs delete 1 --yes",
        code=2,
    ),
    wrong("option-without-value", "leaderboard mmlu_pro --metric", "--metric", "suffrage leaderboard --help", code=2),
    wrong("argument-missing", "leaderboard", "BENCHMARK", "suffrage benchmarks", code=2),
    wrong("ingest-nothing", "ingest", "suffrage ingest RESULTS --benchmark NAME", code=2),
    wrong("choice-typo", "leaderboard mmlu_pro --missing worts", "Did you mean 'worst'?", code=2),
    wrong("output-format", "models --format xml", "'table', 'json', 'csv'", code=2),
    wrong("name-without-quotes", "leaderboard mmlu pro", "quotes", "'mmlu pro'", code=2),
    wrong("list-with-spaces", "leaderboard mmlu_pro --models alpha-7b beta-7b", "--models alpha-7b,beta-7b", code=2),
    wrong("name-for-number", "show rank-intervals", "suffrage findings", code=2),
    wrong("comma-for-point", "sql select --limit-seconds 0,5", "0.5", code=2),
    wrong("not-a-number", "ingest scores.csv --bounds nan 1", "nan", code=2),
    wrong("negative-seed", "compare mmlu_pro alpha-7b beta-7b --seed -1", "--seed", "at least 0", code=2),
    wrong("date", "leaderboard mmlu_pro --as-of yesterday", "--as-of", "2026-01-31", code=2),
    wrong("names-for-runs", "leaderboard mmlu_pro --runs alpha-7b", "--models", "suffrage runs", code=2),
    wrong("compare-one-model", "compare mmlu_pro alpha-7b", "MODEL_B", "suffrage models", code=2),
    wrong("report-as-pdf", "report mmlu_pro -o report.pdf", ".html", code=2),
]

NAMES = [
    wrong(
        "models-after-comparison",
        "analyze comparison mmlu_pro gpt-4o llama-3",
        "unexpected extra arguments (gpt-4o llama-3)",
        "suffrage compare BENCHMARK MODEL_A MODEL_B",
        code=2,
    ),
    wrong("arguments-swapped", "analyze mmlu_pro rank-intervals", "suffrage analyze rank-intervals mmlu_pro"),
    wrong("analysis-typo", "analyze rank-interval mmlu_pro", "Did you mean 'rank-intervals'?"),
    wrong("analysis-underscore", "analyze rank_intervals mmlu_pro", "Did you mean 'rank-intervals'?"),
    wrong("analysis-unknown", "analyze bayesian mmlu_pro", "No analysis 'bayesian'", "suffrage analyses"),
    wrong("benchmark-case", "leaderboard MMLU_Pro", "Did you mean 'mmlu_pro'?"),
    wrong("benchmark-prefix", "leaderboard mmlu", "Did you mean 'mmlu_pro'?"),
    wrong("benchmark-trailing-space", ["leaderboard", "mmlu_pro "], "Did you mean 'mmlu_pro'?"),
    wrong("benchmark-zero-width", ["leaderboard", "mmlu\u200b_pro"], "'mmlu\\u200b_pro'", "Did you mean 'mmlu_pro'?"),
    wrong("benchmark-number", "leaderboard 3", "No benchmark '3'", "suffrage benchmarks"),
    wrong("file-as-benchmark", "leaderboard scores.csv", "is a file", "suffrage ingest scores.csv --benchmark NAME"),
    wrong("model-as-benchmark", "leaderboard alpha-7b", "is a model", "suffrage history alpha-7b"),
    wrong("compare-swapped", "compare alpha-7b beta-7b mmlu_pro", "suffrage compare mmlu_pro alpha-7b beta-7b"),
    wrong("compare-with-itself", "compare mmlu_pro alpha-7b alpha-7b", "Both models are alpha-7b", "run:7"),
    wrong("model-typo", "compare mmlu_pro alpha-7b betta-7b", "Did you mean 'beta-7b'?"),
    wrong("model-case", "leaderboard mmlu_pro --models Alpha-7B", "Did you mean 'alpha-7b'?"),
    wrong("metric-typo", "leaderboard mmlu_pro --metric acuracy", "Did you mean 'accuracy'?"),
    wrong("task-typo", "leaderboard mmlu_pro --tasks mth", "Did you mean 'math'?"),
    wrong("run-unknown", "leaderboard mmlu_pro --runs 99", "No run '99'", "suffrage runs"),
    wrong("run-unknown-show", "runs show 99", "No run '99'", "suffrage runs"),
    wrong("finding-unknown", "show 999", "No finding '999'", "suffrage findings"),
    wrong("table-typo", "show 1 --table pair", "No table 'pair' of finding 1", "Did you mean 'pairs'?"),
    wrong("weights-unknown", "leaderboard mmlu_pro --weights 99", "99", "suffrage analyze prompt-weighting"),
    wrong("filter-unknown", "leaderboard mmlu_pro --filter 99", "99", "suffrage analyze smart-filtering mmlu_pro"),
    wrong("cluster-typo", "leaderboard mmlu_pro --cluster taks", "Did you mean 'task'?"),
    wrong("encoder-missing", "analyze semantic-similarity mmlu_pro --no-mlflow", "suffrage embed mmlu_pro"),
    wrong("export-typo", "export score mmlu_pro", "Did you mean 'scores'?", code=2),
    wrong("findings-of-typo", "findings --name rank-interval", "Did you mean 'rank-intervals'?"),
    wrong("findings-benchmark-typo", "findings --benchmark mmlu", "Did you mean 'mmlu_pro'?"),
    wrong("runs-model-typo", "runs --model alpha", "Did you mean 'alpha-7b'?"),
]

STATEMENTS = [
    wrong("sql-show-tables", ["sql", "show tables"], "select name from sqlite_master"),
    wrong("sql-describe", ["sql", "describe run"], "select * from run limit 1"),
    wrong("sql-delete", ["sql", "delete from run"], "reads only", "suffrage runs delete"),
    wrong("sql-table-typo", ["sql", "select * from leaderbord"], "Did you mean 'leaderboard'?"),
    wrong("sql-column-typo", ["sql", "select modle from leaderboard"], "Did you mean 'model'?"),
    wrong("sql-without-quotes", ["sql", "select", "*", "from", "leaderboard"], "quotes", code=2),
    wrong("sql-where-typo", ["sql", "select * from leaderboard wher rank = 1"], "docs/how-to/sql.md"),
]

STORES = [
    wrong("no-store", "leaderboard mmlu_pro", "No store at suffrage.db", "suffrage ingest", state="none"),
    wrong("no-store-typo", "benchmarks --database sufrage.db", "No store at sufrage.db", "Did you mean 'suffrage.db'?"),
    wrong("no-benchmark-yet", "leaderboard mmlu_pro", "No benchmark 'mmlu_pro'", "suffrage ingest", state="empty"),
    wrong("path-without-suffix", "models --database results", "sqlite:///results.db", code=1),
    wrong("two-slashes", "models --database sqlite://suffrage.db", "sqlite:///suffrage.db"),
    wrong("home", "models --database sqlite:///~/none.db", "No store at ", "none.db", "suffrage ingest"),
    wrong("windows-path", ["models", "--database", r"C:\data\none.db"], r"No store at C:\data\none.db"),
    wrong("missing-folder", "models --database sqlite:///nowhere/store.db", "No store at nowhere/store.db"),
    wrong("missing-folder-write", "ingest scores.csv --benchmark b --metric m --database nowhere/store.db", "mkdir"),
    wrong("folder-as-store", "models --database results_folder", "is a folder", "results_folder/suffrage.db"),
    wrong("results-as-store", "models --database scores.csv", "not a SQLite", "suffrage ingest scores.csv"),
    wrong("store-of-another-program", "models --database other.db", "another program", "--database"),
    wrong("ingest-into-another-program", "ingest scores.csv --database other.db", "another program", "--database"),
    wrong("damaged-store", "models --database damaged.db", "damaged", "malformed"),
    wrong("ingest-a-damaged-file", "ingest damaged.db --benchmark b", "is a SQLite database, but not a store"),
    wrong("lost-version", "models --database lost.db", "has lost its version", "suffrage db restore FILE"),
    wrong("wrong-version", "db upgrade --database early.db", "recorded at version 0001, but", "db restore FILE"),
    wrong("two-versions", "db check --database two.db", "holds '9999', '0001'", "suffrage db restore FILE"),
    wrong(
        "unknown-home",
        "models",
        "There is no file ~nosuchuser/x.toml",
        environment={"SUFFRAGE_CONFIG": "~nosuchuser/x.toml"},
    ),
    wrong("newer-store", "models --database newer.db", "newer", "git pull"),
    wrong("older-store", "models --database older.db", "suffrage db upgrade --database sqlite:///older.db"),
    wrong("other-engine", "models --database mysql://me:secret@host/results", "mysql", "postgresql://"),
    wrong("server-down", "models --database postgresql://me:secret@127.0.0.1:1/results", "127.0.0.1:1", "server runs"),
    wrong(
        "variable-wrong",
        "models",
        "SUFFRAGE_DATABASE_URL",
        "sqlite:///",
        environment={"SUFFRAGE_DATABASE_URL": "mysql://me@host/db"},
    ),
    wrong(
        "variable-misnamed",
        "models",
        "SUFFRAGE_DATABASE_URL",
        state="none",
        environment={"SUFFRAGE_DATABASE": "sqlite:///results.db"},
    ),
]

FILES = [
    wrong("file-typo", "ingest score.csv", "does not exist", "Did you mean 'scores.csv'?"),
    wrong("file-in-home", ["ingest", "~/scores.csv"], "~", "quotes"),
    wrong("web-address", "ingest https://example.org/results.json", "Download", "curl"),
    wrong("bucket", "ingest s3://bucket/results.json", "Download", "aws s3 cp"),
    wrong("hub-address", "ingest hf://datasets/owner/results", "Download", "hf download owner/results"),
    wrong("zip", "ingest results.zip", "ZIP archive", "unzip results.zip"),
    wrong("tar", "ingest results.tar.gz", "tar archive", "tar -xf results.tar.gz"),
    wrong("pdf", "ingest paper.pdf", "PDF", "CSV"),
    wrong("picture", "ingest plot.png", "PNG", "CSV"),
    wrong("spreadsheet", "ingest results.xlsx", "spreadsheet", "CSV"),
    wrong("empty-file", "ingest empty.csv", "empty"),
    wrong("truncated-gzip", "ingest cut.json.gz", "download the file again"),
    wrong("denied-file", "ingest denied.csv", "cannot be", "Permission denied", "chmod"),
    wrong("folder-without-results", "ingest pictures", "no results", "suffrage formats list"),
    wrong("empty-folder", "ingest hollow", "no files", "Check the path"),
    wrong("log-file", "ingest run.log", "suffrage formats list", "--format"),
    wrong("unknown-json", "ingest config.json", "suffrage formats list", "--format"),
    wrong("broken-json", "ingest broken.json", "broken.json", "JSON"),
    wrong("format-typo", "ingest scores.csv --format lmeval", "Did you mean 'lm-eval' or"),
    wrong("no-benchmark-name", "ingest scores.csv --metric accuracy", "--benchmark NAME"),
    wrong("report-into-missing-folder", "report mmlu_pro -o nowhere/report.html", "mkdir", "nowhere"),
    wrong("report-onto-folder", "report mmlu_pro -o folder.html", "folder"),
    wrong("report-exists", "report mmlu_pro -o taken.html", "--force"),
    wrong("export-onto-folder", "export scores mmlu_pro --format csv -o results_folder", "folder"),
    wrong("export-suffix", "export scores mmlu_pro -o scores.xlsx", "--format", code=2),
    wrong("weights-file-typo", "weights mmlu_pro score.csv", "Did you mean 'scores.csv'?"),
]

PROGRAMS = [
    wrong("extra-torch", "evaluate arc --model ./llama", "pip install '.[models]'", hidden=("torch",)),
    wrong("extra-encoder", "embed arc", "pip install '.[models]'", hidden=("sentence_transformers",)),
    wrong("extra-datasets", "prompts import arc allenai/ai2_arc", "pip install '.[hub]'", hidden=("datasets",)),
    wrong("model-folder", "evaluate arc --model ./llama", "llama is not the folder of a model", "--api-base"),
    wrong(
        "server-port",
        "evaluate arc --model llama --api-base http://127.0.0.1:1/v1 --tries 1",
        "127.0.0.1:1",
        "port in --api-base",
    ),
    wrong("evaluate-unknown", "evaluate arcc --model ./llama", "Did you mean 'arc'?"),
    wrong("evaluate-without-model", "evaluate arc", "--model NAME_OR_FOLDER", code=2),
    wrong("template-typo", "evaluate arc --model ./llama --template smrt", "Did you mean 'smart'?"),
    wrong("tracking-uri", "publish --tracking-uri mlflow.db", "sqlite:///mlflow.db"),
    wrong("port", "ui --port 99999", "of at least 1 and of at most 65535", code=2),
]

EVERY = [*COMMAND_LINES, *NAMES, *STATEMENTS, *STORES, *FILES, *PROGRAMS]
