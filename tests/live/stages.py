"""The rules by which kwok plays nodes and pods: the files in kwok/, with the texts they have in common filled in."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

FOLDER = Path(__file__).parent / "kwok"

# A container's command and arguments, in jq and in a Go template, and what becomes of it.
WORDS = {
    "command": '((.command // []) + (.args // [])) | join(" ")',
    "its command": 'join " " (concat (default (list) .command) (default (list) .args))',
    "ends": "^(/bin/)?(true|false)$|exit [0-9]+$",
    "fails": "^(/bin/)?false$|exit [1-9][0-9]*$",
    "succeeds": "^(/bin/)?true$|exit 0+$",
    "exit code": 'trimPrefix "/bin/" | replace "true" "0" | replace "false" "1" | trimPrefix "exit "',
}

# Lines of a status, for templates that have set $now.
BLOCKS = {
    "ready conditions": """
        {{ range list "ContainersReady" "Ready" }}
        - {type: {{ . }}, status: "True", reason: null, message: null, lastTransitionTime: {{ $now | Quote }}}
        {{ end }}
        """,
    "unready conditions": """
        {{ range list "ContainersReady" "Ready" }}
        - type: {{ . }}
          status: "False"
          reason: ContainersNotReady
          message: containers with unready status
          lastTransitionTime: {{ $now | Quote }}
        {{ end }}
        """,
    "ended containers": """
        {{ range .spec.containers }}
        {{ $end := regexFind "<ends>" (<its command>) }}
        {{ if $end }}
        {{ $code := $end | <exit code> }}
        - name: {{ .name | Quote }}
          ready: false
          started: false
          state:
            running: null
            terminated:
              exitCode: {{ $code }}
              reason: {{ ternary "Completed" "Error" (eq $code "0") }}
              startedAt: {{ $now | Quote }}
              finishedAt: {{ $now | Quote }}
        {{ end }}
        {{ end }}
        """,
}


def stages() -> str:
    """All rules, as kwok reads them."""
    files = "\n---\n".join(file.read_text() for file in sorted(FOLDER.glob("*.yaml")))
    text = "\n".join(_filled(line) for line in files.splitlines())
    for name, word in WORDS.items():
        text = text.replace(f"<{name}>", word)
    return text


def _filled(line: str) -> str:
    """The block that the line stands for, as far in as the line; any other line as it is."""
    name = line.strip()
    block = BLOCKS.get(name[1:-1]) if name.startswith("<") else None
    return indent(dedent(block).strip(), line[: line.index("<")]) if block else line
