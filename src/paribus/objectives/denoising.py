"""Text to text: read a corrupted text, write what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.corruption.corruption import Corruption
from paribus.objectives.spec import ObjectiveSpec, Statistics

if TYPE_CHECKING:
    from paribus.corruption.masking.pattern import NoisePattern
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.network import Network
    from paribus.models.spec import ModelSpec
    from paribus.objectives.objective import Objective


@dataclass(frozen=True)
class Denoising(ObjectiveSpec):
    """How the encoder is shown the noise and what the decoder writes (T5, arXiv 1910.10683, section 3.3)."""

    inputs: Any
    targets: Any
    semantics: ClassVar[int] = 1
    stages: ClassVar[int] = 2
    writes_text: ClassVar[bool] = True

    def corruption(self, masking: NoisePattern) -> Corruption:
        return Corruption(masking, self.inputs, self.targets)

    def compose(self, network: Network, vocabulary: Vocabulary) -> Objective:
        from paribus.models.heads.vocabulary import LanguageModelHead
        from paribus.objectives.objective import Objective

        return Objective({"denoising": LanguageModelHead(network)})

    def head_flops(self, statistics: Statistics, model: ModelSpec) -> float:
        return statistics.predicted * 2.0 * model.table_width * statistics.vocabulary
