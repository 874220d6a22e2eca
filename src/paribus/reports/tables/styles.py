"""How LaTeX prints a mean; a separate module, so that help and completion load quickly."""

from typing import Final

BOTH: Final = "both"
STYLES: Final = {  # of a mean: how the caption says it
    BOTH: "Mean (standard deviation) [95% t interval of the mean]",
    "sd": "Mean ± standard deviation",
    "interval": "Mean [95% t interval of the mean]",
}
