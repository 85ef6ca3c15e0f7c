"""What explains something, as a page of HTML."""
