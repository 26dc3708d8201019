"""The weekly review on paper: Markdown, from it one HTML file that needs no other, from that a PDF."""
