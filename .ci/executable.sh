#!/bin/sh
# gevals-extensions: one executable. It unpacks a Python environment once, into a folder of the user, and then starts it.
# The archive follows the last line. Folders are tried in this order: the caches of XDG_CACHE_HOME and HOME, then TMPDIR,
# or /tmp. A start that finds its folder calls no other program, except for a temporary folder.
id=@ID@
size=@SIZE@ # MB of the files
line='
'
problems=

whole() { # FOLDER: the files that are read before start.pyc have content; start.pyc checks all others, see there
    [ -x "$1/bin/gevals-extensions" ] && [ ! -e "$1/damaged" ] || return
    for file in @FIRST@; do [ -s "$1/$file" ] || return; done
}

start() { # FOLDER ARGUMENT...: replace this process by the program; return if it is not in the folder, or not this user's
    parent=$1 folder=$1/$id
    shift
    if [ -O "$parent" ] && [ ! -L "$parent" ] && [ -O "$folder" ] && whole "$folder"; then
        exec "$folder/bin/gevals-extensions" -I -S "$folder/start.pyc" "$0" "$@"
    fi
}

refuse() { # REASON [CODE]: leave `unpack`
    echo "$1"
    exit "${2:-1}"
}

reason() { # OUTPUT: print the reason in the first line of the output of a program that failed
    case ${1%%"$line"*} in
        *'not found'* | *gzip*) echo "${1%%"$line"*}" ;;
        *) set -- "${1%%"$line"*}" && echo "${1##*: }" ;;
    esac
}

unpack() { # FOLDER: unpack next to the final folder, then rename, so that other processes see all files or none. Runs
    # in a subshell and prints the reason of a failure; exit code 2 means that another folder does not help.
    umask 077
    export LC_ALL=C
    said=$(mkdir -p "$1" 2>&1) || refuse "$(reason "$said")"
    [ -O "$1" ] && [ ! -L "$1" ] || refuse "expected a folder of this user, found a link or another owner"
    said=$(chmod 700 "$1" 2>&1) || refuse "$(reason "$said")"
    {
        find "$1" -maxdepth 1 -name 'new.*' -mmin +60 -exec rm -rf {} +                # of starts that were killed
        find "$1" -maxdepth 1 -name '*-????????????????' -mtime +30 -exec rm -rf {} + # not started for 30 days
    } 2>/dev/null
    # A disk that is full for a second disturbs other programs, and 80 MB are much for a folder with noexec.
    free=$(df -Pk "$1" 2>/dev/null | { read -r _ && read -r _ _ _ free _ && echo "$free"; })
    case $free in
        '' | *[!0-9]*) ;; # without df, or a file system with blanks in its name
        *) [ $((free / 1000)) -ge $size ] || refuse "no space left: it needs $size MB, and $((free / 1000)) MB are free" ;;
    esac
    new=$(mktemp -d "$1/new.XXXXXXXX" 2>&1) || refuse "$(reason "$new")"
    trap 'rm -rf "$new" "$new.old"' EXIT
    trap 'exit 1' HUP INT TERM
    said=$({ echo '#!/bin/sh' >"$new/try" && chmod 700 "$new/try" && "$new/try" && rm "$new/try"; } 2>&1) ||
        refuse "programs cannot be written and run there: $(reason "$said")"
    if ! said=$({ tail -c +@OFFSET@ "$0" | tar -xzmof - -C "$new"; } 2>&1); then
        case $said in
            *'No space left'* | *quota*) refuse "$(reason "$said"): it needs $size MB" ;;
            *gzip* | *'not found'* | *EOF*) refuse "cannot read the archive in $0: $(reason "$said")" 2 ;;
        esac
        refuse "$(reason "$said")"
    fi
    said=$("$new/bin/gevals-extensions" -I -S -c '' 2>&1) || refuse "the interpreter does not run on this system: $said" 2
    if [ -e "$1/$id" ] && ! whole "$1/$id"; then
        mv "$1/$id" "$new.old" # files of it were deleted or emptied
    fi
    # Fails if another process was first, whose folder is used then.
    said=$("$new/bin/gevals-extensions" -I -S -c 'import os, sys; os.rename(*sys.argv[1:])' "$new" "$1/$id" 2>&1) ||
        whole "$1/$id" || refuse "${said##*"$line"}"
}

try() { # FOLDER ARGUMENT...: start, after unpacking if need be; return if that fails
    start "$@"
    if said=$(unpack "$1" 2>&1 </dev/null); then code=0; else code=$?; fi
    start "$@"
    problems="$problems$line  $1: $said"
    if [ $code = 2 ]; then fail "$@"; fi
}

temporary() { # FOLDER ARGUMENT...: try a folder that users share. Others must not be able to rename or to change ours
    if ! user=$(id -u 2>/dev/null); then
        problems="$problems$line  $1: it needs the command id"
        return
    fi
    shared=$1/gevals-extensions-$user
    case $(ls -ld "$1/." 2>/dev/null) in
        d????????[tT]*) ;;
        d????-??-*) [ -O "$1" ] || shared= ;;
        *) shared= ;;
    esac
    if [ -z "$shared" ]; then
        problems="$problems$line  $1: expected an existing folder in which other users cannot rename files"
        return
    fi
    shift
    case $(ls -ld "$shared" 2>/dev/null) in
        '' | [!d]* | drwx------*) try "$shared" "$@" ;;
        *) problems="$problems$line  $shared: expected a folder that only this user can open (mode 700)" ;;
    esac
}

fail() { # FOLDER ARGUMENT...: print the reasons, also as the response to a host, and exit
    shift
    text="gevals-extensions: cannot unpack its files; set XDG_CACHE_HOME to a folder of yours with $size MB of space, in which programs can be run:$problems"
    echo "$text" >&2
    case $#:${1-}:${2-}:$* in
        0:* | 1:shell:* | 1:kubernetes:* | 1:http:* | 1:ext-*) ;;
        *:serve:*mcp* | *:*:serve:*mcp*) ;;
        *) exit 1 ;;
    esac
    if [ ! -t 0 ] && IFS= read -r request; then
        number=${request#*\"id\"*:}
        number=${number%%[,\}]*}
        text=$(printf %s "$text" | tr '\n' ';' | tr -d '\000-\037' | sed -e 's/[\\"]/\\&/g' -e 's/:;  /: /' -e 's/;  /; /g')
        case $number in
            "$request" | *[!A-Za-z0-9\"\ _.-]*) ;;
            *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"%s"}}\n' "$number" "$text" ;;
        esac
    fi
    exit 1
}

case ${XDG_CACHE_HOME-} in /*) try "$XDG_CACHE_HOME/gevals-extensions/executable" "$@" ;; esac
if [ ! -d "${HOME-}" ]; then
    problems="$problems$line  HOME: expected a folder, found '${HOME-}'"
elif [ "$HOME/.cache" != "${XDG_CACHE_HOME-}" ]; then
    try "$HOME/.cache/gevals-extensions/executable" "$@"
fi
case ${TMPDIR-} in /*) temporary "${TMPDIR%/}" "$@" ;; *) temporary /tmp "$@" ;; esac
fail . "$@"
