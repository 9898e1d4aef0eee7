"""The store: read where it cannot be written, and refused with a sentence that says what to do."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from psycopg import errors

from tracker.connections.driver_errors import driver, explain_driver_error
from tracker.connections.schema_versions import current_version, migrating, upgrade
from tracker.connections.store_url import format_url
from tracker.copying.store_copy import reading, writing
from tracker.database import connect, create_unchecked_engine, transaction
from tracker.errors import DatabaseError


class TestReadOnly:
    def test_a_store_that_nobody_here_can_write_is_read_and_not_written(self, tmp_path: Path) -> None:
        connect(f"sqlite:///{tmp_path}/s.db").dispose()
        os.chmod(tmp_path / "s.db", 0o444)
        os.chmod(tmp_path, 0o555)
        look = f"from tracker.cli import main; main(['benchmarks', '--database', 'sqlite:///{tmp_path}/s.db'])"
        select_names = (
            f"from tracker.cli import main; main(['sql', 'select 1', '--database', 'sqlite:///{tmp_path}/s.db'])"
        )
        write = (
            "from tracker.database import *\nfrom tracker.schema import Model\n"
            "try:\n"
            f"    with transaction(connect('sqlite:///{tmp_path}/s.db')) as session: session.add(Model(name='m'))\n"
            "except DatabaseError as error: print(error)"
        )
        # Root may write everything, so it is asked for without that right.
        as_others = [] if os.getuid() else ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"]
        if as_others and subprocess.run([*as_others, "test", "-w", str(tmp_path)], check=False).returncode == 0:
            pytest.skip("the right to write cannot be put down here")
        try:
            done = [
                subprocess.run([*as_others, sys.executable, "-c", code], capture_output=True, text=True, check=False)
                for code in (look, select_names, write)
            ]
        finally:
            os.chmod(tmp_path, 0o755)
        assert [item.returncode for item in done] == [0, 0, 0], [item.stderr for item in done]
        assert "cannot be written" in done[2].stdout
        assert sorted(path.name for path in tmp_path.iterdir()) == ["s.db"]


class TestErrors:
    def test_an_error_of_the_driver_beside_sqlalchemy_is_explained(self, store: sa.Engine) -> None:
        with pytest.raises(DatabaseError, match="the disk is full"), transaction(store):
            raise driver(store.dialect.name).OperationalError("disk I/O error")

    def test_such_an_error_within_an_upgrade_is_explained(self, store: sa.Engine) -> None:
        with pytest.raises(DatabaseError, match="the disk is full"), migrating(store):
            raise driver(store.dialect.name).OperationalError("disk I/O error")

    def test_such_an_error_within_a_copy_is_explained(self, store: sa.Engine) -> None:
        for opened in (reading, writing):
            with pytest.raises(DatabaseError, match="the disk is full"), opened(store):
                raise driver(store.dialect.name).OperationalError("disk I/O error")

    def test_a_fault_of_the_servers_disk_is_no_full_disk(self, store: sa.Engine) -> None:
        fault = errors.IoError('could not read block 7 in file "base/1/2": Input/output error')
        message = explain_driver_error(sa.exc.OperationalError(None, None, fault), store)
        assert "the server cannot read or write its files" in message
        assert "log of the server" in message
        assert "is full" not in message

    def test_a_folder_is_no_store(self, tmp_path: Path) -> None:
        with pytest.raises(DatabaseError, match="is a folder"):
            connect(f"sqlite:///{tmp_path}")

    def test_a_database_of_another_program_is_left_alone(self, tmp_path: Path) -> None:
        another = sqlite3.connect(tmp_path / "other.db")
        another.execute("CREATE TABLE notes (a)")
        another.close()
        before = (tmp_path / "other.db").read_bytes()
        url = f"sqlite:///{tmp_path}/other.db"
        for use in (connect, partial(connect, create=False), lambda url: upgrade(create_unchecked_engine(url))):
            with pytest.raises(DatabaseError, match="tables of another program"):
                use(url)
        assert current_version(create_unchecked_engine(url)) is None
        assert (tmp_path / "other.db").read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["other.db"]

    def test_a_newer_store_is_not_upgraded(self, store: sa.Engine) -> None:
        with store.begin() as connection:
            connection.execute(sa.text("UPDATE suffrage_version SET version_num = '9999'"))
        with pytest.raises(DatabaseError, match="newer than this program"):
            upgrade(store)
        assert current_version(store) == "9999"

    def test_tables_that_contradict_the_version_are_no_reason_to_upgrade_again(self, store: sa.Engine) -> None:
        with store.begin() as connection:
            connection.execute(sa.text("UPDATE suffrage_version SET version_num = '0001'"))
        with pytest.raises(DatabaseError, match=r"recorded at version 0001, but its tables.*suffrage db restore FILE"):
            upgrade(store)
        assert current_version(store) == "0001"

    def test_a_damaged_file_is_an_error_of_its_own(self, tmp_path: Path) -> None:
        connect(f"sqlite:///{tmp_path}/s.db").dispose()
        data = (tmp_path / "s.db").read_bytes()
        (tmp_path / "s.db").write_bytes(data[:5000])
        with pytest.raises(DatabaseError, match="is damaged"):
            connect(f"sqlite:///{tmp_path}/s.db")

    def test_an_unescaped_password_is_not_mistaken_for_a_host(self) -> None:
        with pytest.raises(DatabaseError, match="%40") as refused:
            create_unchecked_engine("postgresql://u:one@two@host/name")
        assert "two" not in str(refused.value)


class TestPasswords:
    @pytest.mark.parametrize(
        "url", ["postgresql://u:geheim@h/n", "postgresql://u@h/n?password=geheim", "postgresql:///n?sslpassword=geheim"]
    )
    def test_passwords_are_never_shown(self, url: str) -> None:
        displayed = format_url(create_unchecked_engine(url).url)
        assert "geheim" not in displayed
        assert displayed.startswith("postgresql://")
