"""Task types: how examples become rows, which head reads them, what its outputs mean, and how they are scored."""
