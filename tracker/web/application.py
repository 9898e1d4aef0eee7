"""The application: addresses, and the pages behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import anyio.to_thread
import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from tracker.errors import DatabaseError, NotFoundError, SelectionError, SuffrageError
from tracker.queries.sql.kept_reads import keep_reads
from tracker.recording.mlflow.links import MlflowLinks
from tracker.recording.sealing.loading import with_sealed_rows
from tracker.web.access import Access, AccessControl
from tracker.web.background import BackgroundTasks
from tracker.web.page import FORMATS, Page
from tracker.web.pages import (
    benchmarks,
    compare,
    findings,
    history,
    home,
    models,
    prompts,
    runs,
    selections,
    single_prompt,
    sql_console,
    tasks,
    verdicts,
)
from tracker.web.query import SPREADSHEET, Query
from tracker.web.store_cache import StoreCache

STATIC_FOLDER = Path(__file__).parent / "static"
SELECTION = (*selections.SELECTION_OPTIONS, "page")
MAX_THREADS = 6
"""Pages that are made at once; further requests wait. Each needs memory, and a connection of the pool."""
SORTED = ("sort", "order")
MAX_SEARCH_LENGTH = 1_000
"""Maximum length of the parameter ``q``."""


@dataclass(frozen=True, kw_only=True)
class PageRoute:
    """An address, and the page behind it.

    Attributes:
        path: with ``{key}`` and ``{name}`` where they are.
        show: returns the page, or a response.
        options: query parameters of the page.
        has_formats: whether it has addresses as JSON and CSV.
        has_one_query: whether all of it comes from one query.
    """

    path: str
    show: Callable[[Query], Page | Response]
    options: Sequence[str] = ()
    has_formats: bool = True
    has_one_query: bool = False


PAGES = (
    PageRoute(path="/", show=home.show_home),
    PageRoute(path="/search", show=home.show_search, options=("q",)),
    PageRoute(
        path="/benchmark/{key:key}", show=benchmarks.show_benchmark, options=(*SELECTION, *SORTED, "model", "family")
    ),
    PageRoute(path="/benchmark/{key:key}/verdict", show=verdicts.show_verdict, options=SELECTION),
    PageRoute(path="/benchmark/{key:key}/tasks", show=tasks.show_tasks, options=(*SELECTION, "model")),
    PageRoute(path="/benchmark/{key:key}/history", show=history.show_history, options=(*SELECTION, "by", "model")),
    PageRoute(path="/benchmark/{key:key}/runs", show=runs.show_runs, options=("page",)),
    PageRoute(
        path="/benchmark/{key:key}/prompts",
        show=prompts.show_prompts,
        options=(*SELECTION, *SORTED, "q", "task", "from", "to", "disagreement", "decision"),
    ),
    PageRoute(
        path="/benchmark/{key:key}/compare", show=compare.show_comparison, options=(*SELECTION, "better", *"abcde")
    ),
    PageRoute(path="/prompt/{key:key}", show=single_prompt.show_prompt),
    PageRoute(path="/model/{key:key}", show=models.show_model),
    PageRoute(path="/model/{key:key}/relatives", show=models.show_relatives),
    PageRoute(path="/run/{key:key}", show=runs.show_run),
    PageRoute(
        path="/run/{key:key}/responses",
        show=runs.show_run_responses,
        options=("metric", "task", "from", "to", "page", *SORTED),
    ),
    PageRoute(path="/findings", show=findings.list_all_findings, options=("page", "benchmark", "analysis")),
    PageRoute(path="/finding/{key:key}", show=findings.show_finding),
    PageRoute(path="/finding/{key:key}/table/{name}", show=findings.show_table, options=(*SORTED, "page")),
    PageRoute(path="/finding/{key:key}/figure/{name}.png", show=findings.send_figure, has_formats=False),
    PageRoute(path="/sql", show=sql_console.show_console, options=("statement",), has_one_query=True),
)


class KeyConvertor(Convertor[int]):
    """A key of the store in an address; databases know no larger numbers."""

    regex = "[0-9]{1,18}"

    def convert(self, value: str) -> int:
        """Return the key."""
        return int(value)

    def to_string(self, value: int) -> str:
        """Return its text."""
        return str(value)


register_url_convertor("key", KeyConvertor())


def create_application(
    engine: sa.Engine, access: Access, mlflow: MlflowLinks | None = None, *, uses_processes: bool = False
) -> ASGIApp:
    """Return the application of a store.

    Args:
        engine: the store; it is only read.
        access: who may read it.
        mlflow: links to MLflow; None for none.
        uses_processes: as for `BackgroundTasks`.
    """
    cache = StoreCache(engine)
    background = BackgroundTasks(cache, uses_processes=uses_processes)
    routes: list[Route | Mount] = []
    for page in PAGES:
        for suffix in FORMATS if page.has_formats else FORMATS[:1]:
            path = page.path if suffix == "html" else f"{'/index' if page.path == '/' else page.path}.{suffix}"
            routes.insert(
                0 if suffix != "html" else len(routes), Route(path, _handler(page, suffix, cache, background, mlflow))
            )
    static = StaticFiles(directory=STATIC_FOLDER)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = MAX_THREADS
        yield
        cache.close()

    application = Starlette(
        routes=[*routes, Mount("/static", static)],
        exception_handlers={404: _not_found, Exception: _internal_error},
        lifespan=lifespan,
    )
    application.router.redirect_slashes = False  # the address that it leads to would come from the header Host
    return AccessControl(application, access)


def _handler(
    page: PageRoute, suffix: str, cache: StoreCache, background: BackgroundTasks, mlflow: MlflowLinks | None
) -> Callable[[Request], Response]:
    """Return the function that answers requests for a page; it runs in a thread."""

    def respond(request: Request) -> Response:
        path = quote(request.scope["path"])
        path = path.removesuffix(f".{suffix}") if suffix != "html" else path
        query_string = request.scope["query_string"].decode("latin-1")
        address = f"{path}?{query_string}" if query_string else path
        try:
            parameters = _check_parameters(request, (*page.options, *((SPREADSHEET,) if suffix == "csv" else ())))
            for_spreadsheets = parameters.pop(SPREADSHEET, "") == "yes"
            query = Query(
                engine=cache.engine,
                cache=cache,
                background=background,
                key=request.path_params.get("key", 0),
                name=request.path_params.get("name", ""),
                parameters=parameters,
                mlflow=mlflow,
            )
            result = with_sealed_rows(
                lambda: page.show(query) if page.has_one_query else _show_one_state(page.show, query, cache)
            )
        except SuffrageError as error:
            return make_error_page(error).respond("json" if suffix == "json" else "html", address)
        return (
            result
            if isinstance(result, Response)
            else result.respond(suffix, address, for_spreadsheets=for_spreadsheets)
        )

    return respond


def _show_one_state(show: Callable[[Query], Page | Response], query: Query, cache: StoreCache) -> Page | Response:
    """Return a page whose parts were read from one state of the store."""
    with cache.open_snapshot() as snapshot:
        kept = cache.at(snapshot.version)
        return show(replace(query, engine=keep_reads(cache.engine, kept), snapshot=snapshot, cache=kept))


def _check_parameters(request: Request, options: Sequence[str]) -> dict[str, str]:
    """Return the query parameters that are not empty.

    Raises:
        SelectionError: a parameter is unknown, or no database could search for it.
    """
    parameters = {name: value for name, value in request.query_params.items() if value != ""}
    if "\0" in request.scope["path"] or any("\0" in value for value in parameters.values()):
        raise SelectionError("The address contains a NUL character. Remove %00.")
    if unknown := sorted(set(parameters) - set(options)):
        raise SelectionError(f"This page has no parameter {unknown[0]!r}. Parameters: {', '.join(options) or 'none'}.")
    if len(parameters.get("q", "")) > MAX_SEARCH_LENGTH:
        raise SelectionError(f"The text to search for is too long. Use at most {MAX_SEARCH_LENGTH:,} characters.")
    return parameters


def make_error_page(error: SuffrageError) -> Page:
    """Return the page of an error."""
    status = 404 if isinstance(error, NotFoundError) else 503 if isinstance(error, DatabaseError) else 400
    title = {404: "Not found", 503: "The store is not available"}.get(status, "This does not work")
    return Page(title=title, template="error.html", data={"problem": str(error)}, status=status)


def _internal_error(_: Request, error: Exception) -> Response:
    problem = f"This page failed ({type(error).__name__}). The terminal in which suffrage serve runs shows the details."
    page = Page(title="Internal error", template="error.html", data={"problem": problem}, status=500)
    return page.respond("html", "/")


def _not_found(request: Request, _: Exception) -> Response:
    if "text/html" not in request.headers.get("accept", ""):
        return PlainTextResponse("There is no page at this address.", 404)
    page = Page(
        title="Not found", template="error.html", data={"problem": "There is no page at this address."}, status=404
    )
    return page.respond("html", "/")
