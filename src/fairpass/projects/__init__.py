"""Projects: from a settings file `fairpass.toml` to a run directory with model, report and predictions."""
