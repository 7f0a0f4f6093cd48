"""Public test suites run against Headwater: W3C and CSRBench."""
