"""Run lighteval's command without its built-in tasks: ``python lighteval_offline.py OPTION ...``.

Some of these tasks need a network as soon as they are loaded. BLEU downloads a tokenizer, which it does not use, for
each of 1,000 bootstrap samples.
"""

from __future__ import annotations

from typing import Any

import nltk
import requests


def _no_server(*_: Any, **__: Any) -> requests.Response:
    response = requests.Response()
    response.status_code = 503
    return response


nltk.download = lambda *_, **__: False
requests.get = _no_server  # a built-in task of 0.11 downloads a file, and does without if the server has none

from lighteval.tasks.registry import Registry  # noqa: E402

for _loader in ("_load_from_files", "_load_from_subdirs"):
    if hasattr(Registry, _loader):
        setattr(Registry, _loader, staticmethod(lambda *_: {}))

if __name__ == "__main__":
    from lighteval.__main__ import app

    app()
