"""Drawings of a table with matplotlib: as SVG for pages (light and dark), and as SVG, PNG and PDF files."""
