"""Convert Markdown to Dash components, so that its links are followed without a page load."""

from collections.abc import Iterable, Sequence

from dash import html
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from fleetgauge_dashboards.pages.components import Component, anchor


def convert_markdown(markdown: str) -> list[Component]:
    """Return CommonMark with tables as components. HTML in it is shown as text."""
    tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(markdown)
    return _convert_nodes(SyntaxTreeNode(tokens).children)


def _convert_nodes(nodes: Iterable[SyntaxTreeNode]) -> list[Component]:
    return [_convert_node(node) for node in nodes]


def _convert_node(node: SyntaxTreeNode) -> Component:
    if node.type in ("text", "code_inline"):
        return html.Code(node.content) if node.type == "code_inline" else node.content
    children = _convert_children(node.children)
    if node.type == "inline":
        return html.Span(children)
    if node.type == "link":
        return anchor(children, str(node.attrs["href"]), "fg-link")
    if node.type == "table":
        # A wide table scrolls horizontally, also by keyboard.
        return html.Div(html.Table(children, className="fg-table"), className="fg-scroll", tabIndex=0)
    return getattr(html, node.tag.capitalize())(children, className=_class_name(node))


def _convert_children(children: Sequence[SyntaxTreeNode]) -> list[Component]:
    """Return the children as components, without the inline node that wraps a block's text."""
    if len(children) == 1 and children[0].type == "inline":
        return _convert_nodes(children[0].children)
    return _convert_nodes(children)


def _class_name(node: SyntaxTreeNode) -> str | None:
    return "fg-number" if "right" in str(node.attrs.get("style", "")) else None
