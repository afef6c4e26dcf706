"""Which cassettes the words of a command line mean, and who of several machines takes which."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from ext_recorder.batch.pool import shard
from ext_recorder.batch.selection import file_of, named
from ext_recorder.errors import CassetteError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

CASSETTE = "# A recorded session.\ncassette: 1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.yaml", "a.yml", "deeper/c.yaml", ".hidden/d.yaml", "e.yaml.partial", "notes.txt"):
        path = tmp_path / "all" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CASSETTE)
    (tmp_path / "all" / "faults.yaml").write_text("faults: []\n")
    (tmp_path / "all" / "torn.yaml").write_text("")
    return tmp_path / "all"


def names(folder: Path, *words: str) -> list[str]:
    return [each.name.rpartition("/all/")[2] for each in named(words)]


def test_a_folder_is_the_cassettes_in_it_and_below_it_without_other_yaml_and_hidden_files(folder: Path) -> None:
    assert names(folder, str(folder)) == ["a.yml", "b.yaml", "deeper/c.yaml", "torn.yaml"]


@pytest.mark.parametrize(
    "head", [CASSETTE, '{"cassette": 1}', "recorder: 1\ncassette: 1\n", "'cassette': 1\n", "\n# x\n\ncassette: 1\n"]
)
def test_a_cassette_in_a_folder_is_known_by_its_first_lines_however_they_are_wrapped(tmp_path: Path, head: str) -> None:
    (tmp_path / "session.yaml").write_text(head)
    assert len(named([str(tmp_path)])) == 1


def test_a_file_is_itself_whatever_it_is_called(folder: Path) -> None:
    assert names(folder, str(folder / "notes.txt"), str(folder / "faults.yaml")) == ["faults.yaml", "notes.txt"]


def test_a_pattern_is_the_cassettes_that_it_fits_and_no_other_yaml(folder: Path) -> None:
    assert names(folder, str(folder / "*.yaml")) == ["b.yaml", "torn.yaml"]
    assert "deeper/c.yaml" in names(folder, str(folder / "**" / "*.yaml"))


def test_what_is_named_twice_is_taken_once(folder: Path) -> None:
    assert names(folder, str(folder / "b.yaml"), str(folder / "deeper" / ".." / "b.yaml"), str(folder / "b*")) == [
        "b.yaml"
    ]


def test_a_missing_file_is_left_to_whoever_reads_it(tmp_path: Path) -> None:
    assert [each.name for each in named([str(tmp_path / "missing.yaml")])] == [str(tmp_path / "missing.yaml")]


def test_a_word_that_means_nothing_is_an_error(tmp_path: Path) -> None:
    for word in (str(tmp_path), str(tmp_path / "*.yaml")):
        with pytest.raises(UsageError, match="no cassette; expected"):
            named([word])


@pytest.mark.parametrize("address", ["file://{folder}", "local://{folder}", "file://{folder}/*"])
def test_addresses_are_searched_as_folders_and_patterns_are(folder: Path, address: str) -> None:
    found = named([address.format(folder=folder)])
    assert {"a.yml", "b.yaml"} <= {each.name.rpartition("/")[2] for each in found}
    with found[0].local() as path:
        assert path.read_text() == CASSETTE
        assert path.parent != folder
    assert not path.exists()


def test_a_cassette_in_an_archive_is_one_like_any_other(folder: Path, tmp_path: Path) -> None:
    archive = tmp_path / "sessions.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(folder / "b.yaml", "x/b.yaml")
        file.write(folder / "faults.yaml", "x/faults.yaml")
    (found,) = named([f"zip://x::file://{archive}"])
    assert found.name == f"zip://x/b.yaml::file://{archive}"
    with found.local() as path:
        assert path.read_text() == CASSETTE


def test_a_pattern_at_an_address_means_no_other_yaml_either(folder: Path) -> None:
    found = named([f"file://{folder}/*.yaml"])
    assert [each.name.rpartition("/")[2] for each in found] == ["b.yaml", "torn.yaml"]


def test_one_cassette_may_stand_at_an_address_and_is_called_by_it(folder: Path) -> None:
    with file_of(f"file://{folder}/b.yaml") as (path, name):
        assert path.read_text() == CASSETTE
        assert name == f"file://{folder}/b.yaml"
    with file_of(str(folder / "b.yaml")) as (path, name):
        assert (path, name) == (folder / "b.yaml", str(folder / "b.yaml"))


def test_several_cassettes_where_one_is_expected_are_an_error(folder: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"expected one cassette, found 4: .*a\.yml, .*, …"),
        file_of(f"file://{folder}"),
    ):
        pass


def test_an_error_in_a_copy_is_about_the_address(folder: Path) -> None:
    address = f"file://{folder}/b.yaml"
    with pytest.raises(CassetteError) as error, file_of(address) as (path, _):
        raise CassetteError(path, 3, "broken")
    assert str(error.value) == f"{address}:3: broken"


def test_the_traffic_beside_a_cassette_is_fetched_with_it_where_it_is_wanted(folder: Path) -> None:
    (folder / "b.http.yaml").write_text("http: 1\n")
    (found,) = named([f"file://{folder}/b.yaml"])
    found.http = True
    with found.local() as path:
        assert (path.parent / "b.http.yaml").read_text() == "http: 1\n"
    (folder / "b.http.yaml").unlink()
    with pytest.raises(CassetteError, match=r"b.http.yaml next to it cannot be fetched: no such file"), found.local():
        pass


def test_an_address_that_leads_nowhere_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Protocol not known"):
        named(["nowhere://x"])
    (missing,) = named([f"file://{tmp_path}/missing.yaml"])
    with pytest.raises(CassetteError, match=r"missing.yaml: cannot be fetched: no such file"), missing.local():
        pass


def test_a_password_in_an_address_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        named([f"zip://*::file://user:hunter22pass@{tmp_path}/missing.zip"])
    assert "hunter22pass" not in str(error.value)


def test_the_parts_are_all_of_the_cassettes_and_have_none_in_common() -> None:
    every = list(range(11))
    for count in (1, 2, 3, 20):
        parts = [shard(every, f"{number}/{count}") for number in range(1, count + 1)]
        assert sorted(item for part in parts for item in part) == every
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert shard(every, "") == every


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "1/0", "-1/2", "a/b", "1/2/3", "²/3"])
def test_another_shard_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="expected NUMBER/COUNT"):
        shard([1], text)


def test_a_recording_is_one_of_the_cassettes_or_the_folder_of_several(folder: Path) -> None:
    run = folder / "deeper" / "run"
    (run / "children").mkdir(parents=True)
    (run / "children" / "x.yaml").write_text(CASSETTE)
    (run / "recording.yaml").write_text("recording: 1\nchildren:\n- name: x\n  cassettes: [children/x.yaml]\n")
    assert names(folder, str(run)) == ["deeper/run/children/x.yaml"]
    found = [each.name.rpartition("/all/")[2] for each in named([str(folder)], recordings=True)]
    assert found == ["a.yml", "b.yaml", "deeper/c.yaml", "deeper/run", "torn.yaml"]
    for word in (str(run), f"{folder}/deeper/r*"):
        assert [each.name for each in named([word], recordings=True)] == [str(run)]
