"""Every URL of a store is used or rejected with an error that says what to do, without its password."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tracker.connections.store_url import database_url
from tracker.database import connect
from tracker.errors import DatabaseError

SECRET = "s3cr3t"
MALFORMED = [
    "postgresql://bob:s3cr3t@localhost:abc/x",
    "postgresql://bob:s3cr3t@localhost:99999/x",
    "postgresql://bob:s3cr3t@localhost:-1/x",
    "postgresql://bob:s3cr3t@[::1/x",
    "postgresql://bob:s3cr3t@localhost:5432:5432/x",
    "postgresql://bob:12/s3cr3t@localhost/x",
    "postgresql://bob:a@s3cr3t@localhost:abc/x",
    "postgresql://bob:s3cr3t@hé.é..:1/x",
    "postgresql://bob:s3cr3t@" + "h" * 300 + ":1/x",
    "postgresql://bob:s3cr3t@localhost:1/\udc80",
    "postgresql://bob:s3cr3t@localhost:1/x?port=abc",
    "postgresql:///x?host=a,b&port=1,2,3&password=s3cr3t",
    "sqlite:///a\0b.db",
    "sqlite:///a.db?timeout=s3cr3t",
    "sqlite:///a.db?uri=s3cr3t",
    "sqlite:///" + "a" * 5000 + ".db",
    "sqlite:///\udc80.db",
    "a" * 5000 + ".db",
    "mysql://bob:s3cr3t@localhost/x",
    "://s3cr3t",
]


@pytest.mark.parametrize("url", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_url_is_an_error_that_gives_advice_and_no_password(url: str) -> None:
    with pytest.raises(DatabaseError) as error:
        connect(url, create=False)
    assert SECRET not in str(error.value)
    assert error.value.__suppress_context__ or SECRET not in str(error.value.__context__)
    assert str(error.value).endswith(".")


@given(st.text(max_size=30), st.text(max_size=10), st.text(max_size=10))
@example("", "abc", "x")
def test_any_text_is_a_url_or_an_error(host: str, port: str, name: str) -> None:
    for text in (f"postgresql://bob:{SECRET}@{host}:{port}/{name}", f"sqlite:///{host}?{port}={name}", host):
        message = ""
        try:
            database_url(text)
        except DatabaseError as error:
            message = str(error)
        assert SECRET not in message
