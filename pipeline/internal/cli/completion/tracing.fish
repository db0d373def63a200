# Completion for fish: tracing completion fish | source
function __tracing_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l prefix (string match -r -- '^-[^=]*=' $last)
    for line in ($words[1] __complete $words[2..-1] "$last" 2>/dev/null)
        switch $line
            case ':files*'
                string replace -r -- '^' "$prefix" (__fish_complete_path (string replace -r -- '^-[^=]*=' '' "$last"))
            case ':folders*'
                string replace -r -- '^' "$prefix" (__fish_complete_directories (string replace -r -- '^-[^=]*=' '' "$last"))
            case '*'
                echo $line
        end
    end
end
complete -c tracing -f -a '(__tracing_complete)'
