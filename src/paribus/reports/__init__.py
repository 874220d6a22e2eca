"""What is made from records: tables, plots, the site, audits and comparisons."""
