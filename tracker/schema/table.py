"""Shared definitions of all tables: constraint names, types that both engines support, comments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Table(SQLModel):
    """Base of all tables, on a separate MetaData."""

    metadata = metadata
    model_config = {"defer_build": True}  # rows are not validated, and validators would slow every start


class _Jsonb(sa.TypeDecorator[Any]):
    """PostgreSQL's JSONB, whose dialect takes a tenth of a second to import and is imported only where it is used."""

    impl = sa.JSON
    cache_ok = True
    render_bind_cast = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        from sqlalchemy.dialects.postgresql import JSONB

        return dialect.type_descriptor(JSONB(none_as_null=True))


Json = sa.JSON(none_as_null=True).with_variant(_Jsonb(none_as_null=True), "postgresql")
Double: sa.Double[float] = sa.Double()
Instant = sa.DateTime(timezone=True)
BigInt = sa.BigInteger()


def now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


def column(
    comment: str,
    *,
    default: Any = ...,
    default_factory: Callable[[], Any] | None = None,
    key: bool = False,
    to: str | None = None,
    cascade: bool = False,
    kind: Any = None,
    index: bool = False,
    unique: bool = False,
) -> Any:
    """Define a commented column.

    Args:
        comment: meaning and unit.
        default: value of a new row; none means that it is required.
        default_factory: the same, computed.
        key: part of the primary key.
        to: ``table.column`` it refers to.
        cascade: whether rows are deleted with the row they refer to.
        kind: SQLAlchemy type, if the annotation does not determine it.
        index: whether it has a separate index.
        unique: whether its values are unique.
    """
    options: dict[str, Any] = {"sa_column_kwargs": {"comment": comment}}
    if default_factory is not None:
        options["default_factory"] = default_factory
    elif default is not ...:
        options["default"] = default
        if default is None and not key:
            options["nullable"] = True
    if key:
        options["primary_key"] = True
    if to is not None:
        options["foreign_key"] = to
        if cascade:
            options["ondelete"] = "CASCADE"
    if kind is not None:
        options["sa_type"] = kind
    if index:
        options["index"] = True
    if unique:
        options["unique"] = True
    return Field(**options)


def finite(name: str) -> sa.CheckConstraint:
    """Return a check that a number is neither NaN nor infinite, on either engine."""
    return sa.CheckConstraint(f"{name} BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308", name="finite")


def one_of(name: str, values: tuple[str, ...]) -> sa.CheckConstraint:
    """Return a check that a text column holds one of a few words."""
    quoted = ", ".join(f"'{v}'" for v in values)
    return sa.CheckConstraint(f"{name} IN ({quoted})", name=name)
