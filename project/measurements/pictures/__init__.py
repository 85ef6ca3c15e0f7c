"""Pictures of the pages: `python -m pictures [NAME...]` draws them from figures in the project."""
