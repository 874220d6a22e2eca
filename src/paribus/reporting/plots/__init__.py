"""Drawings of a table: small vector scenes, written as SVG (files and pages, light and dark) and as PNG."""
