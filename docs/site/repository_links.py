"""Links between files of the repository, as links between pages of the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

FENCE = re.compile(r"^( *)```.*?^\1```", re.M | re.S)
LINK = re.compile(r"(?<!`)(!?\[[^\]]*\]\()([^)\s]+)(\))")


def rewrite_links(text: str, source: str, targets: Mapping[str, str], page: str) -> str:
    """Return a page's Markdown with every link to a file of the repository leading to its page.

    Args:
        text: the Markdown; its fenced blocks are kept as they are.
        source: path of the file in the repository, such as ``docs/index.md``.
        targets: address in the site of each file of the repository that the site has under another path.
        page: address of the page in the site.
    """

    def rewrite(match: re.Match[str]) -> str:
        target, mark, anchor = match[2].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        address = targets.get(path, path.removeprefix("docs/"))
        return f"{match[1]}{posixpath.relpath(address, posixpath.dirname(page) or '.')}{mark}{anchor}{match[3]}"

    parts, end = [], 0
    for block in FENCE.finditer(text):
        parts += [LINK.sub(rewrite, text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, LINK.sub(rewrite, text[end:])])
