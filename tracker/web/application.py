"""The application: addresses, and the pages behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from tracker.errors import DatabaseError, NotFoundError, SelectionError, SuffrageError
from tracker.web.access import Access, AccessControl
from tracker.web.background import BackgroundTasks
from tracker.web.page import FORMATS, Page
from tracker.web.pages import benchmarks, compare, findings, home, models, prompts, sql_console
from tracker.web.query import Query
from tracker.web.store_cache import StoreCache

SELECTION = (*benchmarks.SELECTION_OPTIONS, "page")
SORTED = ("sort", "order")


@dataclass(frozen=True, kw_only=True)
class PageRoute:
    """An address, and the page behind it.

    Attributes:
        path: with ``{key}`` and ``{name}`` where they are.
        show: returns the page, or a response.
        options: query parameters of the page.
        has_formats: whether it has addresses as JSON and CSV.
    """

    path: str
    show: Callable[[Query], Page | Response]
    options: Sequence[str] = ()
    has_formats: bool = True


PAGES = (
    PageRoute(path="/", show=home.show_home),
    PageRoute(path="/search", show=home.show_search, options=("q",)),
    PageRoute(
        path="/benchmark/{key:int}", show=benchmarks.show_benchmark, options=(*SELECTION, *SORTED, "model", "family")
    ),
    PageRoute(path="/benchmark/{key:int}/verdict", show=benchmarks.show_verdict, options=SELECTION),
    PageRoute(path="/benchmark/{key:int}/tasks", show=benchmarks.show_tasks, options=SELECTION),
    PageRoute(path="/benchmark/{key:int}/runs", show=benchmarks.show_runs, options=("page",)),
    PageRoute(
        path="/benchmark/{key:int}/prompts",
        show=prompts.show_prompts,
        options=(*SELECTION, *SORTED, "q", "task", "from", "to", "decision"),
    ),
    PageRoute(path="/benchmark/{key:int}/compare", show=compare.show_comparison, options=(*SELECTION, *"abcde")),
    PageRoute(path="/prompt/{key:int}", show=prompts.show_prompt),
    PageRoute(path="/model/{key:int}", show=models.show_model),
    PageRoute(path="/model/{key:int}/relatives", show=models.show_relatives),
    PageRoute(path="/run/{key:int}", show=models.show_run),
    PageRoute(path="/findings", show=findings.list_all_findings, options=("page",)),
    PageRoute(path="/finding/{key:int}", show=findings.show_finding),
    PageRoute(path="/finding/{key:int}/table/{name}", show=findings.show_table, options=(*SORTED, "page")),
    PageRoute(path="/finding/{key:int}/figure/{name}.png", show=findings.send_figure, has_formats=False),
    PageRoute(path="/sql", show=sql_console.show_console, options=("statement",)),
)


def create_application(engine: sa.Engine, access: Access) -> Starlette:
    """Return the application of a store.

    Args:
        engine: the store; it is only read.
        access: who may read it.
    """
    cache = StoreCache(engine)
    background = BackgroundTasks(cache)
    routes: list[Route | Mount] = []
    for page in PAGES:
        for suffix in FORMATS if page.has_formats else FORMATS[:1]:
            path = page.path if suffix == "html" else f"{'/index' if page.path == '/' else page.path}.{suffix}"
            routes.insert(
                0 if suffix != "html" else len(routes), Route(path, _handler(page, suffix, cache, background))
            )
    static = StaticFiles(directory=Path(__file__).parent / "static")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        cache.close()

    return Starlette(
        routes=[*routes, Mount("/static", static)],
        middleware=[Middleware(AccessControl, access=access)],
        exception_handlers={404: _not_found},
        lifespan=lifespan,
    )


def _handler(
    page: PageRoute, suffix: str, cache: StoreCache, background: BackgroundTasks
) -> Callable[[Request], Response]:
    """Return the function that answers requests for a page; it runs in a thread."""

    def respond(request: Request) -> Response:
        parameters = {name: value for name, value in request.query_params.items() if value != ""}
        path = request.url.path.removesuffix(f".{suffix}") if suffix != "html" else request.url.path
        address = f"{path}?{request.url.query}" if request.url.query else path
        try:
            if unknown := sorted(set(parameters) - set(page.options)):
                raise SelectionError(
                    f"This page has no parameter {unknown[0]!r}. Parameters: {', '.join(page.options) or 'none'}."
                )
            query = Query(
                engine=cache.engine,
                cache=cache,
                background=background,
                key=request.path_params.get("key", 0),
                name=request.path_params.get("name", ""),
                parameters=parameters,
            )
            result = page.show(query)
        except SuffrageError as error:
            return _error_page(error).respond("json" if suffix == "json" else "html", address)
        return result if isinstance(result, Response) else result.respond(suffix, address)

    return respond


def _error_page(error: SuffrageError) -> Page:
    status = 404 if isinstance(error, NotFoundError) else 503 if isinstance(error, DatabaseError) else 400
    title = {404: "Not found", 503: "The store is not available"}.get(status, "This does not work")
    return Page(title=title, template="error.html", data={"problem": str(error)}, status=status)


def _not_found(request: Request, _: Exception) -> Response:
    if "text/html" not in request.headers.get("accept", ""):
        return PlainTextResponse("There is no page at this address.", 404)
    page = Page(
        title="Not found", template="error.html", data={"problem": "There is no page at this address."}, status=404
    )
    return page.respond("html", "/")
