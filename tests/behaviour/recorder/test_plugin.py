"""The pytest plugin, in runs of pytest within this process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.http_site import serving
from tests.support.recorder_process import ECHO

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["pytester"]

COMMAND = ", ".join(repr(word) for word in ECHO)
EXTENSION = f"{sys.executable!r}, '-m', 'ext_shell'"
ECHOES = f"""
    import pytest

    @pytest.mark.recorded({COMMAND}, protocol="raw")
    def test_one(recorded_child):
        recorded_child.send(b"hello")
        assert recorded_child.receive() == b"hello"
"""
ASKS = f"""
    import pytest

    @pytest.mark.recorded({EXTENSION})
    @pytest.mark.parametrize("version", ["0.0.1"])
    def test_manifest(recorded_child, version):
        manifest = recorded_child.request("initialize", {{"protocolVersion": version}})
        assert manifest["name"] == "shell"
        assert recorded_child.request("shutdown") == {{}}
"""


def run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *words)


def recorded(pytester: pytest.Pytester, source: str, *words: str) -> list[str]:
    """The cassettes that the tests of a module leave, as paths within its folder of cassettes."""
    pytester.makepyfile(test_it=source)
    run(pytester, "--record-mode=once", *words).assert_outcomes(passed=source.count("def test_"))
    folder = pytester.path / "cassettes" / "test_it"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_cassette_is_named_after_its_test_and_plays_without_the_child(pytester: pytest.Pytester) -> None:
    assert recorded(pytester, ASKS) == ["test_manifest[0.0.1].yaml"]
    pytester.makepyfile(test_it=ASKS.replace("ext_shell", "no_such_module"))
    run(pytester).assert_outcomes(passed=1)


def test_a_missing_cassette_is_an_error_that_says_how_to_record_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ECHOES)
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no such cassette; record it: pytest --record-mode=once"])
    result.stdout.no_fnmatch_line("*Traceback*")
    assert not (pytester.path / "cassettes").exists()


def test_once_records_what_is_missing_and_leaves_the_rest(pytester: pytest.Pytester) -> None:
    recorded(pytester, ECHOES)
    cassette = pytester.path / "cassettes" / "test_it" / "test_one.yaml"
    before = cassette.read_bytes()
    run(pytester, "--record-mode=once").assert_outcomes(passed=1)
    assert cassette.read_bytes() == before


def test_the_cassette_of_another_command_is_refused_with_the_options_of_pytest(pytester: pytest.Pytester) -> None:
    recorded(pytester, ECHOES)
    pytester.makepyfile(test_it=ECHOES.replace(COMMAND, "'other-command'"))
    result = run(pytester, "--record-mode=once")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*other-command*", "*pytest --record-mode=all*"])


@pytest.mark.parametrize("mode", ["all", "rewrite"])
def test_all_records_anew(pytester: pytest.Pytester, mode: str) -> None:
    recorded(pytester, ECHOES)
    changed = ECHOES.replace("hello", "goodbye")
    pytester.makepyfile(test_it=changed)
    run(pytester, f"--record-mode={mode}").assert_outcomes(passed=1)
    assert "goodbye" in (pytester.path / "cassettes" / "test_it" / "test_one.yaml").read_text()
    run(pytester).assert_outcomes(passed=1)


def test_a_request_without_a_match_fails_the_test_with_what_was_recorded(pytester: pytest.Pytester) -> None:
    recorded(pytester, ASKS)
    pytester.makepyfile(test_it=ASKS.replace('"protocolVersion": version', '"protocolVersion": "9"'))
    result = run(pytester)
    result.assert_outcomes(failed=1, errors=1)
    difference = '*arguments differ*/params/protocolVersion: recorded "0.0.1", now "9"*'
    advice = "*(pytest --record-mode=all)*ignore=*/params/protocolVersion* in the marker*"
    result.stdout.fnmatch_lines([difference.removesuffix("*") + advice])


def test_a_recorded_request_that_never_comes_fails_the_test(pytester: pytest.Pytester) -> None:
    recorded(pytester, ASKS)
    pytester.makepyfile(test_it=ASKS.replace('assert recorded_child.request("shutdown") == {}', "pass"))
    result = run(pytester)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*never played*", "*request shutdown*"])


def test_a_host_of_the_test_starts_the_command_itself(pytester: pytest.Pytester) -> None:
    source = f"""
        import subprocess
        import pytest

        @pytest.mark.recorded({COMMAND}, protocol="raw", cassette="shared")
        @pytest.mark.parametrize("word", ["a"])
        class TestHost:
            def test_lines(self, recorded_command, word):
                done = subprocess.run(recorded_command, input=b"x\\n", capture_output=True, check=True)
                assert done.stdout == b"x\\n"
    """
    assert recorded(pytester, source) == ["shared.yaml"]
    run(pytester).assert_outcomes(passed=1)
    # Of another length: else its bytecode would still count where all of this took less than a second.
    pytester.makepyfile(test_it=source.replace('b"x', 'b"yy'))
    run(pytester).assert_outcomes(failed=1, errors=1)


def test_a_class_is_part_of_the_name_and_odd_characters_are_not(pytester: pytest.Pytester) -> None:
    source = f"""
        import pytest

        class TestEcho:
            @pytest.mark.recorded({COMMAND}, protocol="raw")
            @pytest.mark.parametrize("text", ["../a b"])
            def test_it(self, recorded_child, text):
                recorded_child.send(text.encode())
                assert recorded_child.receive() == text.encode()
    """
    assert recorded(pytester, source) == ["TestEcho.test_it[..-a-b].yaml"]


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("", "*expected a marker with the command*"),
        ("@pytest.mark.recorded()", "*names no command*"),
        ('@pytest.mark.recorded("cat", ignore=["bad"])', "*--ignore*'bad' is not a JSON pointer*"),
        ('@pytest.mark.recorded("cat", protocl="raw")', "*recorded has no protocl; it takes: *protocol*"),
        (
            '@pytest.mark.recorded("cat", http=True, order="any")',
            "*order applies to recorded messages; with http=True*",
        ),
        ('@pytest.mark.recorded("cat", protocol="morse")', "*protocol='morse': expected one of *gevals*"),
    ],
)
def test_a_wrong_marker_is_explained(pytester: pytest.Pytester, marker: str, said: str) -> None:
    pytester.makepyfile(f"import pytest\n{marker}\ndef test_it(recorded_child): pass")
    result = run(pytester, "--record-mode=once")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])


def test_what_the_child_says_besides_an_answer_is_kept_and_its_requests_are_answered(pytester: pytest.Pytester) -> None:
    child = pytester.makepyfile(
        child="""
        import sys

        def say(text):
            print(text, flush=True)

        sys.stdin.readline()
        say('{"jsonrpc":"2.0","method":"progress","params":{"done":1}}')
        say('{"jsonrpc":"2.0","id":"q","method":"ask","params":{"what":"name"}}')
        print(sys.stdin.readline(), file=sys.stderr)
        say('{"jsonrpc":"2.0","id":1,"result":42}')
        sys.stdin.readline()
        say('{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no such thing"}}')
        """
    )
    source = f"""
        import pytest

        @pytest.mark.recorded({sys.executable!r}, {str(child)!r}, protocol="jsonrpc")
        def test_it(recorded_child):
            recorded_child.handlers["ask"] = lambda params: {{"name": params["what"]}}
            assert recorded_child.request("work") == 42
            assert recorded_child.notifications == [("progress", {{"done": 1}})]
            with pytest.raises(Exception, match="no such thing"):
                recorded_child.request("more")
            assert recorded_child.close() == 0
    """
    recorded(pytester, source)
    child.unlink()
    run(pytester).assert_outcomes(passed=1)


def test_a_child_that_says_nothing_fails_the_test_with_its_standard_error(pytester: pytest.Pytester) -> None:
    child = pytester.makepyfile(child="import sys; print('no licence', file=sys.stderr)")
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.recorded({sys.executable!r}, {str(child)!r})
        def test_it(recorded_child):
            recorded_child.receive()
        """
    )
    result = run(pytester, "--record-mode=once")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*expected a message, found the end of the child's output*", "*no licence*"])


STALE = "*cassettes that no test names*"


def make_stale(pytester: pytest.Pytester) -> Path:
    recorded(pytester, ECHOES)
    stale = pytester.path / "cassettes" / "test_it" / "test_gone.yaml"
    stale.write_bytes((stale.parent / "test_one.yaml").read_bytes())
    return stale


def test_cassettes_that_no_test_names_are_reported(pytester: pytest.Pytester) -> None:
    stale = make_stale(pytester)
    (stale.parent / "test_one.http.yaml").write_text("the other half of one that is named")
    result = run(pytester)
    result.stdout.fnmatch_lines([STALE, str(stale)])
    result.stdout.no_fnmatch_line("*test_one*.yaml")


def test_they_are_reported_under_xdist_too(pytester: pytest.Pytester) -> None:
    stale = make_stale(pytester)
    result = run(pytester, "-n", "2")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([STALE, str(stale)])


def test_files_of_other_recorders_are_not_reported(pytester: pytest.Pytester) -> None:
    stale = make_stale(pytester)
    (stale.parent / "test_http.yaml").write_text("interactions: []\nversion: 1\n")
    run(pytester).stdout.no_fnmatch_line("*test_http.yaml*")


def test_a_test_that_is_deselected_keeps_its_cassette(pytester: pytest.Pytester) -> None:
    recorded(pytester, ECHOES + ECHOES.replace("test_one", "test_two").replace("import pytest", ""))
    run(pytester, "-k", "two").stdout.no_fnmatch_line(STALE)
    run(pytester, "test_it.py::test_two").stdout.no_fnmatch_line(STALE)


def test_the_folder_can_be_another(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="module")
        def recorder_cassette_dir(request):
            return request.path.parent / "sessions"
        """
    )
    pytester.makepyfile(test_it=ECHOES)
    run(pytester, "--record-mode=once").assert_outcomes(passed=1)
    assert (pytester.path / "sessions" / "test_one.yaml").is_file()


def test_a_run_without_recorded_children_imports_none_of_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it():
            assert "ext_recorder.plugin" in sys.modules
            assert "ext_recorder.plugin.child" not in sys.modules
            assert "ext_sdk.core.wire" not in sys.modules
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_the_option_of_pytest_recording_is_used_where_it_is_there(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        pytest_recording="""
        def pytest_addoption(parser):
            parser.addoption("--record-mode", default="once")
        """
    )
    pytester.syspathinsert()
    pytester.makepyfile(test_it=ECHOES)
    run(pytester, "-p", "pytest_recording").assert_outcomes(passed=1)
    assert (pytester.path / "cassettes" / "test_it" / "test_one.yaml").is_file()


def test_without_an_option_the_default_of_pytest_recording_is_to_replay(pytester: pytest.Pytester) -> None:
    recorded(pytester, ECHOES)
    pytester.makepyfile(
        pytest_recording="""
        def pytest_addoption(parser):
            parser.addoption("--record-mode", default=None)
        """
    )
    pytester.syspathinsert()
    run(pytester, "-p", "pytest_recording").assert_outcomes(passed=1)


def test_the_protocol_is_found_out_unless_the_marker_names_it(pytester: pytest.Pytester) -> None:
    recorded(pytester, ECHOES.replace(', protocol="raw"', ""))
    text = (pytester.path / "cassettes" / "test_it" / "test_one.yaml").read_text()
    assert "protocol: gevals" not in text


def asking(url: str) -> str:
    """A test of a child that answers by what it finds on the web."""
    child = (
        "import json, sys, urllib.request\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        f"    found = urllib.request.urlopen({url!r} + asked['method']).read().decode()\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': found}), flush=True)\n"
    )
    return f"""
        import pytest

        @pytest.mark.recorded({sys.executable!r}, "-c", {child!r}, protocol="jsonrpc", http=True)
        def test_one(recorded_child):
            assert recorded_child.request("/count/page") == "1"
    """


def test_the_real_child_runs_without_the_servers_that_it_asks(pytester: pytest.Pytester) -> None:
    with serving() as server:
        source = asking(server.origin)
        assert recorded(pytester, source) == ["test_one.http.yaml", "test_one.yaml"]
    run(pytester).assert_outcomes(passed=1)
    run(pytester, "--record-mode=once").assert_outcomes(passed=1)


def test_what_a_real_child_asks_and_was_not_recorded_fails_the_test(pytester: pytest.Pytester) -> None:
    with serving() as server:
        source = asking(server.origin)
        recorded(pytester, source)
    pytester.makepyfile(
        test_it=source.replace('"/count/page") == "1"', '"/count/page") == "1"; recorded_child.request("/more")')
    )
    result = run(pytester)
    result.stdout.fnmatch_lines(["*/more: never recorded*", "*pytest --record-mode=all*"])
    assert result.ret == 1


def test_the_project_file_applies_to_tests(pytester: pytest.Pytester) -> None:
    source = """
        import pytest

        @pytest.mark.recorded()
        def test_one(recorded_child):
            recorded_child.send(b'{"n": 1}')
            assert recorded_child.receive() == b'{"n": 1}'
    """
    words = ", ".join(
        f'"{word}"' for word in [sys.executable, "-c", "import sys; [print(x, end='', flush=True) for x in sys.stdin]"]
    )
    settings = f"command = [{words}]\nprotocol = 'raw'\nframing = 'content-length'\nmask = ['[0-9]']\n"
    pytester.makefile(".toml", **{"ext-recorder": settings.replace("framing", "# framing")})
    recorded(pytester, source)
    pytester.makepyfile(test_it=source.replace('{"n": 1}\')', '{"n": 2}\')', 1))
    run(pytester).assert_outcomes(passed=1)  # by the mask
    pytester.makepyfile(test_it=source.replace("recorded()", "recorded(order='strict', framing='ndjson')"))
    run(pytester).assert_outcomes(passed=1)
    pytester.makefile(".toml", **{"ext-recorder": "igonre = []"})
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ext-recorder.toml:1: igonre: unknown key; did you mean ignore"])


def test_a_mask_of_the_marker_applies(pytester: pytest.Pytester) -> None:
    recorded(pytester, ECHOES)
    changed = ECHOES.replace('protocol="raw"', 'protocol="raw", mask=["h.l+o"]').replace(
        'send(b"hello")', 'send(b"hallo")'
    )
    pytester.makepyfile(test_it=changed)
    run(pytester).assert_outcomes(passed=1)


def test_a_path_below_tmp_path_is_another_one_in_each_run(pytester: pytest.Pytester) -> None:
    source = f"""
        import pytest

        @pytest.mark.recorded({COMMAND})
        def test_one(recorded_child, tmp_path):
            recorded_child.send({{"jsonrpc": "2.0", "id": 1, "method": "a", "params": [str(tmp_path / "x")]}})
            assert str(tmp_path / "x") in recorded_child.receive().decode()
    """
    (name,) = recorded(pytester, source)
    assert "/tmp/tmp_path/x" in (pytester.path / "cassettes" / "test_it" / name).read_text()
    run(pytester, "--basetemp", str(pytester.path / "elsewhere")).assert_outcomes(passed=1)
