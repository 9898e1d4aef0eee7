"""Rewrite the tokens of a page for a place without a server: relative links, and no form that only a server answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tracker.web.export.addresses import Target, link_to, list_parameters
from tracker.web.export.markup import End, Start, Token, find_elements, find_end

Resolve = Callable[[str], Target | None]
"""Returns the file that stands for an address of the server; None if there is none."""
LINKS = ("href", "src", "action")


def insert_sections(tokens: Sequence[Token], load: Callable[[str], Sequence[Token] | None]) -> list[Token]:
    """Return a page in which each section that htmx would load is the loaded one.

    Args:
        tokens: of the page.
        load: returns the tokens of the page at an address; None if there is none.
    """
    complete: list[Token] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if not isinstance(token, Start) or not (address := token.attributes.get("hx-get")):
            complete.append(token)
            place += 1
            continue
        end = find_end(tokens, place)
        loaded = load(address)
        name = (token.attributes.get("hx-select") or "").removeprefix("#")
        section = None if loaded is None else next(find_elements(loaded, token.tag, {"id": name}), None)
        if loaded is not None and section is not None:
            complete += loaded[section[0] : section[1]]
        place = end
    return complete


def drop_server_forms(tokens: Sequence[Token], resolve: Resolve) -> list[Token]:
    """Return a page without the forms, and the fields of forms, that only a server answers.

    Args:
        tokens: of the page.
        resolve: finds the file of an address.
    """
    kept: list[Token] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if isinstance(token, Start) and token.tag == "form":
            end = find_end(tokens, place)
            target = resolve(token.attributes.get("action") or "")
            names = list_parameters(target.route) if target is not None and target.route is not None else ()
            if names:
                kept += _keep_fields(tokens[place:end], names)
            place = end
        else:
            kept.append(token)
            place += 1
    return kept


def _keep_fields(form: Sequence[Token], names: Collection[str]) -> list[Token]:
    """Return a form with the fields of some names; a label goes with its field."""
    kept: list[Token] = []
    place = 0
    while place < len(form):
        token = form[place]
        end = place + 1
        if isinstance(token, Start) and token.tag in ("label", "input", "select"):
            end = find_end(form, place)
            field_names = [part.attributes["name"] for part in form[place:end] if isinstance(part, Start)
                           and "name" in part.attributes]  # fmt: skip
            if not set(field_names) <= set(names):
                place = end
                continue
        kept += form[place:end]
        place = end
    return kept


def make_links_relative(tokens: Sequence[Token], page_file: str, resolve: Resolve) -> list[Token]:
    """Return a page whose links are relative to its file.

    A link to what only a server has becomes a plain text; a navigation leaves it out.

    Args:
        tokens: of the page, without `drop_server_forms`.
        page_file: path of its file.
        resolve: finds the file of an address.
    """
    rewritten: list[Token] = []
    begin = -1  # where a link without a file begins; links do not nest
    in_navigation = False
    for token in tokens:
        if isinstance(token, Start) and (address := next(filter(None, map(token.attributes.get, LINKS)), None)):
            changed = _rewrite_start(token, address, page_file, resolve)
            begin = len(rewritten) if changed.tag == "span" else begin
            rewritten.append(changed)
        elif isinstance(token, End) and token.tag == "a" and begin >= 0:
            rewritten.append(End("span"))
            if in_navigation:
                del rewritten[begin:]
            begin = -1
        else:
            is_end = isinstance(token, End) and token.tag == "nav"
            in_navigation = (in_navigation or (isinstance(token, Start) and token.tag == "nav")) and not is_end
            rewritten.append(token)
    return rewritten


def _rewrite_start(token: Start, address: str, page_file: str, resolve: Resolve) -> Start:
    """Return a start tag whose link is relative; a ``span`` for a link without a file."""
    name = next(name for name in LINKS if token.attributes.get(name))
    if not address.startswith("/"):  # within the page, or another site
        return token
    path, mark, fragment = address.partition("#")
    target = resolve(path)
    if target is None:
        return Start("span", {key: value for key, value in token.attributes.items() if key == "class"})
    return Start(token.tag, token.attributes | {name: f"{link_to(target, page_file)}{mark}{fragment}"})
