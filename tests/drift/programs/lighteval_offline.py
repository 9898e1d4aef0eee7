"""Run lighteval's command without its built-in tasks: ``python lighteval_offline.py OPTION ...``.

Some of these tasks need a network as soon as they are loaded.
"""

from __future__ import annotations

from lighteval.tasks.registry import Registry

for _loader in ("_load_from_files", "_load_from_subdirs"):
    if hasattr(Registry, _loader):
        setattr(Registry, _loader, staticmethod(lambda *_: {}))

if __name__ == "__main__":
    from lighteval.__main__ import app

    app()
