"""Render the weekly review as Markdown, as a self-contained HTML file and as a PDF."""
