#compdef tracing
# Completion for zsh: source <(tracing completion zsh), after compinit
_tracing() {
    local -a candidates
    local line
    for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT-1]}" "$PREFIX" 2> /dev/null)}"; do
        case "$line" in
            :files*) compset -P '*='; _files ;;
            :folders*) compset -P '*='; _files -/ ;;
            ?*) candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    if (( ${#candidates} )); then
        _describe tracing candidates
    fi
}
if [[ "${funcstack[1]}" == _tracing ]]; then
    _tracing "$@"
else
    compdef _tracing tracing
fi
