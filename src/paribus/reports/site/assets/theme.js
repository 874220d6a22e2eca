// Set before the first paint, so that a chosen theme never flashes.
try { const kept = localStorage.getItem("theme"); if (kept) document.documentElement.dataset.theme = kept; } catch (error) { /* no storage */ }
