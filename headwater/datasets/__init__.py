"""Linked data on disk: data sets, their versions, and the views that queries join with."""
