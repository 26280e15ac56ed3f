"""What a broker counts, and the page on which others read it."""
