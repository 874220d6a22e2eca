"""Makes the client of the Hugging Face hub fail fast without a network."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlparse
from urllib.request import getproxies


@contextmanager
def patience() -> Iterator[None]:
    """If the hub cannot be reached, let its client use only its cache, instead of retrying for half a minute."""
    from huggingface_hub import constants

    before, logger = constants.HF_HUB_OFFLINE, logging.getLogger("huggingface_hub")
    level = logger.level
    constants.HF_HUB_OFFLINE = before or not _reachable(constants.ENDPOINT)
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        logger.setLevel(level)


def _reachable(address: str) -> bool:
    url = urlparse(address)
    if url.scheme in getproxies():
        return True
    try:
        socket.create_connection((url.hostname or "", url.port or 443), timeout=5).close()
    except OSError:
        return False
    return True
