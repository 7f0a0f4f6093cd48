"""Addresses without their secrets, for messages and logs.

The user info, the parameters and the fragment of an address may hold passwords and keys. They are left out wherever an
address is shown.
"""

from __future__ import annotations

import logging
import re
from urllib.parse import urlsplit, urlunsplit

SECRET_IN_QUERY = (
    "an address in a query names no user and no password, because queries are shown in many places: give them in the "
    "environment (HEADWATER_AUTH_…), or where the endpoint or the stream is set up"
)
"""Why a query is refused."""
_USER_INFO = re.compile(r"(?<=://)[^/?#\s<>\"'@]*(?:@[^/?#\s<>\"'@]*)*(?=@)")


def redact_url(url: str) -> str:
    """The address without user, password, parameters and fragment, for messages."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the address"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def has_user_info(url: str) -> bool:
    """Whether an address names a user or a password."""
    return _USER_INFO.search(url) is not None


def mask_user_info(text: str) -> str:
    """A text whose addresses show stars in place of users and passwords; its length stays, so that columns do."""
    return _USER_INFO.sub(lambda match: "*" * len(match[0]), text)


class RedactingFilter(logging.Filter):
    """Shows the addresses in the records of an HTTP library without their secrets."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                redact_url(str(value)) if hasattr(value, "raw_host") else value for value in record.args
            )
        return True


def redact_http_logs() -> None:
    """Have httpx log addresses without their secrets: it logs every request with its whole address."""
    logger = logging.getLogger("httpx")
    if not any(isinstance(one, RedactingFilter) for one in logger.filters):
        logger.addFilter(RedactingFilter())
