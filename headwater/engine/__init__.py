"""`Engine` and `Query`: what `import headwater` shows."""
