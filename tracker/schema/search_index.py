"""The index of words of the prompts' texts, with its SQL: FTS5 on SQLite, a table of vectors on PostgreSQL.

Triggers on `prompt` maintain it, and `restore_search_index` makes it anew. A word is a run of
letters and digits; upper and lower case, and letters with and without accents, are equal. In scripts without
case, such as Chinese, words have no spaces between them: PostgreSQL indexes none of it, and searches read the texts.
"""

from __future__ import annotations

import sqlalchemy as sa

TABLE = "prompt_search"
CASELESS = (
    r"\u0590-\u109f\u10d0-\u13ff\u1400-\u1cff\u2d30-\u2ddf\u3005-\u3007\u3021-\u3029\u3031-\u303c\u3041-\ua63f"
    r"\ua6a0-\ua6ff\ua800-\uab2f\uabc0-\ud7ff\uf900-\ufaff\ufb1d-\ufdff\ufe70-\ufefc\uff66-\uffdc"
    r"\U00010000-\U000103ff\U00010450-\U0001d3ff\U00020000-\U0003ffff"
)
"""Scripts without upper and lower case, as ranges of a regular expression of Python and of PostgreSQL."""
MAX_INDEXED = 100_000
"""Characters of a text that PostgreSQL indexes; a vector of words has at most 1 MB."""

SQLITE = (
    f"CREATE VIRTUAL TABLE {TABLE} USING fts5(text, content='prompt', content_rowid='id', "
    "tokenize='unicode61 remove_diacritics 2')",
    f"CREATE TRIGGER prompt_indexed AFTER INSERT ON prompt BEGIN "
    f"INSERT INTO {TABLE} (rowid, text) VALUES (new.id, new.text); END",
    f"CREATE TRIGGER prompt_unindexed AFTER DELETE ON prompt BEGIN "
    f"INSERT INTO {TABLE} ({TABLE}, rowid, text) VALUES ('delete', old.id, old.text); END",
    "CREATE TRIGGER prompt_reindexed AFTER UPDATE OF id, text ON prompt "
    "WHEN old.id <> new.id OR old.text IS NOT new.text BEGIN "
    f"INSERT INTO {TABLE} ({TABLE}, rowid, text) VALUES ('delete', old.id, old.text); "
    f"INSERT INTO {TABLE} (rowid, text) VALUES (new.id, new.text); END",
    f"INSERT INTO {TABLE} ({TABLE}) VALUES ('rebuild')",
)
POSTGRESQL = (
    # The parser of PostgreSQL takes a/b for a file, and a.b for a host: it gets words and spaces.
    rf"""
CREATE FUNCTION prompt_search_text(content text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    IF octet_length(content) > length(content) AND getdatabaseencoding() = 'UTF8' THEN
        content := regexp_replace(normalize(content, NFD), '[\u0300-\u036f]+', '', 'g');
        content := regexp_replace(content, '[{CASELESS}]+', ' ', 'g');
    END IF;
    RETURN regexp_replace(content, '[!-/:-@\[-`{{-~]+', ' ', 'g');
END $$
""",
    f"""
CREATE FUNCTION prompt_search_words(content text) RETURNS tsvector LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    RETURN to_tsvector('simple'::regconfig, prompt_search_text(left(content, {MAX_INDEXED})));
END $$
""",
    f"CREATE TABLE {TABLE} (prompt_id integer CONSTRAINT pk_{TABLE} PRIMARY KEY, words tsvector NOT NULL)",
    f"COMMENT ON TABLE {TABLE} IS 'Words of the texts of prompts, maintained by triggers'",
    # Words of new prompts wait in a list of up to 16 MB, which searches read too, until autovacuum sorts them in.
    f"CREATE INDEX ix_{TABLE}_words ON {TABLE} USING gin (words) WITH (gin_pending_list_limit = 16384)",
    f"""
CREATE FUNCTION index_new_prompts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {TABLE} SELECT id, prompt_search_words(text) FROM fresh WHERE text IS NOT NULL;
    RETURN NULL;
END $$
""",
    f"""
CREATE FUNCTION unindex_prompts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM {TABLE} WHERE prompt_id IN (SELECT id FROM gone);
    RETURN NULL;
END $$
""",
    f"""
CREATE FUNCTION index_changed_prompt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM {TABLE} WHERE prompt_id = old.id;
    INSERT INTO {TABLE} SELECT new.id, prompt_search_words(new.text) WHERE new.text IS NOT NULL;
    RETURN NULL;
END $$
""",
    "CREATE TRIGGER prompt_indexed AFTER INSERT ON prompt REFERENCING NEW TABLE AS fresh "
    "FOR EACH STATEMENT EXECUTE FUNCTION index_new_prompts()",
    "CREATE TRIGGER prompt_unindexed AFTER DELETE ON prompt REFERENCING OLD TABLE AS gone "
    "FOR EACH STATEMENT EXECUTE FUNCTION unindex_prompts()",
    "CREATE TRIGGER prompt_reindexed AFTER UPDATE OF id, text ON prompt FOR EACH ROW "
    "WHEN (old.id <> new.id OR old.text IS DISTINCT FROM new.text) EXECUTE FUNCTION index_changed_prompt()",
    f"INSERT INTO {TABLE} SELECT id, prompt_search_words(text) FROM prompt WHERE text IS NOT NULL",
)
TRIGGERS = ("prompt_indexed", "prompt_reindexed", "prompt_unindexed")
FUNCTIONS = (
    "index_changed_prompt()", "unindex_prompts()", "index_new_prompts()", "prompt_search_words(text)",
    "prompt_search_text(text)",
)  # fmt: skip


def create_search_index(connection: sa.Connection) -> None:
    """Create the index of all stored prompts, with its triggers."""
    for statement in SQLITE if connection.dialect.name == "sqlite" else POSTGRESQL:
        connection.exec_driver_sql(statement)


def drop_search_index(connection: sa.Connection) -> None:
    """Drop the index, its triggers and its functions, as far as they exist."""
    is_sqlite = connection.dialect.name == "sqlite"
    for name in TRIGGERS:
        connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {name}{'' if is_sqlite else ' ON prompt'}")
    connection.exec_driver_sql(f"DROP TABLE IF EXISTS {TABLE}")
    for name in () if is_sqlite else FUNCTIONS:
        connection.exec_driver_sql(f"DROP FUNCTION IF EXISTS {name}")


def restore_search_index(connection: sa.Connection) -> None:
    """Create the index anew if it has faults."""
    if find_search_faults(connection):
        drop_search_index(connection)
        create_search_index(connection)


def find_search_faults(connection: sa.Connection) -> list[str]:
    """Return what the index lacks; empty if it is sound.

    On SQLite the indexed prompts are compared with the stored ones, on PostgreSQL also their words.
    """
    is_sqlite = connection.dialect.name == "sqlite"
    if not sa.inspect(connection).has_table(TABLE):
        return ["the search index is missing"]
    known = "SELECT name FROM sqlite_master" if is_sqlite else "SELECT tgname FROM pg_trigger"
    names = set(connection.scalars(sa.text(known)))
    if missing := [name for name in TRIGGERS if name not in names]:
        return [f"the search index lacks its trigger {missing[0]}"]
    n_wrong = connection.scalar(sa.text(_WRONG_ROWS["sqlite" if is_sqlite else "postgresql"])) or 0
    return [f"the search index is wrong for {n_wrong:,} prompts"] if n_wrong else []


_WRONG_ROWS = {
    "sqlite": f"SELECT (SELECT count(*) FROM prompt WHERE id NOT IN (SELECT id FROM {TABLE}_docsize)) + "
    f"(SELECT count(*) FROM {TABLE}_docsize WHERE id NOT IN (SELECT id FROM prompt))",
    "postgresql": f"SELECT count(*) FROM prompt FULL JOIN {TABLE} ON prompt_id = id "
    "WHERE words IS DISTINCT FROM CASE WHEN text IS NOT NULL THEN prompt_search_words(text) END",
}
