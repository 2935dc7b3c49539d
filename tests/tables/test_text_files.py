"""Texts written whole or not at all, in folders and at addresses, and put back where one of several fails."""

import sys

import pytest
from pyarrow import fs

from cloaking.command.run import Stopped
from cloaking.errors import OutputError
from cloaking.tables import replacing, text_files


def test_a_text_is_written_whole_and_replaces_an_older_one(tmp_path):
    folder = tmp_path / "new" / "folder"
    for text in ("an older and longer text", "é"):
        assert text_files.write(str(folder), "report.json", text) == f"{folder}/report.json"
        assert (folder / "report.json").read_text(encoding="utf-8") == text
    assert len(list(folder.iterdir())) == 1


def test_a_text_can_go_to_an_address(tmp_path):
    text_files.write(f"file://{tmp_path}/reports/", "report.json", "{}")
    assert (tmp_path / "reports" / "report.json").read_text() == "{}"


@pytest.mark.parametrize("folder", ["{}/file", "{}/file/deeper", "nosuch://bucket/folder"])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path, folder):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="--output"):
        text_files.write(folder.format(tmp_path), "report.json", "{}")
    with pytest.raises(OutputError, match="--output"):
        text_files.check(folder.format(tmp_path))


@pytest.mark.parametrize("folder", ["{}", "{}/new/folder", "file://{}"])
def test_trying_a_folder_leaves_nothing(tmp_path, folder):
    (tmp_path / "report.json").write_text("{}")
    text_files.check(folder.format(tmp_path))
    assert [path.name for path in tmp_path.rglob("*")] == ["report.json"]


class Like:
    """A local file system some of whose functions are as those of another store."""

    def __init__(self, **functions):
        self.store, self.functions = fs.LocalFileSystem(), functions

    def __getattr__(self, name):
        return getattr(self.store, name) if name not in self.functions else self.functions[name]


def as_hdfs(source, target):
    """Move a file, but never over another one."""
    if fs.LocalFileSystem().get_file_info(target).type != fs.FileType.NotFound:
        raise OSError("Cannot rename")
    fs.LocalFileSystem().move(source, target)


def refusing(where):
    def move(source, target):
        if where(source, target):
            raise OSError("Cannot rename")
        fs.LocalFileSystem().move(source, target)

    return move


def unknown(*_):
    raise NotImplementedError


OLD = {"report.html": "old page", "report.json": "old"}
NEW = {"report.html": "new page", "report.json": "new"}


@pytest.fixture
def folder(tmp_path):
    for name, text in OLD.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def found(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def put_new(folder, texts=NEW):
    with text_files.together(str(folder)) as put:
        for name, text in texts.items():
            put(name, text)


@pytest.mark.parametrize("move", [as_hdfs, unknown], ids=["never over another", "not at all"])
def test_a_store_may_move_no_file_over_another_or_none_at_all(folder, monkeypatch, move):
    monkeypatch.setattr(text_files, "_store", lambda path: (Like(move=move), path))
    text_files.check(str(folder))
    put_new(folder)
    assert found(folder) == NEW
    put_new(folder, {"report.html": None, "report.json": "newer"})
    assert found(folder) == {"report.json": "newer"}
    put_new(folder / "first")
    assert found(folder / "first") == NEW


@pytest.mark.parametrize(
    "where",
    [
        lambda source, target: True,
        lambda source, target: target.endswith("report.html"),
        lambda source, target: target.endswith("report.json"),
        lambda source, target: source.endswith("report.html"),
    ],
    ids=["all", "to the page", "to the JSON", "the page aside"],
)
def test_the_earlier_files_stand_where_a_move_is_refused(folder, monkeypatch, where):
    def once(source, target):
        if asked.append(target) or (where(source, target) and ".earlier" not in source):
            raise OSError("Cannot rename")
        fs.LocalFileSystem().move(source, target)

    asked = []
    monkeypatch.setattr(text_files, "_store", lambda path: (Like(move=once), path))
    with pytest.raises(OutputError, match=r"report\.(html|json) cannot be written"):
        put_new(folder)
    assert asked
    assert found(folder) == OLD


def test_where_an_earlier_file_cannot_be_put_back_its_name_is_said(folder, monkeypatch, caplog):
    broken = refusing(lambda source, target: target.endswith("report.json"))
    monkeypatch.setattr(text_files, "_store", lambda path: (Like(move=broken), path))
    with pytest.raises(OutputError, match="cannot be written"):
        put_new(folder)
    [said] = caplog.messages
    [earlier] = folder.glob(".report.json.*.earlier")
    assert earlier.read_text() == "old"
    assert f"--output {folder}: report.json: cannot be put back (OSError)" in said
    assert f"the earlier one is at {earlier}" in said


def test_a_store_that_refuses_every_move_is_found_before_anything_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_store", lambda path: (Like(move=refusing(lambda *_: True)), path))
    with pytest.raises(OutputError, match="the folder cannot be written"):
        text_files.check(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def stopped_at(number):
    """Trace that raises as a signal's handler does, at the line of that number of those that do the replacing."""
    lines = iter(range(number))

    def trace(frame, event, _):
        if frame.f_code.co_filename not in (replacing.__file__, text_files.__file__):
            return None
        if event == "line" and next(lines, None) is None:
            sys.settrace(None)
            raise Stopped(15)
        return trace

    return trace


@pytest.mark.parametrize("failing", [False, True], ids=["a run that is good", "a run that fails"])
def test_a_signal_at_any_line_leaves_all_the_earlier_files_or_all_the_new(folder, monkeypatch, failing):
    broken = refusing(lambda source, target: target.endswith("report.json") and ".earlier" not in source)
    if failing:
        monkeypatch.setattr(text_files, "_store", lambda path: (Like(move=broken), path))
    ends = []
    for number in range(1000):
        before = sys.gettrace()
        sys.settrace(stopped_at(number))
        try:
            put_new(folder)
            stopped = False
        except OutputError:
            assert failing
            stopped = False
        except Stopped:
            stopped = True
        finally:
            sys.settrace(before)
        left = found(folder)
        assert left in (OLD, NEW), f"stopped at line {number}"
        ends.append(left == NEW)
        for path in folder.iterdir():
            path.unlink()
        for name, text in OLD.items():
            (folder / name).write_text(text)
        if not stopped:
            break
    assert len(ends) > 50
    assert ends[-1] is not failing
    assert ends == sorted(ends)  # once the last file is in its place, none is put back
