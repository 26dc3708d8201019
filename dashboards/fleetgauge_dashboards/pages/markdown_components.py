"""Markdown as components of a page, so that its links stay inside the application."""

from collections.abc import Iterable, Sequence

from dash import html
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from fleetgauge_dashboards.pages.parts import Component, anchor


def marked(markdown: str) -> list[Component]:
    """Headings start at the second rank, for the page has a first one. HTML in it is text."""
    tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(markdown)
    return _components(SyntaxTreeNode(tokens).children)


def _components(nodes: Iterable[SyntaxTreeNode]) -> list[Component]:
    return [_component(node) for node in nodes]


def _component(node: SyntaxTreeNode) -> Component:
    if node.type in ("text", "code_inline"):
        return html.Code(node.content) if node.type == "code_inline" else node.content
    inside = _inside(node.children)
    if node.type == "inline":
        return html.Span(inside)
    if node.type == "link":
        return anchor(inside, str(node.attrs["href"]), "fg-link")
    if node.type == "table":
        # A wide table scrolls by itself, by keyboard too.
        return html.Div(html.Table(inside, className="fg-table"), className="fg-scroll", tabIndex=0)
    return getattr(html, node.tag.capitalize())(inside, className=_class_name(node))


def _inside(children: Sequence[SyntaxTreeNode]) -> list[Component]:
    """Without the layer that holds a block's text."""
    if len(children) == 1 and children[0].type == "inline":
        return _components(children[0].children)
    return _components(children)


def _class_name(node: SyntaxTreeNode) -> str | None:
    return "fg-number" if "right" in str(node.attrs.get("style", "")) else None
