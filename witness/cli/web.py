"""``gt web``: everybody at a glance, in a browser."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path

import click

from witness.config.town import Town
from witness.errors import UsageError, WitnessError

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(epilog="Examples:\n\n  gt web\n\n  gt web --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=7433, show_default=True, type=click.IntRange(0, 65535), help="0: any free one.")
@click.option("--tls-cert", type=_FILE, help="Certificate, needed on another host than this machine.")
@click.option("--tls-key", type=_FILE, help="Its key.")
@click.option("--insecure", is_flag=True, help="Another host without TLS: whoever hears the network reads all.")
def web(host: str, port: int, tls_cert: Path | None, tls_key: Path | None, insecure: bool) -> None:
    """The town's polecats as a page, live: who needs you, who is stuck, at work, idle, done and dead today.

    Prints a link that lets one browser in, once. The page only shows. Needs the extra `web`: pip install
    'gt-witness[web]'.
    """
    if (tls_cert is None) != (tls_key is None):
        raise UsageError("--tls-cert and --tls-key go together")
    if not (_is_loopback(host) or tls_cert or insecure):
        raise UsageError(f"--host {host} is seen by others: give --tls-cert and --tls-key, or --insecure")
    town = Town.find()
    try:
        import uvicorn

        from witness.views.web import Page
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise WitnessError("gt web needs Starlette and uvicorn: pip install 'gt-witness[web]'") from error
    from witness.views.feed import TownFeed

    town.need_runtime()
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise WitnessError(f"cannot listen on {host} port {port}: {error.strerror}; another --port?") from error
    page = Page(TownFeed(town), host, secure=tls_cert is not None)
    named = f"[{host}]" if ":" in host else host
    scheme = "https" if tls_cert else "http"
    click.echo(f"{scheme}://{named}:{listening.getsockname()[1]}/enter?key={page.key}")
    page.follow()
    config = uvicorn.Config(
        page.app(), log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=1,
        ssl_certfile=tls_cert, ssl_keyfile=tls_key,
    )  # fmt: skip
    uvicorn.Server(config).run([listening])


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
