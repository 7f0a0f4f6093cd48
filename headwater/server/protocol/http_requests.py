"""What requests of the protocols have in common: bodies, parameters, media types and the IRIs of graphs."""

from __future__ import annotations

from email.parser import BytesParser
from email.policy import HTTP
from urllib.parse import parse_qsl, urlsplit

from fastapi import Request
from pyoxigraph import NamedNode

from headwater.server.problems import Problem

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


async def read_body(request: Request, largest: int) -> bytes:
    """The body of a request, if it is not larger than it may be."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > largest:
            raise Problem(
                413, "The request is too large", f"It may have {largest:,} bytes: send it in parts, or load files."
            )
    return bytes(body)


def media_type_of(request: Request, offered: str) -> str:
    """The media type of a body, whose text must be UTF-8; `offered` says what may be sent."""
    name, *parameters = (part.strip() for part in request.headers.get("content-type", "").split(";"))
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "utf8", "us-ascii"):
            raise Problem(415, "Text of another encoding", "Send it in UTF-8.")
    if not name:
        raise Problem(415, "The Content-Type is missing", f"Say what the body is: {offered}.")
    return name.lower()


def read_text(body: bytes) -> str:
    """A body as text."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(400, "The text is not UTF-8", f"Byte {error.start} cannot be read: send it in UTF-8.") from None


def read_parameters(text: str) -> list[tuple[str, str]]:
    """The parameters of a query string or a form; percent-encoding is decoded once."""
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=1000)
    except ValueError:
        raise Problem(400, "The parameters cannot be read", "Encode them as UTF-8, percent-encoded.") from None


def read_parts(request: Request, body: bytes) -> list[tuple[str, bytes]]:
    """The media types and contents of the parts of a body in `multipart/form-data`."""
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode("latin-1")
    message = BytesParser(policy=HTTP).parsebytes(head + body)
    if not message.is_multipart():
        raise Problem(400, "The parts cannot be read", "Give the boundary between them in the Content-Type.")
    found = []
    for part in message.iter_parts():
        content = part.get_payload(decode=True)
        found.append((part.get_content_type(), content if isinstance(content, bytes) else b""))
    return found


def check_iri(text: str, what: str) -> str:
    """An absolute IRI that a request names."""
    try:
        NamedNode(text)
    except ValueError:
        raise Problem(400, "Not an IRI", f"{what} must be an absolute IRI.") from None
    if any(character <= " " or character in '<>"{}|^`\\' for character in text):
        raise Problem(400, "Not an IRI", f"{what} must be an absolute IRI.")
    return text


def address_of(request: Request) -> str:
    """The address of a request as it was written, without its query."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    parts = urlsplit(str(request.base_url))
    return f"{parts.scheme}://{parts.netloc}{raw.decode('latin-1').partition('?')[0]}"


def read_tags(value: str | None) -> tuple[str, ...] | None:
    """The entity tags of an If-Match or If-None-Match header, without quotes and without the format of the graph."""
    if value is None:
        return None
    tags = (tag.strip().removeprefix("W/").strip('"') for tag in value.split(","))
    return tuple(tag.partition(".")[0] for tag in tags)
