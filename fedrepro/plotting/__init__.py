"""Drawing: from result files to pictures and tables. It reads results only and never computes a method.

``draw_panel`` draws a panel into axes of one's own.
"""

from __future__ import annotations

from typing import Any

__all__ = ["draw_panel"]


def __getattr__(name: str) -> Any:
    """Import on first use: most of what is here needs no picture."""
    if name == "draw_panel":
        from fedrepro.plotting.single_panel import draw_panel

        return draw_panel
    raise AttributeError(f"module 'fedrepro.plotting' has no attribute '{name}'")
