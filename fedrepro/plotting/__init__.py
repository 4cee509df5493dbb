"""Draw pictures and tables from files of results, without computing a method.

``draw_panel`` draws a panel into your own axes.
"""

from __future__ import annotations

from typing import Any

__all__ = ["draw_panel"]


def __getattr__(name: str) -> Any:
    """Import on first use, because most modules here need no matplotlib."""
    if name == "draw_panel":
        from fedrepro.plotting.single_panel import draw_panel

        return draw_panel
    raise AttributeError(f"module 'fedrepro.plotting' has no attribute '{name}'")
