#compdef gmxfmm
# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of gmxfmm for zsh: that of bash, which is installed beside it and takes this function's place.
autoload -U +X bashcompinit && bashcompinit
source "${${(%):-%x}:A:h}/../../bash-completion/completions/gmxfmm"
_bash_complete -o default -F _gmxfmm
