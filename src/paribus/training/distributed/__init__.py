"""One run on several processes: DDP and FSDP."""
