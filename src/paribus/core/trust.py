"""What a config may name and show. One from a stranger (a checkpoint, a sweep file) must not run code, and no log,
tracker or committed record may hold a secret.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError

OURS = __name__.partition(".")[0]
KNOWN = (OURS, "torch.optim", "optuna.samplers", "optuna.pruners")
_HYDRA = ("hydra._internal.core_plugins", "hydra_plugins")  # what Hydra itself makes from `hydra.*`
_LOGGING = ("logging", "colorlog", "hydra._internal")
_SPACE = "custom_search_space"  # of a search: a function
_PLACES = ("callbacks", "launcher", "sweeper")  # of `hydra`: it makes objects of what is below
DECLARED = Path("conf") / "trusted.yaml"  # in the working directory
_MEND = f"write `trusted: [%s]` into {DECLARED} if you trust it"
MASK = "***"
_WORDS = {"password", "passwd", "passphrase", "secret", "secrets", "token", "apikey", "credential", "credentials"}
_LOGIN = re.compile(r"(?P<head>[A-Za-z][\w+.-]*://[^/\s:@]*:)[^/\s@]+(?=@)")
_QUERY = re.compile(r"(?P<head>[?&](?:password|token|api_?key|key|secret|signature)=)[^&\s'\"]+", re.IGNORECASE)


def declared() -> tuple[str, ...]:
    """The modules and packages that the user trusts: `trusted: [my_package]` in `conf/trusted.yaml`.

    Neither an override nor a stored config can add to them. Raises UserError if the file does not hold such a list.
    """
    import yaml

    try:
        content = yaml.safe_load(DECLARED.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"{DECLARED} cannot be read ({error})", "write trusted: [my_package]") from error
    named = content.get("trusted") if isinstance(content, dict) and len(content) == 1 else None
    if not isinstance(named, list) or not all(isinstance(name, str) and name for name in named):
        raise UserError(f"{DECLARED} holds no list 'trusted'", "write trusted: [my_package]")
    return tuple(named)


def import_declared() -> None:
    """Import the user's trusted modules, so that what they register (a metric, a plot, a verdict word) is known.

    Modules that are not here are left out. Raises UserError for one that cannot be imported.
    """
    for name in declared():
        _see_working_directory()
        try:
            if find_spec(name) is not None:
                import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise UserError(
                    f"{name} in {DECLARED} cannot be imported ({error})", "install what it needs"
                ) from error
        except Exception as error:
            raise UserError(f"{name} in {DECLARED} cannot be imported ({error!r})", "mend the module") from error


def is_trusted(name: str, modules: tuple[str, ...] | None = None) -> bool:
    """Whether a dotted name lies in a trusted module. Nothing is imported."""
    allowed = (*KNOWN, *declared()) if modules is None else modules
    return any(name == module or name.startswith(f"{module}.") for module in allowed)


def check_name(name: str, key: str = "_target_", also: tuple[str, ...] = ()) -> None:
    """Check the name of a class, or under another key than `_target_` that of a function, before it is imported.

    A function is trusted only if the user has declared its module. A declared module may be in the working directory.

    Args:
        name: dotted; a function may also be written as `module:function`.
        key: what the message calls it.
        also: further modules whose classes are trusted here.

    Raises:
        UserError: for one in a module that is not trusted.
    """
    module, users = name.replace(":", "."), declared()
    if not is_trusted(module, (*users, *((*KNOWN, *also) if key == "_target_" else ()))):
        raise UserError(f"{key}={name} is not trusted", _MEND % module.partition(".")[0])
    if is_trusted(module, users):
        _see_working_directory()


def _see_working_directory() -> None:
    """Let modules be imported from it, after all installed packages, so that no file here replaces one of them."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)


def check_class(component: type, target: str) -> None:
    """Raises UserError for a class that a trusted module merely imports, and for one of ours that is not a component.

    `paribus.core.files.json.JSONDecoder` is not ours.
    """
    if not is_trusted(component.__module__):
        cause = f"_target_={target} is {component.__module__}.{component.__qualname__}, which is not trusted"
        raise UserError(cause, _MEND % component.__module__)
    if is_trusted(component.__module__, (OURS,)) and not (
        is_dataclass(component) or is_trusted(component.__module__, (f"{OURS}.tasks",))
    ):
        raise UserError(f"_target_={target} is not a component", "name a class that a file in conf names")


def check_tree(tree: object, also: tuple[str, ...] = ()) -> None:
    """Check every name of code in a config, before any of them is imported.

    Args:
        tree: plain data, resolved or not.
        also: further modules that are trusted here.

    Raises:
        UserError: for a name that is not trusted.
    """
    for key, value in leaves(tree):
        if key == "_target_" or (key == "call" and ":" in str(value)) or (key == _SPACE and value is not None):
            check_name(str(value), key, also)


def check_composed(config: Any) -> None:
    """Check a config that Hydra composed, with what Hydra itself makes objects of.

    Raises UserError as `check_tree` does.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    check_tree(OmegaConf.to_container(config, resolve=False), _HYDRA)
    hydra = config.get("hydra") or {}
    for place in (node for name in _PLACES if (node := hydra.get(name)) is not None):
        with suppress(OmegaConfBaseException):  # Hydra cannot make anything of it either
            check_tree(OmegaConf.to_container(place, resolve=True), _HYDRA)
    for name in ("job_logging", "hydra_logging"):
        for key, value in leaves(OmegaConf.to_container(hydra.get(name) or OmegaConf.create(), resolve=False)):
            if key == "()" or (key == "class" and not is_trusted(str(value), _LOGGING)):
                check_name(str(value), f"hydra.{name}: {key}")


def leaves(node: object, key: str = "") -> Iterator[tuple[str, Any]]:
    """(the last key, the value) of each leaf of plain data; an item of a list has the key of the list."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield from leaves(value, str(name))
    elif isinstance(node, list | tuple):
        for value in node:
            yield from leaves(value, key)
    else:
        yield key, node


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
