"""Changes of one part of an encoder, one file each: `+model/change@model.changes.SLOT=NAME`."""
