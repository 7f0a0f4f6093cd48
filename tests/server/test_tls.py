"""TLS with the certificate files that the settings name."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.server.serving import Server, serving


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl, which makes the certificate")
def test_a_server_with_a_certificate_speaks_tls_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    begin = Server.__init__

    def begin_with_tls(server: Server, *arguments: object, **named: object) -> None:
        begin(server, *arguments, **named)  # type: ignore[arg-type]
        server.url = server.url.replace("http://", "https://")
        context = ssl.create_default_context(cafile=str(certificate))
        server.client.close()
        server.client = httpx.Client(base_url=server.url, verify=context, timeout=60, trust_env=False)

    monkeypatch.setattr(Server, "__init__", begin_with_tls)
    with serving(tmp_path, '[server]\ncertificate = "server.crt"\nkey = "server.key"\n') as server:
        assert server.client.get("/health").json() == {"status": "ok"}
        with pytest.raises(httpx.TransportError):
            httpx.get(server.url.replace("https://", "http://") + "/health", trust_env=False)
