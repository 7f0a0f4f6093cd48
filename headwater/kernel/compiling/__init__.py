"""From a plan to operators."""
