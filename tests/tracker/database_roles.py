"""Roles of a PostgreSQL server that a test logs in as."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa


@contextmanager
def login_role(owner: sa.Engine, *rights: str) -> Iterator[sa.URL]:
    """Yield the address of a store for a new role, which is dropped afterwards; its connections must be closed by then.

    Args:
        owner: the store, as its owner.
        rights: what is granted, such as ``USAGE ON SCHEMA public``.
    """
    name = f"suffrage_role_{uuid.uuid4().hex[:8]}"
    with owner.begin() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {name} LOGIN PASSWORD 'r'")
        for right in rights:
            connection.exec_driver_sql(f"GRANT {right} TO {name}")
    yield owner.url.set(username=name, password="r")
    with owner.begin() as connection:
        connection.exec_driver_sql(f"DROP OWNED BY {name}")
        connection.exec_driver_sql(f"DROP ROLE {name}")
