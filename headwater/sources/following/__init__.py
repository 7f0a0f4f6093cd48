"""Sources that are followed: items that grow, are rotated or replaced, and streams that fall silent."""
