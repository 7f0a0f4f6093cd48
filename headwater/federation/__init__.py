"""SERVICE: local views of remote data, refreshed within a budget, with an estimate of their accuracy."""
