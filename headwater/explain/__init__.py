"""Plans for people: as text, as Mermaid and DOT, as a picture."""
