"""The command `suffrage serve`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click
from click.core import ParameterSource

from tracker.cli.help_text import Command
from tracker.cli.options import database_option, tracking_uri_option
from tracker.cli.output import inform, warn
from tracker.cli.values.terminal_text import echo
from tracker.errors import first_line

TOKEN_VARIABLE = "SUFFRAGE_TOKEN"
MIN_TOKEN_LENGTH = 16


@click.command(cls=Command)
@click.argument("benchmarks", nargs=-1, metavar="[BENCHMARK]...")
@click.option(
    "--export",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write the pages of each BENCHMARK, by default of all, to this folder as files for any web server, and stop.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="Port to listen on.")
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    show_default=f"the variable {TOKEN_VARIABLE}",
    help="File that holds the token which readers must present. Needed for hosts other than this machine.",
)
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="Accept any host name, and need no token: a proxy in front checks who may read.",
)
@click.option(
    "--mlflow-url",
    metavar="URL",
    envvar="SUFFRAGE_MLFLOW_URL",
    show_envvar=True,
    show_default="the tracking URI if it is a server, else http://127.0.0.1:5000",
    help="Address of MLflow's interface, to which pages of published runs and findings link; '' for no links.",
)
@tracking_uri_option
@database_option
@click.pass_context
def command(
    context: click.Context,
    benchmarks: tuple[str, ...],
    folder: Path | None,
    host: str,
    port: int,
    token_file: Path | None,
    behind_proxy: bool,
    mlflow_url: str | None,
    tracking_uri: str,
    database: str | None,
) -> None:
    """Show results in a browser.

    Serves pages of benchmarks, models, runs, prompts, responses and findings until Ctrl-C. It only reads the store.

    Examples:
        suffrage serve
        suffrage serve --host 0.0.0.0 --token-file token.txt
        suffrage serve --export site mmlu_pro
    """
    if folder is not None:
        _reject_server_options(context)
        _export(folder, benchmarks, database)
        return
    if benchmarks:
        raise click.UsageError(f"{benchmarks[0]} is for --export alone: suffrage serve --export FOLDER {benchmarks[0]}")
    import uvicorn

    from tracker.cli.usage_errors import check_port_free
    from tracker.database import connect
    from tracker.recording.mlflow.links import make_links
    from tracker.web.access import LOOPBACK, Access
    from tracker.web.application import create_application
    from tracker.web.connections import SERVER_OPTIONS
    from tracker.web.memory import return_freed_memory

    token = _read_token(token_file)
    if host not in LOOPBACK and not token and not behind_proxy:
        raise click.UsageError(
            f"--host {host} lets other machines read this store. Set {TOKEN_VARIABLE} or --token-file, or use "
            "--behind-proxy if a proxy in front checks who may read."
        )
    try:
        links = make_links(tracking_uri, mlflow_url)
    except ValueError as error:
        raise click.UsageError(f"--mlflow-url {error}") from error
    check_port_free(host, port, "suffrage serve", click.UsageError)
    return_freed_memory()
    engine = connect(database, create=False)
    hosts = () if behind_proxy or host in ("0.0.0.0", "::") else {*LOOPBACK, host.lower()}  # noqa: S104
    application = create_application(engine, Access(hosts=hosts, token=token), links, uses_processes=True)
    display_host = f"[{host}]" if ":" in host else host
    echo(f"http://{display_host}:{port}/")
    inform(f"{'Readers add ?token=TOKEN to their first address. ' if token else ''}Stop with Ctrl-C.")
    uvicorn.run(application, host=host, port=port, log_level="warning", proxy_headers=behind_proxy, **SERVER_OPTIONS)


def _reject_server_options(context: click.Context) -> None:
    """Reject options that have no meaning for an export.

    Raises:
        click.UsageError: an option of the server is on the command line.
    """
    for name in ("host", "port", "token_file", "behind_proxy", "mlflow_url"):
        if context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} is for the server: --export starts none.")


def _export(folder: Path, benchmarks: tuple[str, ...], database: str | None) -> None:
    """Write the pages as static files."""
    from tracker.cli.progress import progress
    from tracker.database import connect
    from tracker.report.number_format import format_count
    from tracker.web.export.folder import check_folder
    from tracker.web.export.site import export_site

    check_folder(folder)
    engine = connect(database, create=False)
    with progress("Exporting pages") as advance:
        summary = export_site(engine, folder, benchmarks, advance)
    if summary.changed:
        warn("The store changed during the export: pages may differ from each other. Export again.")
    inform(
        f"Wrote {folder}: {format_count(summary.n_files, 'file')}, {summary.n_bytes / 1e6:.1f} MB. "
        f"Try it: python -m http.server --directory {shlex.quote(str(folder))}"
    )


def _read_token(path: Path | None) -> str:
    """Return the token of the file, else of the environment; '' for none.

    Raises:
        click.UsageError: the file cannot be read, or the token is too short.
    """
    try:
        token = (os.environ.get(TOKEN_VARIABLE, "") if path is None else path.read_text()).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--token-file {path} cannot be read ({first_line(error)}).") from error
    if 0 < len(token) < MIN_TOKEN_LENGTH or (path is not None and not token):
        raise click.UsageError(
            f"The token has {len(token)} characters; use at least {MIN_TOKEN_LENGTH}: "
            "python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise click.UsageError("The token has characters other than ASCII letters, digits and punctuation.")
    return token
