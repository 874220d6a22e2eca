"""The static site: every claim with its verdict at each scale, a page per table, its runs, and the published tables."""
