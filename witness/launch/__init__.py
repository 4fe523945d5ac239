"""Starting a polecat and its sidecars: request, prompt, environment, the reaper, the sidecar pool."""
