"""The command `suffrage ui`."""

from __future__ import annotations

from collections.abc import Mapping

import click

from tracker.cli.help_text import Command
from tracker.cli.options import tracking_uri_option
from tracker.cli.output import inform, warn
from tracker.cli.values.terminal_text import echo

HOST = "127.0.0.1"
MAX_CHARTS = 5


@click.command(cls=Command)
@tracking_uri_option
@click.option("--port", type=click.IntRange(1, 65535), default=5000, show_default=True, help="Port on this machine.")
def command(tracking_uri: str, port: int) -> None:
    """Open the MLflow interface in the browser.

    Serves the MLflow store on 127.0.0.1 until Ctrl-C. Prints an address for each benchmark: a chart of its models,
    sorted by their means. If the tracking URI is that of a server, prints its addresses.

    Examples:
        suffrage ui
        suffrage ui --port 8080
    """
    from tracker.errors import PublishingError
    from tracker.recording.mlflow.publishing import list_charts
    from tracker.recording.mlflow.tracking_store import mlflow_store

    store = mlflow_store(tracking_uri)
    if store.is_server:
        inform("The tracking URI is a server. Open it in a browser:")
        try:
            charts = list_charts(tracking_uri)
        except PublishingError as error:
            warn(str(error))
            charts = {}
        _print_addresses(store.display_uri, charts)
        return

    import os
    import sys

    from tracker.cli.process.child_server import run_server
    from tracker.cli.usage_errors import check_port_free
    from tracker.recording.mlflow.mlflow_logging import SETTINGS

    check_port_free(HOST, port, "suffrage ui", PublishingError)
    charts = list_charts(tracking_uri)
    inform(f"Serving {store.display_uri}; starting takes some seconds. Stop with Ctrl-C.")
    _print_addresses(f"http://{HOST}:{port}", charts)
    sys.stdout.flush()
    server = ["-m", "mlflow", "server", "--host", HOST, "--port", str(port), "--workers", "1"]
    # All users of the machine can read command lines; only this one can read the environment.
    where = {"MLFLOW_BACKEND_STORE_URI": store.uri, "MLFLOW_DEFAULT_ARTIFACT_ROOT": f"{store.artifacts}"}
    code = run_server([sys.executable, *server], SETTINGS | dict(os.environ) | where)
    click.get_current_context().exit(code)


def _print_addresses(interface: str, charts: Mapping[str, str]) -> None:
    """Print the address of each benchmark's chart, the last updated one first; without any, that of the interface."""
    for benchmark, path in list(charts.items())[:MAX_CHARTS]:
        echo(f"{benchmark}: {interface}/{path}")
    if not charts:
        echo(interface)
    elif len(charts) > MAX_CHARTS:
        inform(
            f"And {len(charts) - MAX_CHARTS} more benchmarks: {interface}/#/experiments?workflowType=machine_learning"
        )
