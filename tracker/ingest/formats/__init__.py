"""File formats; each module or subpackage is one format.

A format is a module with

- ``mismatch_reason(path, options) -> str | None``: why a file is not of this format, None if it is. Looks only at the
  name and the first bytes, and never raises. A `tracker.ingest.files.mismatch.Mismatch` also states how close the file
  comes,
- ``read(path, options)``: yields blocks of measurements, and warnings as str. Raises `tracker.errors.BadInputError` for
  an invalid file after yielding the valid part. Files may be larger than memory: read them as streams
  (`tracker.ingest.files.file_contents.open_file`), and yield a block every
  `tracker.ingest.measurement.PROMPTS_PER_BLOCK` prompts,

and, optionally,

- ``companion_files(path) -> Sequence[Path]``: other files that are read together with this one,
- ``harness_name(path) -> str | None``: program and version that wrote the file,
- ``SPECIFICITY``: if several formats match a file, the largest number wins; 0 by default,
- ``RECOGNIZED_BY``: names or content that identify a file, for `suffrage formats`,
- ``describe_reading(path, options) -> str | None``: what the rows and columns of a table are, for `--dry-run`,
- ``READS_COLUMNS``: whether `ReadOptions.columns`, ``task_columns`` and ``ignore_columns`` apply,
- ``REPORTS_SCORES``: False if the files never report scores that are computed from their rows; True by default,
- ``PROMPTS_ONLY``: True if the files hold only prompts; they are stored before other files of a folder,

The first line of the module's docstring describes the format. Other packages register formats in the entry-point group
``suffrage.formats``; an entry names a module, or a package whose modules are all formats.
"""
