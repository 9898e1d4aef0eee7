"""Layouts of tables: what their rows and columns are, by headings, names, cells and the user's options."""
