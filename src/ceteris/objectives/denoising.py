"""Text to text: read a corrupted text, write what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Denoising:
    """How the encoder is shown the noise and what the decoder writes (T5, arXiv 1910.10683, section 3.3)."""

    inputs: Any
    targets: Any
    semantics: ClassVar[int] = 1
