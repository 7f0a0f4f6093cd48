"""`python -m headwater.terms.scanning.precompile_scanner`: numba compiles the scanner into its cache on disk."""

from __future__ import annotations

from headwater.terms.scanning.pattern_tables import ScanPattern, ScanPatterns
from headwater.terms.scanning.scanner import scan

_TEXT = b'1000\t<http://ex/s> <http://ex/p> "21.5" <http://ex/g> .\n1000\t<http://ex/s> <http://ex/p> "\\u00e9" .\n'


def precompile_scanner() -> int:
    """Scan a small text, with and without patterns; gives how many texts of terms it has."""
    return len(scan(_TEXT).texts()) + len(scan(_TEXT, patterns=ScanPatterns([ScanPattern()])).texts())


if __name__ == "__main__":
    precompile_scanner()
