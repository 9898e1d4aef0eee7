"""The command `suffrage ui`."""

from __future__ import annotations

import click

from tracker.cli.help_text import Command
from tracker.cli.options import tracking_uri_option
from tracker.cli.output import inform

HOST = "127.0.0.1"


@click.command(cls=Command)
@tracking_uri_option
@click.option("--port", type=click.IntRange(1, 65535), default=5000, show_default=True, help="Port on this machine.")
def command(tracking_uri: str, port: int) -> None:
    """Open the MLflow interface in the browser.

    Serves the MLflow store on 127.0.0.1 until Ctrl-C. If the tracking URI is that of a server, prints its URL.

    Examples:
        suffrage ui
        suffrage ui --port 8080
    """
    from tracker.recording.mlflow.tracking_store import mlflow_store

    if mlflow_store(tracking_uri).is_server:
        inform("The tracking URI is a server. Open it in a browser:")
        click.echo(mlflow_store(tracking_uri).display_uri)
        return

    import os
    import sys

    from tracker.cli.usage_errors import check_port_free
    from tracker.errors import PublishingError
    from tracker.recording.mlflow.mlflow_logging import SETTINGS
    from tracker.recording.mlflow.publishing import prepare_store

    check_port_free(HOST, port, "suffrage ui", PublishingError)
    store = prepare_store(tracking_uri)
    inform(f"Serving {store.display_uri}; starting takes some seconds. Stop with Ctrl-C.")
    click.echo(f"http://{HOST}:{port}")
    sys.stdout.flush()
    server = ["-m", "mlflow", "server", "--host", HOST, "--port", str(port), "--workers", "1"]
    where = ["--backend-store-uri", store.uri, "--default-artifact-root", f"{store.artifacts}"]
    os.execve(sys.executable, [sys.executable, *server, *where], SETTINGS | dict(os.environ))
