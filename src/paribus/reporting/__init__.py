"""What people look at: tables, plots, the site, audits, flatness, W&B pages."""
