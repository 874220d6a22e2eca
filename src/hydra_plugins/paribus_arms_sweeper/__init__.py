"""`hydra/sweeper=arms`: the named arms of a sweep file x seeds, through any launcher.

paribus train -m hydra/sweeper=arms sweep=roberta_table1 scale=smoke
"""

from __future__ import annotations

from hydra_plugins.paribus_arms_sweeper.arms import ArmsSweeper

__all__ = ["ArmsSweeper"]
