"""A socket, a server on it, and its end. Knows sockets and signals; no models and no routes."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from eyeline.errors import ConfigError, Interrupted

GRACE = 5.0  # seconds beyond a request's time limit, until which a stopping service waits for what it has begun


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises ConfigError where it cannot be had; port 0 is any free one."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        made = socket.socket(family, kind, number)
    except (OSError, UnicodeError, OverflowError) as error:
        raise ConfigError(f"not an address: {error}", f"--host {host} --port {port}") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(2048)
    except OSError as error:
        made.close()
        hint = "another --port may be free; 0 takes any" if error.errno is not None else ""
        raise ConfigError(
            f"cannot listen: {(error.strerror or str(error)).lower()}", f"--host {host} --port {port}", hint
        ) from None
    return made


def address(listening: socket.socket) -> str:
    """Its URL."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_of_this_machine(listening: socket.socket) -> bool:
    """Whether only programs on this machine reach it."""
    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback


class Server(uvicorn.Server):
    """One whose signals are ours."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def configured(app: FastAPI, seconds: float) -> uvicorn.Config:
    """How a server runs `app`, whose requests take so many seconds at most."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        timeout_keep_alive=75,  # seconds: a client that asks now and then finds its connection still there
        timeout_graceful_shutdown=int(seconds + GRACE),
    )


def serve(app: FastAPI, listening: socket.socket, seconds: float, started: Callable[[], None]) -> None:
    """Serves until SIGTERM or SIGINT; then nothing new is taken, and what was begun is answered. A second signal ends at once.

    Args:
        seconds: the time limit of a request.
        started: is called when requests are answered.

    Raises:
        Interrupted: on SIGINT.
    """
    received = asyncio.run(_serve(Server(configured(app, seconds)), listening, started))
    if received == signal.SIGINT:
        raise Interrupted("the service has ended; what it had begun was answered")


async def _serve(server: Server, listening: socket.socket, started: Callable[[], None]) -> int | None:
    received: int | None = None

    def stop(number: int) -> None:
        nonlocal received
        server.force_exit = server.should_exit
        server.should_exit, received = True, number

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    serving = asyncio.create_task(server.serve([listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        started()
    await serving
    return received
