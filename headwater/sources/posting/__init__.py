"""Streams that come in bodies over HTTP: decoded, counted, and spooled as bytes."""
