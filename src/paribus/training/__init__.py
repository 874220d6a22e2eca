"""One run: steps, the LightningModule, callbacks, the record."""
