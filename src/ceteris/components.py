"""Components from config: the class named by `_target_`, with one clear line when it cannot be made."""

from __future__ import annotations

from typing import Any

from ceteris.errors import UserError


def build(node: Any, **extra: Any) -> Any:
    """Instantiate a config node as plain settings.

    Raises UserError for what the component itself refuses and for arguments that it does not know.
    """
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate

    try:
        return instantiate(node, _convert_="all", **extra)
    except InstantiationException as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, UserError):
                raise cause from None
            cause = cause.__cause__ or cause.__context__
        raise UserError(" ".join(str(error).split())[:300]) from error
