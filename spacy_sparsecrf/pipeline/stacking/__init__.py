"""A stack: a first-stage model, whose predictions the templates of the component read."""
