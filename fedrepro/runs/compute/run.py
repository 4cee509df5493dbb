"""A run: one method on one problem for one trial; and the source of its data."""

from __future__ import annotations

from dataclasses import dataclass

from fedrepro.spec.model import Setting


@dataclass(frozen=True)
class Run:
    """One setting for one trial, with its identity and the identity of the problem it runs on."""

    id: str
    setting: Setting
    trial: int
    problem_id: str
    stand_in: bool
    family: str  # the identity without the trial; runs of one family take the same time
    content: str = ""  # the fingerprint of the data it was planned on


@dataclass
class DataSource:
    """The source of a setting's data; ``state`` is present, variant, own file, none needed, stand-in or absent.

    ``note`` is the reason if the data are absent, and the name of a user's own file.
    """

    dataset: str
    state: str
    fingerprint: str = ""
    note: str = ""

    @property
    def usable(self) -> bool:
        """Return whether runs on these data can be computed."""
        return self.state not in ("absent", "damaged")
