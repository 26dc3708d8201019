"""What a browser gets: layout and answers, one page a file."""
