"""Runs over HTTP: `models` answers in batches, `app` puts shapes around it that clients know. Needs the extra `serve`."""
