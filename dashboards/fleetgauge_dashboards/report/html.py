"""Render a review's Markdown as a self-contained HTML file without scripts, web fonts or images."""

from html import escape
from string import Template

from markdown_it import MarkdownIt

# Mail clients may drop the style sheet; the content does not depend on it.
_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
:root {
  color-scheme: light dark;
  --text: #1b2733; --faint: #56636f; --line: #d5dbe1; --page: #fff; --link: #00639c;
}
@media (prefers-color-scheme: dark) {
  :root { --text: #e3e8ee; --faint: #a3adb8; --line: #3a424b; --page: #14181d; --link: #7cc4f0; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 1100px; margin: 24px auto; padding: 0 20px; font-variant-numeric: tabular-nums; }
h1 { font-size: 24px; line-height: 1.2; margin: 0 0 8px; }
h2 { font-size: 18px; margin: 28px 0 8px; padding-top: 12px; border-top: 2px solid var(--line); }
h3 { font-size: 15px; margin: 18px 0 6px; }
a { color: var(--link); }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; margin: 6px 0; }
th { text-align: left; color: var(--faint); font-weight: 600; vertical-align: bottom; }
th, td { padding: 4px 10px; border-bottom: 1px solid var(--line); }
td { vertical-align: top; overflow-wrap: anywhere; }
td[style*="right"] { white-space: nowrap; }
@media print {
  :root { --text: #000; --faint: #444; --line: #bbb; --page: #fff; --link: #000; }
  @page { size: A4; margin: 14mm; }
  body { font-size: 10.5pt; margin: 0; padding: 0; max-width: none; }
  table { font-size: 8.5pt; }
  h2, h3 { break-after: avoid; }
  tr { break-inside: avoid; }
  thead { display: table-header-group; }
}
</style>
</head>
<body>
<main>
$body</main>
</body>
</html>
""")


def render_html(markdown: str, title: str) -> str:
    """Return an HTML document; HTML within the Markdown is shown as text."""
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return _PAGE.substitute(title=escape(title), body=body)
