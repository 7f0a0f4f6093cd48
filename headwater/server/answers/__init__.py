"""Answers on their way to subscribers: the log on disk, events with ids, and handing them to many."""
