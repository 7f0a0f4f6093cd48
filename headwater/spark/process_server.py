"""One process imports once, and every Python process that Spark asks for is a fork of it.

Spark starts about ten Python processes for a streaming query with a Python source and a stateful step, one after the
other: to look the source up, to make it, to plan its batches, to ask for the names of states, to fork workers. Each
would spend one to three seconds on imports. Sessions that are started here give Spark a launcher in place of Python
(`Launcher`), which hands its files, variables and arguments to a server. The server forks, and the fork runs
the requested module (`process_client` is the other side).

    Java ─▶ launcher -m pyspark.daemon … ─▶ server ─fork▶ pyspark.daemon ─fork▶ workers

The server imports while Java starts, and ends with the process that started it. No thread may run in a process that
forks: a server with a second thread refuses requests, and the launcher runs Python itself. The same where processes
cannot be forked or files not be passed on.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import traceback
import warnings
from collections.abc import Mapping
from typing import Any, NoReturn

from headwater.spark import process_client
from headwater.terms.scratch_folders import ScratchFolder

_REQUEST_SECONDS = 10.0
_BACKLOG = 64


class Launcher:
    """A server of this process, and the program that Spark starts in place of Python."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._scratch = ScratchFolder("processes")
        self._folder = self._scratch.path
        atexit.register(self.close)
        address = self._folder / "socket"
        self.program = self._folder / "python"
        client = [sys.executable, "-I", "-S", process_client.__file__, str(address)]
        self.program.write_text(f'#!/bin/sh\nexec {shlex.join(client)} "$@"\n', encoding="utf-8")
        self.program.chmod(0o700)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(address))
        listener.listen(_BACKLOG)
        with listener:
            # The server ends when its standard input does, with this process.
            self.server = subprocess.Popen(
                [sys.executable, "-m", __name__, str(listener.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **variables},
                pass_fds=[listener.fileno()],
            )

    def close(self) -> None:
        """End the server; the processes that it forked run on."""
        assert self.server.stdin is not None
        self.server.stdin.close()
        self.server.terminate()
        self.server.wait()
        self._scratch.remove()

    @staticmethod
    def is_possible() -> bool:
        return hasattr(os, "fork") and hasattr(socket, "send_fds") and sys.platform == "linux"


class Server:
    """Forks a process for each request; sends its process id and, when it has ended, its exit code."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._children: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Ctrl-C is for the process that started this one, and for Spark.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for one in (self._listener, self._woken, sys.stdin):
            self._selector.register(one, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve requests until standard input ends."""
        while True:
            for key, _ in self._selector.select():
                match key.fileobj:
                    case self._listener:
                        self._accept_request()
                    case self._woken:
                        self._woken.recv(1024)
                        self._reap()
                    case sys.stdin:
                        return
                    case other:
                        self._kill_abandoned(other)

    def _accept_request(self) -> None:
        """Fork a process for the next request and send its process id."""
        connection, _ = self._listener.accept()
        connection.settimeout(_REQUEST_SECONDS)
        try:
            request, files = _receive_request(connection)
        except (OSError, ValueError):
            connection.close()
            return
        pid = os.fork()
        if not pid:
            self._run_request(request, files)
        for file in files:
            os.close(file)
        self._children[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ)
        _send_number(connection, pid)

    def _reap(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            code = os.waitstatus_to_exitcode(status)
            connection = self._children.pop(pid)
            self._selector.unregister(connection)
            _send_number(connection, code if code >= 0 else 128 - code)
            connection.close()

    def _kill_abandoned(self, connection: Any) -> None:
        """Kill the process of a launcher that was killed."""
        for pid, one in self._children.items():
            if one is connection:
                os.kill(pid, signal.SIGKILL)
        self._selector.unregister(connection)
        self._selector.register(connection, 0)

    def _run_request(self, request: list[Any], files: list[int]) -> NoReturn:
        """Run the requested module in this fork, to its end."""
        code = 1
        try:
            self._release_server()
            (module, *arguments), variables, folder = request
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            os.environ.clear()
            os.environ.update(variables)
            os.chdir(folder)
            for path in reversed(os.environ.get("PYTHONPATH", "").split(os.pathsep)):
                if path and path not in sys.path:
                    sys.path.insert(0, path)
            sys.argv = [module, *arguments]
            with warnings.catch_warnings():
                # It is imported already, which is the point.
                warnings.filterwarnings("ignore", category=RuntimeWarning, module="runpy")
                runpy.run_module(module, run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code & 0xFF)

    def _release_server(self) -> None:
        """Close the files of the server and restore the signal handlers, in a fork."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._selector.close()
        for one in (self._listener, self._wake, self._woken, *self._children.values()):
            one.close()


def _receive_request(connection: socket.socket) -> tuple[list[Any], list[int]]:
    head, files, _, _ = socket.recv_fds(connection, 8, 3)
    size = int.from_bytes(head, "big")
    received = b""
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise ValueError("the request breaks off")
        received += part
    if len(files) != 3:
        raise ValueError("the request has no files")
    return json.loads(received), list(files)


def _send_number(connection: socket.socket, number: int) -> None:
    try:
        connection.sendall(f"{number}\n".encode())
    except OSError:
        # Nobody listens any more, and the selector reports that to `_kill_abandoned`.
        return


def _import_modules_of_spark() -> None:
    """Import what Spark runs beside its workers."""
    import pyspark.sql.streaming.python_streaming_source_runner
    import pyspark.sql.streaming.transform_with_state_driver_worker
    import pyspark.sql.worker.create_data_source
    import pyspark.sql.worker.lookup_data_sources
    import pyspark.sql.worker.plan_data_source_read  # noqa: F401


def main() -> None:
    from headwater.spark.worker_daemon import prepare_daemon

    if prepare_daemon(_import_modules_of_spark):
        Server(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
