"""How LaTeX sets a mean; apart, so that help and completion read it at once."""

from typing import Final

BOTH: Final = "both"
STYLES: Final = {  # of a mean: how the caption says it
    BOTH: "Mean (standard deviation) [95% t interval of the mean]",
    "sd": "Mean ± standard deviation",
    "interval": "Mean [95% t interval of the mean]",
}
