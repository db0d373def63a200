# Completion for bash: source <(tracing completion bash)
_tracing_complete() {
    local line="${COMP_LINE:0:COMP_POINT}" words last prefix="" candidate
    read -ra words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    last="${words[${#words[@]}-1]}"
    # Bash replaces only what follows the last = if that separates words.
    [[ "$COMP_WORDBREAKS" == *=* && "$last" == *=* ]] && prefix="${last%"${last##*=}"}"
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        case "$candidate" in
            :files | :folders)
                compopt -o filenames 2> /dev/null
                local kind=-f
                [[ "$candidate" == :folders ]] && kind=-d
                while IFS= read -r candidate; do COMPREPLY+=("$candidate"); done < <(compgen "$kind" -- "${last##*=}")
                ;;
            *) COMPREPLY+=("${candidate#"$prefix"}") ;;
        esac
    done < <("${words[0]}" __complete "${words[@]:1}" 2> /dev/null)
}
complete -F _tracing_complete tracing
