"""A run: one method on one problem for one trial; and where its data come from."""

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
    family: str  # the identity without the trial: runs of one family take the same time
    content: str = ""  # the fingerprint of the data it was planned on


@dataclass
class DataSource:
    """Where a setting's data comes from: ``state`` present, variant, own file, none needed, stand-in, or absent.

    ``note`` says why it is absent, and what a file of the user's own is called.
    """

    dataset: str
    state: str
    fingerprint: str = ""
    note: str = ""

    @property
    def usable(self) -> bool:
        """Whether runs on it can be computed."""
        return self.state not in ("absent", "damaged")
