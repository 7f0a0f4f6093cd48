"""The program that Spark starts in place of Python: `process_server` gives it a process that has imported everything.

    launcher -m pyspark.daemon pyspark.worker        a fork of the server runs this, with our files and variables
    launcher -c "…"                                  Python itself

It is run by its path, without site packages, and imports little: it must be there in some hundredths of a second. To
Spark it is the process that it asked for: signals are passed on, and it ends as that one does. Where there is no
server, Python itself takes over.
"""

import json
import os
import signal
import socket
import sys
from typing import NoReturn


def main(address: str, arguments: list[str]) -> NoReturn:
    """Become the process that Spark asked for: a fork of the server at `address`, or Python itself."""
    if len(arguments) < 2 or arguments[0] != "-m":
        _run_python(arguments)
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(address)
        request = json.dumps([arguments[1:], dict(os.environ), os.getcwd()]).encode()
        socket.send_fds(connection, [len(request).to_bytes(8, "big")], [0, 1, 2])
        connection.sendall(request)
        answer = connection.makefile("rb")
        pid = int(answer.readline() or b"0")
    except OSError:
        pid = 0
    if not pid:
        _run_python(arguments)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    code = answer.readline()
    # Without a code the server is gone, and the exit code of the process is unknown.
    os._exit(int(code) if code else 1)


def _run_python(arguments: list[str]) -> NoReturn:
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
