"""Observe, plan, act: snapshots of the world, the pure plan, the executor, the states."""
