# SPDX-License-Identifier: LGPL-2.1-or-later
# Types a line and a tab into an interactive zsh with the installed completion, and prints what that makes of it.
#   completion.zsh PREFIX LINE
zmodload zsh/zpty
zpty shell "PS1=READY zsh -f -i"
zpty -w shell "PATH=$1/bin:\$PATH; fpath=($1/share/zsh/site-functions \$fpath); autoload -U compinit; compinit -u -D; bindkey '^I' complete-word"
zpty -r -m shell seen '*READY*READY*'
zpty -n -w shell "$2"$'\t'
shown= still=0
repeat 100; do # ten seconds at most, until there is the word and nothing more comes
    sleep 0.1
    ((still++))
    while zpty -r -t shell part; do shown+=$part still=0; done
    [[ $shown == *"${2##* }"?* ]] && ((still > 5)) && break
done
print -r -- "$shown"
