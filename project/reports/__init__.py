"""What reports are made of: stored records, tables, plots, documents."""
