"""`ext-recorder recover`: a cassette from the partial file of a killed recorder, or a recording from its folder."""

from __future__ import annotations

from ext_recorder.cli import Command
from ext_recorder.cli.options import FORCE, to_file, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys
    from pathlib import Path

    from ext_recorder.cassette.paths import SUFFIX
    from ext_recorder.cassette.recovery import name_of, recover

    partial, replace = Path(value_of(values, "PARTIAL")), bool(values["force"])
    output = value_of(values, "output")
    path = Path(output) if output else name_of(partial)
    if partial.is_dir():
        from ext_recorder.run import folder

        sys.stdout.writelines(f"{line}\n" for line in folder.recover(partial, path, replace=replace))
        return 0
    if path.name.endswith(SUFFIX):
        from ext_recorder.http.reader import recover_traffic as recover_http

        traffic = recover_http(partial, path, replace=replace)
        what = "1 HTTP interaction" if traffic.kept == 1 else f"{traffic.kept} HTTP interactions"
        dropped = f"; the last one was incomplete: {traffic.dropped} bytes removed" if traffic.dropped else ""
        unknown = f"; unknown, because the end is missing: {traffic.unknown}" if traffic.unknown else ""
        sys.stdout.write(f"{path}: {what} kept{dropped}{unknown}\n")
        return 0
    recovered = recover(partial, Path(output) if output else None, replace=replace)
    dropped = f"; the last line was incomplete: {recovered.dropped} bytes removed" if recovered.dropped else ""
    events = "1 event" if recovered.events == 1 else f"{recovered.events} events"
    sys.stdout.write(f"{recovered.path}: {events} kept{dropped}\n")
    return 0


COMMAND = Command(
    "recover",
    "Recover a cassette from the partial file of a killed recorder, or the recording of a killed run.",
    """
A session is written to NAME.partial, which is renamed to NAME when the session ends. If the session was interrupted,
everything except an incomplete last line can be recovered. This includes the HTTP traffic in NAME.http.yaml.partial,
except an incomplete last interaction. If its end is missing, the traffic of `ext-recorder run` can be replayed; the
traffic of a Python program can be replayed without its recorded host names, clock and calls. A
cassette that was truncated later, for example by a failed copy, is recovered in place.

`ext-recorder run FOLDER` records in FOLDER.partial. A recording is made of the complete HTTP interactions and of the
complete messages of each child; its header and the output of this command list what is missing.

    ext-recorder recover session.yaml.partial
    ext-recorder recover recordings/create-pod.partial
    ext-recorder recover session.yaml.partial -o rescued.yaml
    ext-recorder recover session.http.yaml.partial
    ext-recorder recover cut.yaml
""",
    run,
    arguments=("PARTIAL",),
    options=(
        to_file("Recovered cassette or recording. Default: NAME for NAME.partial, otherwise the file itself."),
        FORCE,
    ),
)
