"""Names of models and tasks in a store, by which the rows and columns of tables are recognized."""

from __future__ import annotations

from functools import cached_property

import sqlalchemy as sa

from tracker.connections.schema_versions import current_version
from tracker.database import transaction
from tracker.ingest.measurement import Entity
from tracker.schema import Model, ModelAlias, Task, TaskAlias


class StoreNames:
    """Names in a store, loaded at the first use.

    Args:
        engine: the store.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine

    def kind(self, name: str) -> Entity | None:
        """Return what a name stands for; None if it is unknown, or stands for several."""
        models, tasks = self._names
        is_model, is_task = name in models, name in tasks
        return None if is_model == is_task else "model" if is_model else "task"

    @cached_property
    def _names(self) -> tuple[frozenset[str], frozenset[str]]:
        if current_version(self.engine) is None:
            return frozenset(), frozenset()
        with transaction(self.engine, write=False) as session:
            tables = (Model, ModelAlias, Task, TaskAlias)
            model, alias, task, task_alias = (sa.inspect(table).columns.name for table in tables)
            models = [*session.scalars(sa.select(model)), *session.scalars(sa.select(alias))]
            tasks = [*session.scalars(sa.select(task)), *session.scalars(sa.select(task_alias))]
            return frozenset(models), frozenset(tasks)
