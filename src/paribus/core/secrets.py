"""Finds and masks secrets in settings, which must not appear in logs, trackers or committed records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"
_WORDS = {"password", "passwd", "passphrase", "secret", "secrets", "token", "apikey", "credential", "credentials"}
_LOGIN = re.compile(r"(?P<head>[A-Za-z][\w+.-]*://[^/\s:@]*:)[^/\s@]+(?=@)")
_QUERY = re.compile(r"(?P<head>[?&](?:password|token|api_?key|key|secret|signature)=)[^&\s'\"]+", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether a setting of this name is a secret: `api_key`, `hf_token`, `password`; not `max_tokens`."""
    words = re.split(r"[_.-]", name.lower())
    return bool(_WORDS & set(words)) or (len(words) > 1 and words[-1] == "key")


def mask_text(text: str) -> str:
    """A text without the passwords of its URLs, and without the value of `key=value` if the key is a secret's."""
    key, equals, value = text.partition("=")
    if equals and value and re.fullmatch(r"[\w.+/-]+", key) and is_secret(key.rpartition(".")[2]):
        return f"{key}={MASK}"
    return _QUERY.sub(rf"\g<head>{MASK}", _LOGIN.sub(rf"\g<head>{MASK}", text))


def mask(node: object, name: str = "") -> Any:
    """Plain data with the secrets in it masked."""
    if isinstance(node, Mapping):
        return {key: mask(value, str(key)) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [mask(value, name) for value in node]
    if not isinstance(node, str) or not node:
        return node
    return MASK if is_secret(name) else mask_text(node)
