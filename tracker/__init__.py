"""The tracking machine of Suffrage: the database, the way in, the way out, the record."""
