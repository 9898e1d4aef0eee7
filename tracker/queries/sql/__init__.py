"""Access to the database: tables, Arrow and SQL that only reads."""
