"""Permissions of stores, locks, exports and temporary files; what killed processes leave."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked_process import fork

from tracker.cli import main
from tracker.database import connect, transaction
from tracker.exporting.output_paths import open_atomically, write_file, write_folder
from tracker.private_files.temporary import TEMPORARY, UNFINISHED, remove_temporary_folders, temporary_folder
from tracker.recording.mlflow.publish_lock import lock_publishing
from tracker.recording.mlflow.publishing import list_charts
from tracker.schema import Model


def mode(path: Path) -> int:
    """The permissions of a file or folder."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o022, 0o027, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Each usual umask in turn."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def kill_within(block: object, output: Path) -> None:
    """Enter a context in a process that is killed there."""

    def work() -> None:
        with block as entered:  # type: ignore[attr-defined]
            print(entered, flush=True)
            time.sleep(600)

    process = fork(work, output)
    while not output.read_text():
        time.sleep(0.005)
    process.kill()
    process.wait()


class TestPermissions:
    def test_stores_and_all_files_beside_them_are_readable_by_their_owner_alone(
        self, tmp_path: Path, umask: int
    ) -> None:
        folder = tmp_path / "stores"
        folder.mkdir()
        engine = connect(f"sqlite:///{folder}/suffrage.db")
        with transaction(engine) as session:
            session.add(Model(name="m"))
            session.flush()
            with lock_publishing(engine):
                modes = {path.name: mode(path) for path in folder.iterdir()}
        engine.dispose()
        assert set(modes) >= {"suffrage.db", "suffrage.db-wal", "suffrage.db-shm", "suffrage.db.publishing.lock"}
        assert set(modes.values()) == {0o600}

    def test_files_beside_a_store_that_a_group_shares_are_shared_too(self, tmp_path: Path) -> None:
        path = tmp_path / "suffrage.db"
        engine = connect(f"sqlite:///{path}")
        engine.dispose()
        path.chmod(0o660)
        with transaction(engine) as session, lock_publishing(engine):
            session.add(Model(name="m"))
            session.flush()
            modes = {file.name: mode(file) for file in tmp_path.glob("suffrage.db*")}
        engine.dispose()
        assert len(modes) == 4
        assert set(modes.values()) == {0o660}

    def test_a_file_of_mlflow_that_is_made_here_is_readable_by_its_owner_alone(self, tmp_path: Path) -> None:
        list_charts(f"sqlite:///{tmp_path}/mlflow.db")
        modes = {path.name: mode(path) for path in tmp_path.iterdir()}
        assert "mlflow.db" in modes
        assert set(modes.values()) == {0o600}

    def test_exports_follow_the_umask(self, tmp_path: Path, umask: int) -> None:
        write_file(tmp_path / "file", b"", force=False)
        with write_folder(tmp_path / "folder", force=False) as folder:
            (folder / "file").write_bytes(b"")
        assert mode(tmp_path / "file") == mode(tmp_path / "folder/file") == 0o666 & ~umask
        assert mode(tmp_path / "folder") == 0o777 & ~umask

    def test_settings_with_a_password_are_readable_by_their_owner_alone(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit):
            main(["init", "--database", "postgresql://me:secret@localhost/store"])
        path = tmp_path / "suffrage.toml"
        assert mode(path) == 0o600
        path.chmod(0o644)
        with pytest.raises(SystemExit):
            main(["config"])
        assert "suffrage.toml has a password, and other users" in capsys.readouterr().err
        path.chmod(0o600)
        with pytest.raises(SystemExit):
            main(["config"])
        captured = capsys.readouterr()
        assert captured.err == "Settings file: suffrage.toml\n"
        assert "secret" not in captured.out


class TestTemporaryFiles:
    def test_their_folder_is_private_and_removed(self, place: Path) -> None:
        with temporary_folder() as folder:
            assert folder.parent == place
            assert mode(folder) == 0o700
            (folder / "file").touch()
        assert list(place.iterdir()) == []

    def test_what_a_killed_process_leaves_is_removed_at_the_next_start(self, place: Path, tmp_path: Path) -> None:
        kill_within(temporary_folder(), tmp_path / "output")
        assert len(list(place.glob(f"{TEMPORARY}*"))) == 1
        with pytest.raises(SystemExit):
            main(["--version"])
        assert list(place.iterdir()) == []

    def test_folders_in_use_and_files_of_other_programs_stay(self, place: Path) -> None:
        (place / "another").mkdir()
        with temporary_folder() as first:
            remove_temporary_folders()
            with temporary_folder() as second:
                assert first != second
                assert first.is_dir()
        assert [path.name for path in place.iterdir()] == ["another"]

    def test_a_link_that_has_such_a_name_is_not_followed(self, place: Path, tmp_path: Path) -> None:
        target = tmp_path / "target"
        target.mkdir()
        (target / "file").touch()
        (place / f"{TEMPORARY}link").symlink_to(target)
        remove_temporary_folders()
        assert (target / "file").exists()

    @pytest.mark.parametrize("is_folder", [False, True])
    def test_an_output_cut_off_by_a_kill_is_removed_when_the_next_one_is_written(
        self, tmp_path: Path, is_folder: bool
    ) -> None:
        folder = tmp_path / "outputs"
        folder.mkdir()
        write = write_folder if is_folder else open_atomically
        kill_within(write(folder / "first", force=False), tmp_path / "output")
        assert len(list(folder.glob(f"{UNFINISHED}*"))) == 1
        write_file(folder / "second", b"", force=False)
        assert [path.name for path in folder.iterdir()] == ["second"]
