"""GROUP BY whose aggregates can take values back."""
