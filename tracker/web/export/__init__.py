"""The pages of the browser interface as static files.

The pages are those of the server: the same functions, the same templates. Here every link becomes a relative link to a
file, long lists and prompts become parts that a script loads, and what needs the store is left out.
"""
