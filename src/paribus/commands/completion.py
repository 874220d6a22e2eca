"""`paribus completion`: scripts that make a shell complete verbs, sweeps, options, config groups and their choices."""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.shell_completion import ShellComplete

from paribus.core.arguments import Arguments, Positional, Verb
from paribus.core.errors import UserError, suggest

# The shell hands over every word up to the cursor, and gets one candidate per line. click's scripts do not do for
# `key=value`: bash splits it, zsh puts a blank after `key=`, and fish loses what follows a comma.
BASH = r"""# paribus for bash: eval "$(paribus completion bash)"
_paribus() {
    local IFS=$'\n' line="${COMP_LINE:0:COMP_POINT}" words last cut
    IFS=' ' read -ra words <<< "$line"
    [[ $line == *' ' ]] && words+=('')
    last="${words[${#words[@]}-1]}"
    cut="${last%"$2"}"  # bash replaces only what follows a = or :
    COMPREPLY=($(paribus __complete "${words[@]:1}" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"$cut"}")
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=.] ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _paribus paribus
"""
ZSH = r"""#compdef paribus
# paribus for zsh: eval "$(paribus completion zsh)"
_paribus() {
    local -a found
    found=("${(@f)$(paribus __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    found=(${found:#})
    if (( ! ${#found} )); then
        compset -P '*='
        _files
        return
    fi
    compadd -S '' -- ${(M)found:#*[=.]}
    compadd -- ${found:#*[=.]}
}
compdef _paribus paribus
"""
FISH = r"""# paribus for fish: paribus completion fish | source
function __paribus_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (paribus __complete $words[2..-1] 2>/dev/null | string match -v '')
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path $words[-1]
    end
end
complete -c paribus -f -a '(__paribus_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
SHELL = Positional("SHELL", "bash, zsh or fish", choices=lambda: SCRIPTS)


@click.command(
    cls=Verb,
    params=[SHELL],
    example='eval "$(paribus completion bash)"',
)
def completion(given: Arguments) -> int:
    """Print a completion script for bash, zsh or fish. It completes verbs, sweeps, options, config groups and
    choices.
    \f
    Raises UserError for an unknown shell.
    """
    if given[SHELL] not in SCRIPTS:
        raise UserError(f"unknown shell '{given[SHELL]}'", suggest(given[SHELL], list(SCRIPTS)))
    print(SCRIPTS[given[SHELL]], end="")
    return 0


def complete(words: Sequence[str]) -> list[str]:
    """The candidates for the last word, given those before it."""
    from paribus.commands.cli import cli

    *before, last = words or [""]
    return [item.value for item in ShellComplete(cli, {}, "paribus", "").get_completions(before, last)]
