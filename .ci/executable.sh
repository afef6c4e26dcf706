#!/bin/sh
# gevals-extensions: one executable. It unpacks a Python environment once, into the user's cache, and then starts it.
# The archive follows the last line. XDG_CACHE_HOME names another cache; if programs cannot be written and run there,
# the temporary folder is used.
id=@ID@
problems=

whole() { # FOLDER: the files that each start needs have content; a crash of the system can leave them empty
    [ -x "$1/bin/gevals-extensions" ] && [ -s "$1/bin/gevals-extensions" ] && [ -s "$1/start.pyc" ]
}

start() { # FOLDER ARGUMENT...: replace this process by the program; return if it is not in the folder, or not this user's
    parent=$1 folder=$1/$id
    shift
    if [ -O "$parent" ] && [ ! -L "$parent" ] && [ -O "$folder" ] && whole "$folder"; then
        exec "$folder/bin/gevals-extensions" -I -S "$folder/start.pyc" "$0" "$@"
    fi
}

unpack() { # FOLDER: unpack next to the final place, then rename, so that other processes see all files or none
    mkdir -p "$1" || return
    if [ ! -O "$1" ] || [ -L "$1" ]; then
        echo "$1: expected a folder of this user, found a link or another owner"
        return
    fi
    find "$1" -maxdepth 1 -name 'new.*' -mmin +60 -exec rm -rf {} + # of starts that were killed
    find "$1" -maxdepth 1 -name '*-????????????????' -mtime +30 -exec rm -rf {} + # not started for 30 days
    new=$(mktemp -d "$1/new.XXXXXXXX") || return
    if tail -c +@OFFSET@ "$0" | tar -xzof - -C "$new"; then
        if [ -e "$1/$id" ] && ! whole "$1/$id"; then
            mv "$1/$id" "$new/incomplete" # files of it were deleted or emptied
        fi
        # Fails if another process was first, whose folder is used then, or if programs in this folder cannot be run.
        "$new/bin/gevals-extensions" -I -S -c 'import os, sys; os.rename(*sys.argv[1:])' "$new" "$1/$id"
    fi
    rm -rf "$new"
}

try() { # FOLDER ARGUMENT...: start, after unpacking if need be; return if that fails
    start "$@"
    problems="$problems$(umask 077 && unpack "$1" 2>&1 </dev/null)
"
    start "$@"
}

case ${XDG_CACHE_HOME-} in /*) cache=$XDG_CACHE_HOME ;; *) cache=${HOME:+$HOME/.cache} ;; esac
[ -z "$cache" ] || try "$cache/gevals-extensions/executable" "$@"
temporary=${TMPDIR:-/tmp}
# Others must not be able to rename this user's folders: the parent is this user's, or sticky.
if [ -O "$temporary" ] || [ -k "$temporary" ]; then try "$temporary/gevals-extensions-$(id -u)" "$@"; fi
echo "${problems}gevals-extensions: cannot unpack in ${cache:-HOME/.cache} or $temporary;" \
    "set XDG_CACHE_HOME to a folder of yours in which programs can be written and run" >&2
exit 1
