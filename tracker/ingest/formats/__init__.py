"""File formats; every module of this package is one.

A format is a module with

- ``mismatch_reason(path, options) -> str | None``: why a file is none of this format, None where it is; looks at the
  name and the first bytes only and never raises,
- ``read(path, options)``: yields blocks of measurements, and sentences (str) that the reader should be told;
  raises `tracker.errors.BadInputError` for a file that is not sound, after it has yielded what precedes the damage.
  Files may be larger than memory: it reads them as streams (`tracker.ingest.files.file_contents.open_file`) and yields
  what it has every `tracker.ingest.measurement.PROMPTS_PER_BLOCK` prompts,

and, where it has them,

- ``companion_files(path) -> Sequence[Path]``: other files that belong to this one and are read with it,
- ``harness_name(path) -> str | None``: program and version that wrote the file,
- ``SPECIFICITY``: where several formats recognise a file, the one with the largest number has it; 0 by default,
- ``RECOGNIZED_BY``: in a few words, what a file is recognised by; `suffrage formats` shows it,
- ``PROMPTS_ONLY``: true where the files hold nothing but prompts: they are stored before others of a folder.

The first line of its docstring says what it is. Other packages bring formats through the entry-point group
``suffrage.formats``: an entry names a module, or a package whose every module is one.
"""
