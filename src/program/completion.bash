# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of the commands and options of gmxfmm for bash, as gmxfmm help has them. completion.zsh reads it, too.
_gmxfmm() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]} words="" line name rest
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="solve error help --help --version"
    else
        while read -r name rest; do
            case $name in
            --*)
                # words of a choice, a|b|c, stand behind a colon and before the default in brackets
                if [ "$name" = "$before" ]; then
                    line=$(printf '%s\n' "$rest" | sed -n 's/.*: \([A-Za-z0-9/]*|[A-Za-z0-9/|]*\) (.*/\1/p')
                    words=${line//|/ }
                    break
                fi
                [ "${current#-}" = "$current" ] || words="$words $name"
                ;;
            esac
        done <<<"$("$program" help 2>/dev/null)"
    fi
    [ -n "$words" ] || return 0 # names of files
    # shellcheck disable=SC2207 # words without blanks
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _gmxfmm gmxfmm
